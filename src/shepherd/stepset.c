/* Steps from their begin to their report; see stepset.h. */
#include "shepherd/stepset.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/walk.h"
#include "shepherd/stepio.h"
#include "shepherd/stepreport.h"
#include "shepherd/stepserve.h"
#include "shepherd/steptask.h"

#define STEPS_MAX     4096u /* of one task, not counting those that are gone */
#define DRAIN_MS      200   /* for what others still hold open behind the last rank */
#define UNREAD_MS     60000 /* an ended step waits so long for a reader */
#define READ_MS       2000  /* and so long when one has seen its end: the answer may be asked again */

struct cw_step *cw_stepset_find(const struct cw_task *t, uint32_t number)
{
    for (const struct cw_list *l = t->steps.next; l != &t->steps; l = l->next)
        if (cw_list_entry(l, struct cw_step, link)->number == number)
            return cw_list_entry(l, struct cw_step, link);
    return NULL;
}

static void wake(struct cw_step *s)
{
    const int64_t at[] = { s->limit_at, s->kill_at, s->wait_at, s->silent_at, s->drain_at,
                           s->gone_at };
    for (size_t i = 0; i < CW_ARRAY_LEN(at); i++)
        if (at[i] != 0)
            cw_herd_wake(s->herd, at[i]);
}

/* ---- begin ---------------------------------------------------------------------------------- */

static int check_layout(const struct cw_task *t, const Cw__StepLayout *l, struct cw_error *err)
{
    if (l->n_ranks == 0 || l->n_ranks > CW_STEP_TASKS_MAX)
        return cw_fail(err, -EINVAL, "step: %zu tasks on one node, 1 to %u are possible",
                       l->n_ranks, CW_STEP_TASKS_MAX);
    if (cw_list_empty(&t->steps))
        return 0;
    size_t n = 0;
    for (const struct cw_list *p = t->steps.next; p != &t->steps; p = p->next)
        n++;
    return n < STEPS_MAX ? 0 : cw_fail(err, -EAGAIN, "job %s has %zu steps here", t->key, n);
}

static struct cw_step *create(struct cw_herd *h, struct cw_task *t, uint32_t number,
                              const Cw__StepLayout *layout, const Cw__StepSpec *spec)
{
    struct cw_step *s = cw_xcalloc(1, sizeof *s);
    s->herd = h;
    s->task = t;
    s->number = number;
    s->arena = cw_arena_create();
    s->layout = (const Cw__StepLayout *)cw_walk_copy(&layout->base, s->arena);
    s->name = cw_arena_strdup(s->arena, spec->name != NULL    ? spec->name
                                        : spec->n_argv > 0 ? spec->argv[0]
                                                           : "");
    s->ring = cw_stepring_create(CW_STEP_RING_BYTES);
    s->pty = -1;
    cw_list_init(&s->calls);
    s->detached = spec->has_detached && spec->detached;
    s->kill_on_bad_exit = spec->has_kill_on_bad_exit && spec->kill_on_bad_exit;
    s->wait_s = spec->has_wait_s ? spec->wait_s : 0;
    s->n = layout->n_ranks;
    s->tasks = cw_xcalloc(s->n, sizeof *s->tasks);
    for (size_t i = 0; i < s->n; i++) {
        struct cw_steptask *k = &s->tasks[i];
        k->step = s;
        k->rank = layout->ranks[i];
        k->out.fd = k->err.fd = k->in.fd = -1;
    }
    cw_list_add_tail(&t->steps, &s->link);
    h->n_steps++;
    return s;
}

/* All ranks have ended, now or at the start. */
static void over(struct cw_step *s)
{
    int64_t now = cw_herd_now_ms();
    s->end_ns = cw_clock_real_ns();
    s->limit_at = s->kill_at = s->wait_at = s->silent_at = 0;
    s->drain_at = now + DRAIN_MS;
    s->gone_at = now + UNREAD_MS;
    cw_stepreport_end(s);
    cw_stepio_drain(s, false);
    wake(s);
    cw_stepserve_news(s);
}

int cw_stepset_begin(struct cw_herd *h, struct cw_task *t, uint32_t number,
                     const Cw__StepLayout *layout, const Cw__StepSpec *spec, struct cw_error *err)
{
    int rc = check_layout(t, layout, err);
    if (rc < 0)
        return rc;
    int64_t now = cw_herd_now_ms();
    struct cw_step *s = create(h, t, number, layout, spec);
    cw_idset_add(&t->past_steps, number, number);
    s->start_ns = cw_clock_real_ns();
    s->oom_before = cw_stepreport_oom(t);
    cw_steptask_start_all(s, spec);
    for (size_t i = 0; i < s->n; i++)
        if (s->tasks[i].pid != 0)
            cw_idtable_set(h->step_pids, (uint64_t)s->tasks[i].pid, &s->tasks[i]);
    if (spec->has_time_limit_s && spec->time_limit_s < INT32_MAX)
        s->limit_at = now + (int64_t)spec->time_limit_s * 1000 + 1;
    cw_stepreport_started(s);
    cw_stepset_heard(s);
    if (cw_step_over(s))
        over(s);
    else if (s->n_ended > 0 && s->kill_on_bad_exit)
        cw_stepset_kill(s, CW__CAUSE__CAUSE_EXIT, t->kill_grace_ms);
    wake(s);
    return 0;
}

