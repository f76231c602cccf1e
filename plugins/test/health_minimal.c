/* The smallest plugin of its family. */
#include "test/minimal.h"

static int check(void *ctx, struct cw_plugin_err *err)
{
    (void)ctx, (void)err;
    return 0;
}

static const struct cw_health_ops ops = {.check = check};

TEST_PLUGIN("health", "minimal", ops);
