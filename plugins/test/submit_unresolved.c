/* Calls what nobody has: a lazy load would only die at the first submit. */
#include "test/minimal.h"

int cw_test_nobody_has_this(void);

static int submit(void *ctx, struct cw_job_view *job, struct cw_plugin_err *err)
{
    (void)ctx, (void)job, (void)err;
    return cw_test_nobody_has_this();
}

static const struct cw_submit_ops ops = {.submit = submit};

TEST_PLUGIN("submit", "unresolved", ops);
