/* As built before cw_isolation_ops had `started`: its ops table ends at reclaim. */
#include "test/minimal.h"

static int probe(void *ctx, struct cw_plugin_err *err)
{
    (void)ctx, (void)err;
    return 0;
}

static int prepare(void *ctx, const struct cw_task_view *task, const struct cw_plan *plan,
                   void **ret_box, struct cw_plugin_err *err)
{
    (void)ctx, (void)task, (void)plan, (void)err;
    *ret_box = NULL;
    return 0;
}

static int box_only(void *ctx, void *box)
{
    (void)ctx, (void)box;
    return 0;
}

static int send(void *ctx, void *box, int sig)
{
    (void)ctx, (void)box, (void)sig;
    return 0;
}

static int usage(void *ctx, void *box, struct cw_box_usage *ret)
{
    (void)ctx, (void)box;
    ret->source = "";
    return 0;
}

static int reclaim(void *ctx, const char *key, struct cw_plugin_err *err)
{
    (void)ctx, (void)key, (void)err;
    return 0;
}

/* `started` lies outside ops_size: the host must not touch it, whatever is there. */
static const struct cw_isolation_ops ops = {
    .probe = probe,
    .prepare = prepare,
    .enter = box_only,
    .signal = send,
    .kill = box_only,
    .usage = usage,
    .release = box_only,
    .reclaim = reclaim,
    .started = (int (*)(void *, void *, pid_t))1,
};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    TEST_PLUGIN_HEAD("isolation", "older"),
    .ops = &ops,
    .ops_size = offsetof(struct cw_isolation_ops, started),
};
