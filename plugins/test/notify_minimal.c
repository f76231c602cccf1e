/* The smallest plugin of its family. */
#include "test/minimal.h"

static int event(void *ctx, const char *json)
{
    (void)ctx, (void)json;
    return 0;
}

static const struct cw_notify_ops ops = {.event = event};

TEST_PLUGIN("notify", "minimal", ops);
