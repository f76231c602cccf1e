/* The tasks of one shepherd; see herd.h. */
#include "shepherd/herd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/walk.h"
#include "shepherd/earlysignal.h"
#include "shepherd/ending.h"
#include "shepherd/outfiles.h"
#include "shepherd/stepcall.h"
#include "shepherd/steps.h"
#include "shepherd/stepserve.h"
#include "shepherd/stepset.h"

#define JOURNAL_IDLE_BYTES (64u << 10) /* nothing to tell: begin anew above this */
#define JOURNAL_TIDY_BYTES (4u << 20)  /* rewritten above this, and above what its tasks may need  \
                                        */
#define JOURNAL_TASK_BYTES 4096u

int64_t cw_herd_now_ms(void)
{
    return cw_clock_mono_ns() / CW_NS_PER_MS;
}

void cw_herd_wake(struct cw_herd *h, int64_t at_ms)
{
    if (at_ms < h->next_due)
        h->next_due = at_ms;
}

void cw_herd_tell(struct cw_herd *h, enum cw_packet_type type, const void *body, size_t n)
{
    if (h->peer == NULL)
        return;
    int rc = cw_packets_add(h->peer, type, body, n);
    if (rc < 0)
        cw_log_error("tell the node daemon: %s", strerror(-rc));
}

int cw_herd_journal(struct cw_herd *h, enum cw_journal_type type, const struct cw_task *t,
                    const void *body, size_t n)
{
    int rc = cw_journal_add(h->journal, type, t->id, t->attempt, body, n);
    if (rc < 0)
        cw_log_error("task %s: journal: %s", t->key, strerror(-rc));
    return rc;
}

void cw_herd_init(struct cw_herd *h)
{
    cw_list_init(&h->tasks);
    h->by_key = cw_strtable_create();
    h->by_pid = cw_idtable_create();
    h->identities = cw_runas_cache_create();
    h->step_pids = cw_idtable_create();
    h->io_fd = epoll_create1(EPOLL_CLOEXEC);
    h->next_due = INT64_MAX;
    h->root = geteuid() == 0;
    h->dev_null = open("/dev/null", O_RDWR | O_CLOEXEC);
    gethostname(h->hostname, sizeof h->hostname - 1);
}

static struct cw_task *task_create(struct cw_herd *h, uint64_t id, uint32_t attempt)
{
    struct cw_task *t = cw_xcalloc(1, sizeof *t);
    t->id = id;
    t->attempt = attempt;
    snprintf(t->key, sizeof t->key, "%llu.%u", (unsigned long long)id, attempt);
    t->fd_in = t->fd_out = t->fd_err = t->fd_script = -1;
    cw_list_init(&t->steps);
    cw_list_add_tail(&h->tasks, &t->link);
    cw_strtable_set(h->by_key, t->key, t);
    h->n_tasks++;
    return t;
}

static void task_destroy(struct cw_herd *h, struct cw_task *t)
{
    cw_list_remove(&t->link);
    cw_strtable_remove(h->by_key, t->key);
    if (t->pid != 0 && cw_idtable_find(h->by_pid, (uint64_t)t->pid) == t)
        cw_idtable_remove(h->by_pid, (uint64_t)t->pid);
    h->n_tasks--;
    cw_stepset_destroy(t);
    cw_buf_fini(&t->brief);
    cw_idset_fini(&t->past_steps);
    cw_outfiles_close(t);
    cw_strv_fini(&t->env);
    cw_arena_destroy(t->arena);
    cw_plan_destroy(t->plan);
    cw_buf_fini(&t->end);
    free(t->script);
    free(t->hostfile);
    free(t->stdout_path);
    free(t->stderr_path);
    for (size_t i = 0; i < t->n_volumes; i++)
        free(t->volumes[i].source);
    free(t->volumes);
    free(t);
}

void cw_herd_fini(struct cw_herd *h)
{
    cw_list_each_safe(l, &h->tasks)
        task_destroy(h, cw_list_entry(l, struct cw_task, link));
    cw_strtable_destroy(h->by_key);
    cw_idtable_destroy(h->by_pid);
    cw_idtable_destroy(h->step_pids);
    close(h->io_fd);
    cw_runas_cache_destroy(h->identities);
    close(h->dev_null);
}

static struct cw_task *find(struct cw_herd *h, const Cw__TaskKey *k)
{
    char key[36];
    snprintf(key, sizeof key, "%llu.%u", (unsigned long long)k->id, k->attempt);
    return cw_strtable_find(h->by_key, key);
}

