/* sched/fifo: first come, first served. Every job has the same priority, so the order of submission
 * decides, and nothing overtakes the first job that waits. Test: src/plug/plug_test.c. */
#include <crunwlm/plugin.h>

static int64_t fifo_priority(void *ctx, const struct cw_sched_job *job)
{
    (void)ctx;
    (void)job;
    return 0;
}

static const struct cw_sched_ops ops = {.priority = fifo_priority};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = sizeof(struct cw_plugin),
    .abi_major = CW_PLUGIN_ABI_MAJOR,
    .abi_minor = CW_PLUGIN_ABI_MINOR,
    .family = "sched",
    .name = "fifo",
    .version = "1.0",
    .caps = CW_SCHED_CAP_STRICT,
    .ops = &ops,
    .ops_size = sizeof(ops),
};
