/* isolation/none: no box. The task shares everything with the machine; this plugin only remembers
 * which processes are its own, so that they can be signalled and counted.
 *
 * A process belongs to a task when it is in a session or process group that an enter() made, when
 * its parent belongs, or when it lost its parent, came back to us (the shepherd is a subreaper) and
 * was started with the task's CRUN_JOB_ID and CRUN_ATTEMPT. A process that leaves the session,
 * loses its parents *and* wipes its environment escapes: this plugin does not claim to contain.
 * Only environment and limits nofile and core of a plan can be honoured here. Test: none_test.c. */
#include <crunwlm/plugin.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "isolation/boxplan.h"
#include "isolation/none/procscan.h"

#define KILL_ROUNDS   100 /* a round kills all it sees; only a fork bomb needs more than three */
#define N_MARKS       2
#define N_MARKS_NODE  4 /* with cluster and node */
#define MARK_MAX      320
#define SHEPHERD_COMM "crun-shepherd"

struct none_ctx {
    const struct cw_host *host;
    struct procscan scan;
};

struct marks {
    char text[N_MARKS_NODE][MARK_MAX];
    const char *v[N_MARKS_NODE];
    size_t n;
};

/* A process that the shepherd made here; its pid names its session and group, too. */
struct entrant {
    pid_t pid;
    uint64_t start_ticks;
    bool stays, reused; /* as of the last scan */
};

struct none_box {
    struct boxplan plan;
    struct marks marks;
    struct entrant *entrants; /* whose session may still have members */
    size_t n, cap;
    bool started;
};

static int none_open(const struct cw_host *host, void **ret_ctx, struct cw_plugin_err *err)
{
    struct none_ctx *c = calloc(1, sizeof(*c));
    int r = c == NULL ? -ENOMEM : procscan_open(&c->scan);

    if (r < 0) {
        snprintf(err->text, sizeof(err->text), "/proc: %s", strerror(-r));
        free(c);
        return r;
    }
    c->host = host;
    *ret_ctx = c;
    return 0;
}

static void none_close(void *ctx)
{
    struct none_ctx *c = ctx;

    procscan_close(&c->scan);
    free(c);
}

static int none_probe(void *ctx, struct cw_plugin_err *err)
{
    (void)ctx;
    (void)err;
    return 0;
}

static void add_mark(struct marks *m, const char *name, const char *value)
{
    snprintf(m->text[m->n], MARK_MAX, "%s=%s", name, value);
    m->v[m->n] = m->text[m->n];
    m->n++;
}

static void make_marks(struct marks *m, uint64_t id, uint32_t attempt)
{
    char number[32];

    m->n = 0;
    snprintf(number, sizeof(number), "%llu", (unsigned long long)id);
    add_mark(m, "CRUN_JOB_ID", number);
    snprintf(number, sizeof(number), "%u", (unsigned)attempt);
    add_mark(m, "CRUN_ATTEMPT", number);
}

static int none_prepare(void *ctx, const struct cw_task_view *task, const struct cw_plan *plan,
                        void **ret_box, struct cw_plugin_err *err)
{
    struct none_ctx *c = ctx;
    struct none_box *b = calloc(1, sizeof(*b));
    int r;

    if (b == NULL)
        return -ENOMEM;
    r = boxplan_read(c->host, task, plan, &b->plan, err);
    if (r < 0) {
        free(b);
        return r;
    }
    make_marks(&b->marks, task->id, task->attempt);
    *ret_box = b;
    return 0;
}

static int none_enter(void *ctx, void *box)
{
    const struct none_box *b = box;

    (void)ctx;
    if (setsid() < 0 && getsid(0) != getpid())
        return -errno;
    return boxplan_set_rlimits(&b->plan);
}

static int none_started(void *ctx, void *box, pid_t leader)
{
    struct none_ctx *c = ctx;
    struct none_box *b = box;

    b->started = true;
    if (b->n == b->cap) {
        size_t cap = b->cap > 0 ? b->cap * 2 : 1;
        struct entrant *more = realloc(b->entrants, cap * sizeof(*more));
        if (more == NULL)
            return -ENOMEM; /* its environment still tells whose it is */
        b->entrants = more;
        b->cap = cap;
    }
    b->entrants[b->n++] = (struct entrant){
        .pid = leader, .start_ticks = procscan_start_ticks(&c->scan, leader)};
    return 0;
}

