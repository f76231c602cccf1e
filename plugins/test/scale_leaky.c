/* Exports more than cw_plugin: linked without -export-symbols-regex. */
#include "test/minimal.h"

CW_PLUGIN_EXPORT int64_t scale_leaky_replicas(void *ctx, const struct cw_scale_view *view);

int64_t scale_leaky_replicas(void *ctx, const struct cw_scale_view *view)
{
    (void)ctx;
    return view->max;
}

static const struct cw_scale_ops ops = {.replicas = scale_leaky_replicas};

TEST_PLUGIN("scale", "leaky", ops);