static void pack_started(const struct cw_task *t, struct cw_buf *out)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskStarted m = CW__TASK_STARTED__INIT;
    key.id = t->id;
    key.attempt = t->attempt;
    m.key = &key;
    m.pid = (uint32_t)t->pid;
    m.start_ns = t->start_ns;
    m.has_cpus_bound = 1;
    m.cpus_bound = t->cpus_bound;
    m.stdout_path = t->stdout_path;
    m.stderr_path = t->stderr_path;
    cw_walk_pack(&m.base, out);
}

static void tell_started(struct cw_herd *h, const struct cw_task *t, bool journal)
{
    cw_autobuf struct cw_buf b = { 0 };
    pack_started(t, &b);
    if (journal)
        cw_herd_journal(h, CW_JOURNAL_PID, t, b.data, b.len);
    cw_herd_tell(h, CW_PACKET_STARTED, b.data, b.len);
}

static void tell_key(struct cw_herd *h, enum cw_packet_type type, const struct cw_task *t)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskEmptied m = CW__TASK_EMPTIED__INIT;
    cw_autobuf struct cw_buf b = { 0 };
    key.id = t->id;
    key.attempt = t->attempt;
    m.key = &key;
    cw_walk_pack(&m.base, &b);
    cw_herd_tell(h, type, b.data, b.len);
}

/* All that is known of a task, in the order in which it happened. */
static void tell_all(struct cw_herd *h, const struct cw_task *t)
{
    if (t->start_ns != 0)
        tell_started(h, t, false);
    cw_stepset_tell(h, t);
    if (t->phase == CW_TASK_ENDED || t->phase == CW_TASK_LEFTOVER)
        cw_herd_tell(h, CW_PACKET_END, t->end.data, t->end.len);
    if (t->emptied)
        tell_key(h, CW_PACKET_EMPTIED, t);
}

void cw_herd_list(struct cw_herd *h)
{
    cw_list_each(l, &h->tasks)
        tell_all(h, cw_list_entry(l, struct cw_task, link));
    cw_herd_tell(h, CW_PACKET_LISTED, NULL, 0);
}

static void fill(struct cw_task *t, const Cw__TaskStart *s, int64_t now)
{
    t->start = s;
    t->uid = s->owner->uid;
    t->gid = s->owner->gid;
    t->mem_bytes = s->grant->mem_bytes;
    t->kill_grace_ms = s->kill_grace_ms;
    t->headless = (s->has_node && s->node > 0) || (s->spec->has_allocation && s->spec->allocation);
    if (s->has_time_left_ms && s->time_left_ms < (uint64_t)INT64_MAX / 2)
        t->limit_at = now + (int64_t)s->time_left_ms + 1;
    cw_earlysignal_plan(t, s, now);
}

/* What its steps will need of it. The payload may be large and is not for them. */
static void keep_brief(struct cw_task *t, const Cw__TaskStart *s)
{
    Cw__TaskStart brief = *s;
    Cw__Payload none = CW__PAYLOAD__INIT;
    brief.payload = &none;
    cw_walk_pack(&brief.base, &t->brief);
}

static void start(struct cw_herd *h, struct cw_arena *a, const Cw__TaskStart *s)
{
    struct cw_error err = { 0 };
    int exit_code = 0;
    struct cw_task *t = task_create(h, s->key->id, s->key->attempt);
    t->arena = a;
    fill(t, s, cw_herd_now_ms());
    keep_brief(t, s);
    const char *isolation = s->isolation != NULL ? s->isolation : "";
    /* What is not written down would be nobody's when this shepherd dies: it is not started. */
    int rc = cw_herd_journal(h, CW_JOURNAL_START, t, isolation, strlen(isolation));
    if (rc < 0)
        cw_fail_node(&err, rc, "journal of the node's shepherd: %s", strerror(-rc));
    else
        rc = cw_steps_run(h, t, &exit_code, &err);
    if (rc < 0) {
        t->limit_at = 0;
        cw_ending_launch_failed(h, t, &err, exit_code);
        cw_steps_finish(t);
        return;
    }
    t->phase = CW_TASK_RUNNING;
    if (!t->headless)
        cw_idtable_set(h->by_pid, (uint64_t)t->pid, t);
    if (t->limit_at != 0)
        cw_herd_wake(h, t->early_at != 0 ? t->early_at : t->limit_at);
    tell_started(h, t, true);
    cw_steps_finish(t);
}

/* The parts of a START that every later line relies on. */
static bool complete(const Cw__TaskStart *s)
{
    return s->spec != NULL && s->payload != NULL && s->owner != NULL && s->grant != NULL &&
           s->isolation != NULL;
}