/* ---- who belongs --------------------------------------------------------------------------------
 */

/* While a session or group lives its number is not reused as a pid: a stranger with the entrant's
 * pid means that ours are gone and the number names something else. */
static bool number_is_reused(struct none_ctx *c, const struct entrant *e)
{
    const struct procscan_proc *p = procscan_find(&c->scan, e->pid);

    return p != NULL && e->start_ticks != 0 && p->start_ticks != e->start_ticks;
}

static bool in_a_session(struct none_box *b, const struct procscan_proc *p)
{
    for (size_t i = 0; i < b->n; i++) {
        struct entrant *e = &b->entrants[i];
        if (!e->reused && (p->session == e->pid || p->pgrp == e->pid))
            return e->stays = true;
    }
    return false;
}

/* What has no member any more is let go, before its number names something else. */
static void drop_gone(struct none_box *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        if (b->entrants[i].stays)
            b->entrants[n++] = b->entrants[i];
    b->n = n;
}

/* Marks the children of the marked until nothing changes; returns how many are marked. */
static size_t mark_descendants(struct procscan *s)
{
    bool changed = true;
    size_t n = 0;

    while (changed) {
        changed = false;
        for (size_t i = 0; i < s->n; i++) {
            const struct procscan_proc *parent;
            if (s->procs[i].member)
                continue;
            parent = procscan_find(s, s->procs[i].ppid);
            if (parent == NULL || !parent->member)
                continue;
            s->procs[i].member = changed = true;
        }
    }
    for (size_t i = 0; i < s->n; i++)
        n += s->procs[i].member;
    return n;
}

/* Marks every living process of the box in the scan; how many, or a negative errno. */
static int find_members(struct none_ctx *c, struct none_box *b)
{
    struct procscan *s = &c->scan;
    pid_t self = getpid();
    int r = procscan_run(s, false);

    if (r < 0)
        return r;
    for (size_t i = 0; i < b->n; i++) {
        b->entrants[i].stays = false;
        b->entrants[i].reused = number_is_reused(c, &b->entrants[i]);
    }
    for (size_t i = 0; i < s->n; i++) {
        struct procscan_proc *p = &s->procs[i];
        p->member = in_a_session(b, p);
        if (!p->member && p->pid != self && (p->ppid == self || p->ppid == 1))
            p->member = procscan_has_env(s, p->pid, b->marks.v, b->marks.n);
    }
    drop_gone(b);
    return (int)mark_descendants(s);
}

/* ---- signals ------------------------------------------------------------------------------------
 */

/* By pidfd, after a second look at the start time: the pid cannot have become somebody else's. */
static int send_signal(struct procscan *s, const struct procscan_proc *p, int sig)
{
    int fd = (int)syscall(SYS_pidfd_open, p->pid, 0), r = 0;

    if (fd < 0 && errno != ENOSYS)
        return -errno;
    if (procscan_start_ticks(s, p->pid) != p->start_ticks)
        r = -ESRCH;
    else if (fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) < 0 : kill(p->pid, sig) < 0)
        r = -errno;
    if (fd >= 0)
        close(fd);
    return r;
}

static int signal_members(struct procscan *s, int sig)
{
    int n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->procs[i].member)
            n += send_signal(s, &s->procs[i], sig) == 0;
    return n;
}

static int none_signal(void *ctx, void *box, int sig)
{
    struct none_ctx *c = ctx;
    struct none_box *b = box;
    int n = b->started ? find_members(c, b) : 0;

    return n <= 0 || sig == 0 ? n : signal_members(&c->scan, sig);
}

/* Stops all it can find before it kills, so that a forking tree stands still; repeats until a scan
 * finds nobody who was not stopped before. */
static int none_kill(void *ctx, void *box)
{
    struct none_ctx *c = ctx;
    struct none_box *b = box;
    int n = 0, before = -1;

    if (!b->started)
        return 0;
    for (int round = 0; round < KILL_ROUNDS && n != before; round++) {
        before = n;
        n = find_members(c, b);
        if (n <= 0)
            return n;
        signal_members(&c->scan, SIGSTOP);
    }
    return signal_members(&c->scan, SIGKILL);
}

