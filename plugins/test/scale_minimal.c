/* The smallest plugin of its family. */
#include "test/minimal.h"

static int64_t replicas(void *ctx, const struct cw_scale_view *view)
{
    (void)ctx;
    return view->min;
}

static const struct cw_scale_ops ops = {.replicas = replicas};

TEST_PLUGIN("scale", "minimal", ops);
