/* The smallest plugin of its family. */
#include "test/minimal.h"

static int resume(void *ctx, const char *node, struct cw_plugin_err *err)
{
    (void)ctx, (void)node, (void)err;
    return 0;
}

static int suspend(void *ctx, const char *node, struct cw_plugin_err *err)
{
    (void)ctx, (void)node, (void)err;
    return 0;
}

static const struct cw_power_ops ops = {.resume = resume, .suspend = suspend};

TEST_PLUGIN("power", "minimal", ops);