void cw_stepset_heard(struct cw_step *s)
{
    int64_t now = cw_herd_now_ms();
    if (cw_step_over(s)) {
        s->gone_at = now + (s->eof_told ? READ_MS : UNREAD_MS);
    } else if (!s->detached) {
        s->silent_at = now + CW_STEP_SILENCE_MS;
    } else {
        s->silent_at = 0;
    }
    wake(s);
}

/* ---- end ------------------------------------------------------------------------------------ */

void cw_stepset_kill(struct cw_step *s, Cw__Cause cause, uint32_t grace_ms)
{
    if (cw_step_over(s))
        return;
    bool first = s->kill_cause == 0;
    if (first)
        s->kill_cause = (int)cause;
    if (!first || grace_ms == 0) {
        s->kill_at = 0;
        cw_steptask_signal(s, SIGKILL);
        return;
    }
    cw_steptask_signal(s, SIGTERM);
    cw_steptask_signal(s, SIGCONT); /* a stopped process hears nothing */
    s->kill_at = cw_herd_now_ms() + grace_ms;
    wake(s);
}

static void add_usage(struct rusage *sum, const struct rusage *ru)
{
    timeradd(&sum->ru_utime, &ru->ru_utime, &sum->ru_utime);
    timeradd(&sum->ru_stime, &ru->ru_stime, &sum->ru_stime);
    if (ru->ru_maxrss > sum->ru_maxrss)
        sum->ru_maxrss = ru->ru_maxrss;
}

static void note_end(struct cw_steptask *t, int wait_status, const struct rusage *ru)
{
    struct cw_step *s = t->step;
    t->ended = t->reaped = true;
    t->wait_status = wait_status;
    add_usage(&s->usage, ru);
    s->n_ended++;
    cw_stepio_close(&t->in);
    bool good = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    if (!good && s->bad_cause == 0)
        s->bad_cause = WIFSIGNALED(wait_status) ? (int)CW__CAUSE__CAUSE_SIGNAL
                                                : (int)CW__CAUSE__CAUSE_EXIT;
}

