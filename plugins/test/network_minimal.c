/* The smallest plugin of its family. */
#include "test/minimal.h"

static int check(void *ctx, const char *network, struct cw_plugin_err *err)
{
    (void)ctx, (void)network, (void)err;
    return 0;
}

static int plan(void *ctx, const struct cw_host *host, const struct cw_task_view *task,
                const char *network, struct cw_plan *plan, struct cw_plugin_err *err)
{
    (void)ctx, (void)host, (void)task, (void)network, (void)plan, (void)err;
    return 0;
}

static const struct cw_network_ops ops = {.check = check, .plan = plan};

TEST_PLUGIN("network", "minimal", ops);
