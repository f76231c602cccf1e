/* The smallest plugin of its family. */
#include "test/minimal.h"

static int plan(void *ctx, const struct cw_host *host, const struct cw_task_view *task,
                const char *name, const void *value, size_t len, struct cw_plan *plan,
                struct cw_plugin_err *err)
{
    (void)ctx, (void)host, (void)task, (void)name, (void)value, (void)len, (void)plan, (void)err;
    return 0;
}

static const struct cw_secret_ops ops = {.plan = plan};

TEST_PLUGIN("secret", "minimal", ops);
