/* Leaves out a member that the family needs. */
#include "test/minimal.h"

static int resume(void *ctx, const char *node, struct cw_plugin_err *err)
{
    (void)ctx, (void)node, (void)err;
    return 0;
}

static const struct cw_power_ops ops = {.resume = resume};

TEST_PLUGIN("power", "halfdone", ops);
