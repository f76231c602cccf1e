/* isolation/nice: an example of a plugin that is built outside of crun-wlm's tree. Runs tasks
 * behind everything else on the node: a session of their own, a nice value, the batch scheduling
 * class.
 *
 * Copy this file, rename family and name, fill the ops of your family (crunwlm/plugin.h has them
 * all, doc/PLUGINS.md the rules). The only symbol of a plugin that anyone sees is cw_plugin. */
#define _GNU_SOURCE /* setpriority, SCHED_BATCH */
#include <crunwlm/plugin.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What open() makes: one per process that loads the plugin. */
struct nice_ctx {
    const struct cw_host *host; /* lives until close */
    int value;
};

/* What prepare() makes: one per task. */
struct nice_box {
    int value;
    pid_t leader; /* 0: not started */
};

static const struct cw_option options[] = {
    {"value", CW_OPT_INT, "10", "nice value of tasks, 0 to 19"},
    {NULL, CW_OPT_STRING, NULL, NULL},
};

/* The host has checked name and type; the range is ours. */
static int nice_open(const struct cw_host *host, void **ret_ctx, struct cw_plugin_err *err)
{
    long value = strtol(host->option(host, "value"), NULL, 10);
    struct nice_ctx *c;

    if (value < 0 || value > 19) {
        snprintf(err->text, sizeof(err->text), "option 'value': %ld, allowed: 0 to 19", value);
        return -EINVAL;
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return -ENOMEM;
    c->host = host;
    c->value = (int)value;
    *ret_ctx = c;
    return 0;
}

static void nice_close(void *ctx)
{
    free(ctx);
}

static int nice_probe(void *ctx, struct cw_plugin_err *err)
{
    (void)ctx;
    (void)err;
    return 0; /* every Linux can do this */
}

/* A plan line that this box cannot carry out is the job's fault: -EINVAL and a sentence. */
static int nice_prepare(void *ctx, const struct cw_task_view *task, const struct cw_plan *plan,
                        void **ret_box, struct cw_plugin_err *err)
{
    const struct nice_ctx *c = ctx;
    const struct cw_plan_line *line;
    struct nice_box *b;

    (void)task;
    for (uint32_t i = 0; (line = c->host->plan_get(c->host, plan, i)) != NULL; i++)
        if (line->kind == CW_PLAN_MOUNT && strcmp(line->a, line->b) != 0) {
            snprintf(err->text, sizeof(err->text), "%s: cannot mount %.100s here", line->origin,
                     line->a);
            return -EINVAL;
        }
    b = calloc(1, sizeof(*b));
    if (b == NULL)
        return -ENOMEM;
    b->value = c->value;
    *ret_box = b;
    return 0;
}

/* In the new process, before it becomes the user's: system calls only, no malloc, no stdio. */
static int nice_enter(void *ctx, void *box)
{
    const struct nice_box *b = box;
    struct sched_param none = {.sched_priority = 0};

    (void)ctx;
    if (setsid() < 0 && getsid(0) != getpid())
        return -errno;
    if (setpriority(PRIO_PROCESS, 0, b->value) < 0)
        return -errno;
    return sched_setscheduler(0, SCHED_BATCH, &none) < 0 ? -errno : 0;
}

static int nice_started(void *ctx, void *box, pid_t leader)
{
    struct nice_box *b = box;

    (void)ctx;
    b->leader = leader;
    return 0;
}

/* The leader's process group; 1 stands for "some". A process that leaves the group is lost: this
 * plugin does not claim CW_ISOLATION_CAP_CONTAIN. */
static int nice_signal(void *ctx, void *box, int sig)
{
    const struct nice_box *b = box;

    (void)ctx;
    if (b->leader == 0)
        return 0;
    if (kill(-b->leader, sig) == 0)
        return 1;
    return errno == ESRCH ? 0 : -errno;
}

static int nice_kill(void *ctx, void *box)
{
    return nice_signal(ctx, box, SIGKILL);
}

static int nice_usage(void *ctx, void *box, struct cw_box_usage *ret)
{
    (void)ctx;
    (void)box;
    ret->source = ""; /* measures nothing; the leader's own figures are used */
    return 0;
}

static int nice_release(void *ctx, void *box)
{
    int n = box == NULL ? 0 : nice_signal(ctx, box, 0);

    if (n != 0)
        return n < 0 ? n : -EBUSY;
    free(box);
    return 0;
}

/* Keeps no record of its boxes, so after a crash there is nothing it could find. */
static int nice_reclaim(void *ctx, const char *key, struct cw_plugin_err *err)
{
    (void)ctx;
    (void)key;
    (void)err;
    return 0;
}

static const struct cw_isolation_ops ops = {
    .probe = nice_probe,
    .prepare = nice_prepare,
    .enter = nice_enter,
    .signal = nice_signal,
    .kill = nice_kill,
    .usage = nice_usage,
    .release = nice_release,
    .reclaim = nice_reclaim,
    .started = nice_started,
};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = sizeof(struct cw_plugin),
    .abi_major = CW_PLUGIN_ABI_MAJOR,
    .abi_minor = CW_PLUGIN_ABI_MINOR,
    .family = "isolation",
    .name = "nice",
    .version = "1.0",
    .options = options,
    .open = nice_open,
    .close = nice_close,
    .ops = &ops,
    .ops_size = sizeof(ops),
};
