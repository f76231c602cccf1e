/* isolation/faulty, a plugin for tests: fails at the n-th call of its life, n from FAULTY_AT, with
 * the errno of FAULTY_ERRNO. FAULTY_BOXES tells how many boxes live, FAULTY_FIRED that it failed.
 * The box is the leader's process group. Test: herd_test.c. */
#include <crunwlm/plugin.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct box {
    pid_t leader;
    int fail_at, fail_errno;
};
static int calls, boxes;

static int env_int(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? (int)strtol(text, NULL, 10) : 0;
}

static void tell(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static int fault(const struct box *b)
{
    return ++calls == b->fail_at ? -b->fail_errno : 0;
}

static int probe(void *ctx, struct cw_plugin_err *err)
{
    (void)ctx;
    (void)err;
    return 0;
}

static int prepare(void *ctx, const struct cw_task_view *task, const struct cw_plan *plan,
                   void **ret_box, struct cw_plugin_err *err)
{
    struct box *b = calloc(1, sizeof *b);
    (void)ctx;
    (void)task;
    (void)plan;
    if (b == NULL)
        return -ENOMEM;
    calls = 0;
    b->fail_at = env_int("FAULTY_AT");
    b->fail_errno = env_int("FAULTY_ERRNO");
    int rc = fault(b);
    if (rc < 0) {
        snprintf(err->text, sizeof err->text, "told to fail");
        tell("FAULTY_FIRED", 1);
        free(b);
        return rc;
    }
    tell("FAULTY_BOXES", ++boxes);
    *ret_box = b;
    return 0;
}

static int enter(void *ctx, void *box)
{
    (void)ctx;
    return fault(box); /* in the child, which shares our memory */
}

static int started(void *ctx, void *box, pid_t leader)
{
    (void)ctx;
    ((struct box *)box)->leader = leader;
    return 0;
}

static int send_signal(void *ctx, void *box, int sig)
{
    const struct box *b = box;
    (void)ctx;
    int rc = fault(b);
    if (rc < 0)
        return rc;
    return b->leader != 0 && kill(-b->leader, sig) == 0 ? 1 : 0;
}

static int kill_all(void *ctx, void *box)
{
    return send_signal(ctx, box, SIGKILL);
}

static int usage(void *ctx, void *box, struct cw_box_usage *ret)
{
    (void)ctx;
    ret->source = "faulty";
    ret->cpu_user_ns = 5;
    return fault(box);
}

static int release(void *ctx, void *box)
{
    (void)ctx;
    if (fault(box) < 0)
        return -EBUSY;
    if (calls >= ((struct box *)box)->fail_at)
        tell("FAULTY_FIRED", 1);
    tell("FAULTY_BOXES", --boxes);
    free(box);
    return 0;
}

static int reclaim(void *ctx, const char *key, struct cw_plugin_err *err)
{
    (void)ctx;
    (void)key;
    (void)err;
    return 0;
}

static const struct cw_isolation_ops ops = {
    .probe = probe,
    .prepare = prepare,
    .enter = enter,
    .signal = send_signal,
    .kill = kill_all,
    .usage = usage,
    .release = release,
    .reclaim = reclaim,
    .started = started,
};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = sizeof(struct cw_plugin),
    .abi_major = CW_PLUGIN_ABI_MAJOR,
    .family = "isolation",
    .name = "faulty",
    .version = "1",
    .ops = &ops,
    .ops_size = sizeof ops,
};
