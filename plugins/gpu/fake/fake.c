/* gpu/fake: GPUs that are numbers only, for tests and for machines without any. They are counted,
 * granted and named to the task like real ones; there is no device to open. Test: fake_test.c. */
#include <crunwlm/plugin.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_MAX 64
#define LIST_MAX (FAKE_MAX * 12)

struct fake_ctx {
    uint32_t count;
    uint64_t mem_bytes;
    char model[64];
    int32_t numa[FAKE_MAX];
};

static const struct cw_option options[] = {
    {"count", CW_OPT_INT, "2", "how many GPUs the node has, at most 64"},
    {"mem", CW_OPT_SIZE, "16G", "memory of each"},
    {"model", CW_OPT_STRING, "fake", "name of the model"},
    {"numa", CW_OPT_STRING, "", "NUMA node of each, 0,0,1,1; the last goes on; empty: unknown"},
    {NULL, CW_OPT_STRING, NULL, NULL},
};

/* Fills all of numa[]; a list that is too short repeats its last number. */
static int parse_numa(const char *list, int32_t *numa, struct cw_plugin_err *err)
{
    int32_t last = -1;
    const char *at = list;

    for (int i = 0; i < FAKE_MAX; i++) {
        if (*at != '\0') {
            char *end;
            unsigned long v = strtoul(at, &end, 10);
            if (at[0] < '0' || at[0] > '9' || v > 1023 || (*end != ',' && *end != '\0')) {
                snprintf(err->text, sizeof(err->text),
                         "option 'numa': '%.100s' is not a list of NUMA nodes such as 0,0,1,1",
                         list);
                return -EINVAL;
            }
            last = (int32_t)v;
            at = end + (*end == ',');
        }
        numa[i] = last;
    }
    return 0;
}

static int fake_open(const struct cw_host *host, void **ret_ctx, struct cw_plugin_err *err)
{
    long count = strtol(host->option(host, "count"), NULL, 10);
    struct fake_ctx *c;

    if (count < 0 || count > FAKE_MAX) {
        snprintf(err->text, sizeof(err->text), "option 'count': %ld, allowed: 0 to %d", count,
                 FAKE_MAX);
        return -EINVAL;
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return -ENOMEM;
    c->count = (uint32_t)count;
    c->mem_bytes = strtoull(host->option(host, "mem"), NULL, 10);
    snprintf(c->model, sizeof(c->model), "%s", host->option(host, "model"));
    if (parse_numa(host->option(host, "numa"), c->numa, err) < 0) {
        free(c);
        return -EINVAL;
    }
    *ret_ctx = c;
    return 0;
}

static void fake_close(void *ctx)
{
    free(ctx);
}

static int fake_count(void *ctx, struct cw_plugin_err *err)
{
    const struct fake_ctx *c = ctx;

    (void)err;
    return (int)c->count;
}

static int fake_get(void *ctx, uint32_t i, struct cw_gpu_info *ret, struct cw_plugin_err *err)
{
    const struct fake_ctx *c = ctx;

    if (i >= c->count) {
        snprintf(err->text, sizeof(err->text), "GPU %u does not exist, this node has %u",
                 (unsigned)i, (unsigned)c->count);
        return -ENOENT;
    }
    *ret = (struct cw_gpu_info){
        .size = sizeof(*ret), .index = i, .mem_bytes = c->mem_bytes, .numa = c->numa[i]};
    snprintf(ret->uuid, sizeof(ret->uuid), "GPU-fake-%08x", (unsigned)i);
    snprintf(ret->model, sizeof(ret->model), "%s", c->model);
    snprintf(ret->pci, sizeof(ret->pci), "0000:%02x:00.0", (unsigned)(i + 1));
    return 0;
}

static int add_env(const struct cw_host *host, struct cw_plan *plan, const char *name,
                   const char *value)
{
    struct cw_plan_line line = {.size = sizeof(line), .kind = CW_PLAN_ENV, .a = name, .b = value};

    return host->plan_add(host, plan, &line);
}

static int list_gpus(const struct fake_ctx *c, const struct cw_task_view *task, char *buf,
                     size_t cap, struct cw_plugin_err *err)
{
    size_t len = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; i < task->n_gpus; i++) {
        if (task->gpus[i] >= c->count || len + 12 > cap) {
            snprintf(err->text, sizeof(err->text), "granted GPU %u does not exist, there are %u",
                     (unsigned)task->gpus[i], (unsigned)c->count);
            return -ENODEV;
        }
        len += (size_t)snprintf(buf + len, cap - len, "%s%u", i > 0 ? "," : "",
                                (unsigned)task->gpus[i]);
    }
    return 0;
}

/* Nothing hides the other devices from the task, so the numbers are the node's. A task without GPUs
 * gets values that deny: an unset variable would mean "all". */
static int fake_plan(void *ctx, const struct cw_host *host, const struct cw_task_view *task,
                     struct cw_plan *plan, struct cw_plugin_err *err)
{
    char list[LIST_MAX];
    int none = task->n_gpus == 0, r = list_gpus(ctx, task, list, sizeof(list), err);

    if (r == 0)
        r = add_env(host, plan, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    if (r == 0)
        r = add_env(host, plan, "CUDA_VISIBLE_DEVICES", none ? "-1" : list);
    if (r == 0)
        r = add_env(host, plan, "NVIDIA_VISIBLE_DEVICES", none ? "void" : list);
    return r;
}

static const struct cw_gpu_ops ops = {.count = fake_count, .get = fake_get, .plan = fake_plan};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = sizeof(struct cw_plugin),
    .abi_major = CW_PLUGIN_ABI_MAJOR,
    .abi_minor = CW_PLUGIN_ABI_MINOR,
    .family = "gpu",
    .name = "fake",
    .version = "1.0",
    .options = options,
    .open = fake_open,
    .close = fake_close,
    .ops = &ops,
    .ops_size = sizeof(ops),
};
