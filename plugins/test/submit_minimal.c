/* The smallest plugin of its family. */
#include "test/minimal.h"

static int submit(void *ctx, struct cw_job_view *job, struct cw_plugin_err *err)
{
    (void)ctx, (void)job, (void)err;
    return 0;
}

static const struct cw_submit_ops ops = {.submit = submit};

TEST_PLUGIN("submit", "minimal", ops);