static void on_start(struct cw_herd *h, const void *body, size_t n)
{
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m;
    struct cw_error err;
    if (cw_walk_unpack(&cw__task_start__descriptor, body, n, a, &m, &err) < 0) {
        cw_log_error("START: %s", err.text);
        cw_arena_destroy(a);
        return;
    }
    const Cw__TaskStart *s = (const Cw__TaskStart *)m;
    const struct cw_task *known = find(h, s->key);
    if (known == NULL && complete(s)) {
        start(h, a, s);
        return;
    }
    if (known != NULL)
        tell_all(h, known);
    cw_arena_destroy(a);
}

/* What the journal must say of a task that is still here. */
static void journal_again(struct cw_herd *h, const struct cw_task *t)
{
    const char *isolation = t->isolation != NULL ? cw_plug_desc(t->isolation)->name : "";
    cw_herd_journal(h, CW_JOURNAL_START, t, isolation, strlen(isolation));
    if (t->start_ns != 0) {
        cw_autobuf struct cw_buf b = { 0 };
        pack_started(t, &b);
        cw_herd_journal(h, CW_JOURNAL_PID, t, b.data, b.len);
    }
    if (t->end.len > 0)
        cw_herd_journal(h, CW_JOURNAL_EXIT, t, t->end.data, t->end.len);
    if (t->emptied)
        cw_herd_journal(h, CW_JOURNAL_EMPTIED, t, NULL, 0);
}

/* Keeps the journal as small as what is left to tell. A failed record shows in the log; the old
 * file is replaced only by a complete one. */
static void tidy(struct cw_herd *h)
{
    size_t bytes = cw_journal_bytes(h->journal);
    if (h->n_tasks == 0 && bytes > JOURNAL_IDLE_BYTES) {
        cw_journal_reset(h->journal);
        return;
    }
    if (bytes < JOURNAL_TIDY_BYTES || bytes < h->n_tasks * JOURNAL_TASK_BYTES)
        return;
    int rc = cw_journal_rewrite_begin(h->journal);
    if (rc == 0) {
        cw_list_each(l, &h->tasks)
            journal_again(h, cw_list_entry(l, struct cw_task, link));
        rc = cw_journal_rewrite_commit(h->journal);
    }
    if (rc < 0)
        cw_log_warn("rewrite the journal: %s", strerror(-rc));
}

static void forget_if_done(struct cw_herd *h, struct cw_task *t)
{
    if (!t->forgotten || t->phase != CW_TASK_ENDED || t->box != NULL || !cw_list_empty(&t->steps))
        return;
    task_destroy(h, t);
    tidy(h);
}

/* A leftover that the node daemon forgets is still watched: the box is ours until it is empty. */
static void on_forget(struct cw_herd *h, const Cw__TaskKey *k)
{
    struct cw_task *t = find(h, k);
    if (t == NULL || t->phase != CW_TASK_ENDED)
        return;
    t->forgotten = true;
    cw_herd_journal(h, CW_JOURNAL_FORGET, t, NULL, 0);
    forget_if_done(h, t);
}

/* The limit counts from its start, as before; only what is left has changed. */
static void on_limit(struct cw_herd *h, const Cw__TaskLimit *m)
{
    struct cw_task *t = find(h, m->key);
    if (t == NULL || t->phase != CW_TASK_RUNNING || t->kill_cause != 0)
        return;
    int64_t old = t->limit_at, now = cw_herd_now_ms();
    t->limit_at = m->has_time_left_ms && m->time_left_ms < INT64_MAX / 2
                      ? now + (int64_t)m->time_left_ms + 1
                      : 0;
    cw_earlysignal_moved(t, old, now);
    if (t->limit_at != 0)
        cw_herd_wake(h, t->early_at != 0 ? t->early_at : t->limit_at);
}

static void on_signal(struct cw_herd *h, const Cw__TaskSignal *m)
{
    struct cw_task *t = find(h, m->key);
    if (t != NULL && t->phase == CW_TASK_RUNNING && m->signal > 0 && m->signal < 65)
        CW_PLUG_OPS(isolation, t->isolation)
            ->signal(cw_plug_ctx(t->isolation), t->box, (int)m->signal);
}

static void on_kill(struct cw_herd *h, const Cw__TaskKill *m)
{
    struct cw_task *t = find(h, m->key);
    if (t != NULL)
        cw_ending_kill(h, t, m->cause, m->grace_ms);
}

static void on_step_ack(struct cw_herd *h, const void *body, size_t n)
{
    struct cw_stepack a;
    Cw__TaskKey k = CW__TASK_KEY__INIT;
    if (cw_stepack_unpack(body, n, &a) < 0)
        return;
    k.id = a.id;
    k.attempt = a.attempt;
    struct cw_task *t = find(h, &k);
    if (t != NULL)
        cw_stepset_acked(t, a.step, a.end);
}