pid_t cw_stepset_dying(struct cw_herd *h)
{
    siginfo_t info = { 0 };
    if (cw_idtable_count(h->step_pids) == 0 ||
        waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
        return -1;
    if (cw_idtable_find(h->step_pids, (uint64_t)info.si_pid) != NULL)
        kill(-info.si_pid, SIGKILL);
    return info.si_pid;
}

void cw_stepset_reaped(struct cw_herd *h, pid_t pid, int wait_status, const struct rusage *ru)
{
    struct cw_steptask *t = cw_idtable_remove(h->step_pids, (uint64_t)pid);
    if (t == NULL)
        return;
    struct cw_step *s = t->step;
    bool good = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    note_end(t, wait_status, ru);
    if (cw_step_over(s)) {
        over(s);
        return;
    }
    if (!good && s->kill_on_bad_exit && s->kill_cause == 0)
        cw_stepset_kill(s, (Cw__Cause)s->bad_cause, s->task->kill_grace_ms);
    if (s->wait_s > 0 && s->wait_at == 0) {
        s->wait_at = cw_herd_now_ms() + (int64_t)s->wait_s * 1000;
        wake(s);
    }
    cw_stepserve_news(s);
}

void cw_stepset_task_ending(struct cw_task *t)
{
    cw_list_each(l, &t->steps) {
        struct cw_step *s = cw_list_entry(l, struct cw_step, link);
        if (!cw_step_over(s) && s->kill_cause == 0)
            s->kill_cause = t->kill_cause != 0 ? t->kill_cause : (int)CW__CAUSE__CAUSE_CANCEL;
    }
}

void cw_stepset_task_ended(struct cw_herd *h, struct cw_task *t, Cw__Cause cause)
{
    cw_list_each(l, &t->steps) {
        struct cw_step *s = cw_list_entry(l, struct cw_step, link);
        if (cw_step_over(s))
            continue;
        if (s->kill_cause == 0)
            s->kill_cause = (int)cause;
        for (size_t i = 0; i < s->n; i++) {
            struct cw_steptask *k = &s->tasks[i];
            int status;
            struct rusage ru;
            if (k->ended)
                continue;
            cw_idtable_remove(h->step_pids, (uint64_t)k->pid);
            if (wait4(k->pid, &status, WNOHANG, &ru) == k->pid) {
                note_end(k, status, &ru);
            } else { /* cannot be killed: the task's own end says so */
                k->ended = true;
                s->n_ended++;
                cw_stepio_close(&k->in);
            }
        }
        over(s);
    }
}

/* ---- time ----------------------------------------------------------------------------------- */

static bool passed(int64_t *at, int64_t now)
{
    if (*at == 0 || *at > now)
        return false;
    *at = 0;
    return true;
}

static void destroy(struct cw_step *s)
{
    struct cw_herd *h = s->herd;
    cw_stepserve_drop(s);
    for (size_t i = 0; i < s->n; i++) {
        struct cw_steptask *t = &s->tasks[i];
        if (t->pid != 0)
            cw_idtable_remove(h->step_pids, (uint64_t)t->pid);
        cw_stepio_close(&t->out);
        cw_stepio_close(&t->err);
        cw_stepio_close(&t->in);
        free(t->message);
    }
    if (s->pty >= 0)
        close(s->pty);
    cw_list_remove(&s->link);
    h->n_steps--;
    cw_stepring_destroy(s->ring);
    cw_buf_fini(&s->in);
    cw_buf_fini(&s->started);
    cw_buf_fini(&s->end);
    cw_arena_destroy(s->arena);
    free(s->tasks);
    free(s);
}

static void due(struct cw_step *s, int64_t now)
{
    if (s->herd->peer == NULL && s->silent_at != 0)
        s->silent_at = now + CW_STEP_SILENCE_MS; /* no reader can reach us */
    if (passed(&s->limit_at, now))
        cw_stepset_kill(s, CW__CAUSE__CAUSE_TIME_LIMIT, s->task->kill_grace_ms);
    if (passed(&s->wait_at, now))
        cw_stepset_kill(s, CW__CAUSE__CAUSE_PEER, s->task->kill_grace_ms);
    if (passed(&s->silent_at, now)) {
        if (cw_stepserve_waiting(s)) {
            s->silent_at = now + CW_STEP_SILENCE_MS; /* its reader waits here */
        } else {
            cw_log_warn("task %s step %u: no reader for %d s, killed", s->task->key, s->number,
                        CW_STEP_SILENCE_MS / 1000);
            cw_stepset_kill(s, CW__CAUSE__CAUSE_OWNER_GONE, s->task->kill_grace_ms);
        }
    }
    if (passed(&s->kill_at, now))
        cw_steptask_signal(s, SIGKILL);
    if (passed(&s->drain_at, now)) {
        cw_stepio_drain(s, true);
        if (!cw_stepio_at_end(s))
            s->drain_at = now + DRAIN_MS; /* the ring is full: its reader is waited for */
        cw_stepserve_news(s);
    }
    cw_stepserve_due(s, now);
}

/* Nobody needs it any more: its reader has had its time, and the controller has its end. */
static bool may_go(const struct cw_step *s, int64_t now)
{
    if (s->herd->leaving && s->herd->peer == NULL && s->task->forgotten)
        return cw_step_over(s);
    return cw_step_over(s) && s->gone_at <= now && !cw_stepserve_waiting(s) &&
           (s->end_acked || s->task->forgotten);
}

void cw_stepset_due(struct cw_herd *h, struct cw_task *t, int64_t now)
{
    (void)h;
    cw_list_each_safe(l, &t->steps) {
        struct cw_step *s = cw_list_entry(l, struct cw_step, link);
        due(s, now);
        if (may_go(s, now))
            destroy(s);
        else if (cw_step_over(s) && s->gone_at <= now)
            s->gone_at = now + READ_MS;
    }
    cw_list_each(l, &t->steps)
        wake(cw_list_entry(l, struct cw_step, link));
}

/* ---- reports -------------------------------------------------------------------------------- */

void cw_stepset_tell(struct cw_herd *h, const struct cw_task *t)
{
    for (const struct cw_list *l = t->steps.next; l != &t->steps; l = l->next) {
        const struct cw_step *s = cw_list_entry(l, struct cw_step, link);
        if (!s->started_acked)
            cw_herd_tell(h, CW_PACKET_STEP_REPORT, s->started.data, s->started.len);
        if (s->end.len > 0 && !s->end_acked)
            cw_herd_tell(h, CW_PACKET_STEP_REPORT, s->end.data, s->end.len);
    }
}

void cw_stepset_acked(struct cw_task *t, uint32_t number, bool end)
{
    struct cw_step *s = cw_stepset_find(t, number);
    if (s == NULL)
        return;
    s->started_acked = true;
    s->end_acked |= end;
}

void cw_stepset_new_link(struct cw_herd *h)
{
    cw_list_each(l, &h->tasks) {
        struct cw_task *t = cw_list_entry(l, struct cw_task, link);
        cw_list_each(p, &t->steps) {
            struct cw_step *s = cw_list_entry(p, struct cw_step, link);
            cw_stepserve_drop(s);
            cw_stepset_heard(s);
        }
    }
}

void cw_stepset_destroy(struct cw_task *t)
{
    cw_list_each_safe(l, &t->steps)
        destroy(cw_list_entry(l, struct cw_step, link));
}
