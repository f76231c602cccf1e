/* The smallest plugin of its family. */
#include "test/minimal.h"

static int apply(void *ctx, const char *json, struct cw_plugin_err *err)
{
    (void)ctx, (void)json, (void)err;
    return 0;
}

static int drained(void *ctx, const char *group, const char *replica, struct cw_plugin_err *err)
{
    (void)ctx, (void)group, (void)replica, (void)err;
    return 1;
}

static int stat_json(void *ctx, char *buf, size_t cap, struct cw_plugin_err *err)
{
    (void)ctx, (void)buf, (void)cap, (void)err;
    return 0;
}

static const struct cw_router_ops ops = {.apply = apply, .drained = drained, .stat = stat_json};

TEST_PLUGIN("router", "minimal", ops);