static int none_usage(void *ctx, void *box, struct cw_box_usage *ret)
{
    (void)ctx;
    (void)box;
    *ret = (struct cw_box_usage){.size = sizeof(*ret), .source = ""};
    return 0;
}

static int none_release(void *ctx, void *box)
{
    int n = box == NULL ? 0 : none_signal(ctx, box, 0);

    if (n > 0)
        return -EBUSY;
    if (n < 0)
        return n;
    if (box != NULL)
        free(((struct none_box *)box)->entrants);
    free(box);
    return 0;
}

/* ---- after a crash ------------------------------------------------------------------------------
 */

/* A dead shepherd's processes went to the nearest ancestor of ours that takes orphans. Processes of
 * another instance on this machine with the same job number still hang below their own shepherd. */
static bool is_orphan(struct procscan *s, const struct procscan_proc *p)
{
    const struct procscan_proc *a;

    if (p->ppid == 1 || p->ppid == getpid())
        return true;
    for (a = procscan_find(s, getppid()); a != NULL && strcmp(a->comm, SHEPHERD_COMM) != 0;
         a = procscan_find(s, a->ppid))
        if (p->ppid == a->pid)
            return true;
    return false;
}

static bool is_ancestor(struct procscan *s, pid_t pid)
{
    pid_t at = getpid();

    while (at > 0 && at != pid) {
        const struct procscan_proc *p = procscan_find(s, at);
        at = p == NULL ? 0 : p->ppid;
    }
    return at == pid;
}

static int find_orphans(struct none_ctx *c, const struct marks *m)
{
    struct procscan *s = &c->scan;
    int r = procscan_run(s, true);

    for (size_t i = 0; r == 0 && i < s->n; i++) {
        struct procscan_proc *p = &s->procs[i];
        p->member =
            is_orphan(s, p) && !is_ancestor(s, p->pid) && procscan_has_env(s, p->pid, m->v, m->n);
    }
    return r < 0 ? r : (int)mark_descendants(s);
}

/* Waits for the end of a marked process, by event. */
static void await_end(struct procscan *s, int timeout_ms)
{
    for (size_t i = 0; i < s->n; i++) {
        struct pollfd pfd = {.events = POLLIN};
        if (!s->procs[i].member)
            continue;
        pfd.fd = (int)syscall(SYS_pidfd_open, s->procs[i].pid, 0);
        if (pfd.fd < 0)
            continue;
        poll(&pfd, 1, timeout_ms);
        close(pfd.fd);
        return;
    }
}

static int none_reclaim(void *ctx, const char *key, struct cw_plugin_err *err)
{
    struct none_ctx *c = ctx;
    const char *cluster = c->host->instance(c->host, "cluster");
    const char *node = c->host->instance(c->host, "node");
    unsigned long long id;
    unsigned attempt;
    struct marks m;
    int n = 0;

    if (sscanf(key, "%llu.%u", &id, &attempt) != 2)
        return 0;
    make_marks(&m, id, attempt);
    if (cluster != NULL)
        add_mark(&m, "CRUN_CLUSTER", cluster);
    if (node != NULL)
        add_mark(&m, "CRUN_NODENAME", node);
    for (int round = 0; round < KILL_ROUNDS; round++) {
        n = find_orphans(c, &m);
        if (n <= 0)
            return n;
        signal_members(&c->scan, SIGKILL);
        await_end(&c->scan, 50);
    }
    snprintf(err->text, sizeof(err->text), "task %s: %d processes do not die", key, n);
    return -EBUSY;
}

static const struct cw_isolation_ops ops = {
    .probe = none_probe,
    .prepare = none_prepare,
    .enter = none_enter,
    .signal = none_signal,
    .kill = none_kill,
    .usage = none_usage,
    .release = none_release,
    .reclaim = none_reclaim,
    .started = none_started,
};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = sizeof(struct cw_plugin),
    .abi_major = CW_PLUGIN_ABI_MAJOR,
    .abi_minor = CW_PLUGIN_ABI_MINOR,
    .family = "isolation",
    .name = "none",
    .version = "1.0",
    .open = none_open,
    .close = none_close,
    .ops = &ops,
    .ops_size = sizeof(ops),
};
