/* The smallest plugin of its family. */
#include "test/minimal.h"

static int record(void *ctx, const char *json)
{
    (void)ctx, (void)json;
    return 0;
}

static const struct cw_acct_ops ops = {.record = record};

TEST_PLUGIN("acct", "minimal", ops);