/* OPEN: u64 request, u32 uid, u32 gid, path. */
static void on_open(struct cw_herd *h, const char *body, size_t n)
{
    uint64_t request;
    uint32_t uid, gid;
    if (n < 17 || n > 16 + 4096 || h->peer == NULL)
        return;
    memcpy(&request, body, 8);
    memcpy(&uid, body + 8, 4);
    memcpy(&gid, body + 12, 4);
    cw_autofree char *path = cw_xstrndup(body + 16, n - 16);
    struct cw_error err = { 0 };
    int fd = cw_outfiles_open_log(h, uid, gid, path, &err);
    int32_t rc = fd < 0 ? fd : 0;
    cw_autobuf struct cw_buf b = { 0 };
    cw_buf_add(&b, &request, sizeof request);
    cw_buf_add(&b, &rc, sizeof rc);
    if (rc < 0)
        cw_buf_add_str(&b, err.text);
    if (fd >= 0)
        cw_packets_add_fd(h->peer, CW_PACKET_OPENED, b.data, b.len, fd);
    else
        cw_herd_tell(h, CW_PACKET_OPENED, b.data, b.len);
}

void cw_herd_packet(struct cw_herd *h, enum cw_packet_type type, const void *body, size_t n)
{
    const ProtobufCMessageDescriptor *d = type == CW_PACKET_KILL     ? &cw__task_kill__descriptor
                                          : type == CW_PACKET_SIGNAL ? &cw__task_signal__descriptor
                                          : type == CW_PACKET_FORGET ? &cw__task_key__descriptor
                                          : type == CW_PACKET_LIMIT  ? &cw__task_limit__descriptor
                                                                     : NULL;
    if (type == CW_PACKET_START)
        on_start(h, body, n);
    else if (type == CW_PACKET_OPEN)
        on_open(h, body, n);
    else if (type == CW_PACKET_STEP_CALL)
        cw_stepserve_call(h, body, n);
    else if (type == CW_PACKET_STEP_ACK)
        on_step_ack(h, body, n);
    if (d == NULL)
        return;
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m;
    if (cw_walk_unpack(d, body, n, a, &m, NULL) == 0) {
        if (type == CW_PACKET_KILL)
            on_kill(h, (const Cw__TaskKill *)m);
        else if (type == CW_PACKET_SIGNAL)
            on_signal(h, (const Cw__TaskSignal *)m);
        else if (type == CW_PACKET_LIMIT)
            on_limit(h, (const Cw__TaskLimit *)m);
        else
            on_forget(h, (const Cw__TaskKey *)m);
    }
    cw_arena_destroy(a);
}

void cw_herd_reap(struct cw_herd *h)
{
    int status;
    struct rusage ru;
    pid_t pid;
    while ((pid = wait4(cw_stepset_dying(h), &status, WNOHANG, &ru)) > 0) {
        struct cw_task *t = cw_idtable_remove(h->by_pid, (uint64_t)pid);
        if (t != NULL)
            cw_ending_leader(h, t, status, &ru);
        else
            cw_stepset_reaped(h, pid, status, &ru);
    }
    if (h->n_emptying == 0)
        return;
    int64_t now = cw_herd_now_ms();
    cw_list_each_safe(l, &h->tasks) {
        struct cw_task *t = cw_list_entry(l, struct cw_task, link);
        if (cw_ending_awaits_empty(t))
            cw_ending_recheck(h, t, now);
    }
}

void cw_herd_due(struct cw_herd *h)
{
    int64_t now = cw_herd_now_ms();
    if (now < h->next_due)
        return;
    h->next_due = INT64_MAX;
    cw_list_each_safe(l, &h->tasks) {
        struct cw_task *t = cw_list_entry(l, struct cw_task, link);
        cw_ending_due(h, t, now);
        cw_stepset_due(h, t, now);
        forget_if_done(h, t);
    }
}

void cw_herd_kill_all(struct cw_herd *h, Cw__Cause cause)
{
    cw_list_each(l, &h->tasks) {
        struct cw_task *t = cw_list_entry(l, struct cw_task, link);
        cw_ending_kill(h, t, cause, t->kill_grace_ms);
    }
}

bool cw_herd_idle(const struct cw_herd *h)
{
    return h->n_tasks == 0;
}

bool cw_herd_running(const struct cw_herd *h)
{
    for (const struct cw_list *l = h->tasks.next; l != &h->tasks; l = l->next)
        if (cw_list_entry(l, struct cw_task, link)->phase != CW_TASK_ENDED)
            return true;
    return false;
}
