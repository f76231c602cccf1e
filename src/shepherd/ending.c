/* How a task ends; see ending.h. */
#include "shepherd/ending.h"
#include "shepherd/earlysignal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/crashpoint.h"
#include "base/log.h"
#include "base/quantity.h"
#include "proto/walk.h"
#include "shepherd/leftover.h"
#include "shepherd/outfiles.h"
#include "shepherd/steps.h"
#include "shepherd/stepset.h"

#define CHECK_FIRST_MS 2
#define CHECK_MAX_MS   500
#define WATCH_MS       1000 /* a leftover */

static const struct cw_isolation_ops *ops(const struct cw_task *t)
{
    return CW_PLUG_OPS(isolation, t->isolation);
}

/* Processes in the box; what cannot be counted counts as one, never as none. */
static int count(const struct cw_task *t)
{
    if (t->box == NULL)
        return 0;
    int n = ops(t)->signal(cw_plug_ctx(t->isolation), t->box, 0);
    return n < 0 ? 1 : n;
}

static void kill_all(const struct cw_task *t)
{
    if (t->box != NULL)
        ops(t)->kill(cw_plug_ctx(t->isolation), t->box);
}

static void finish(struct cw_herd *h, struct cw_task *t, bool empty);

bool cw_ending_awaits_empty(const struct cw_task *t)
{
    return t->phase == CW_TASK_EMPTYING ||
           (t->headless && t->phase == CW_TASK_RUNNING && t->kill_cause != 0);
}

static void set_phase(struct cw_herd *h, struct cw_task *t, enum cw_task_phase phase)
{
    bool was = cw_ending_awaits_empty(t);
    t->phase = phase;
    h->n_emptying = h->n_emptying + (cw_ending_awaits_empty(t) ? 1 : 0) - (was ? 1 : 0);
}

static void hard_kill(struct cw_herd *h, struct cw_task *t, int64_t now)
{
    kill_all(t);
    t->kill_at = 0;
    t->limit_at = 0;
    t->give_up_at = now + CW_ENDING_DEADLINE_MS;
    cw_herd_wake(h, t->give_up_at);
}

/* The leader is gone, or there never was one: nothing in the box may live on. */
static void empty_box(struct cw_herd *h, struct cw_task *t, int64_t now)
{
    cw_stepset_task_ending(t);
    set_phase(h, t, CW_TASK_EMPTYING);
    hard_kill(h, t, now);
    t->check_step_ms = CHECK_FIRST_MS;
    t->check_at = now + CHECK_FIRST_MS;
    cw_herd_wake(h, t->check_at);
}

static void end_headless(struct cw_herd *h, struct cw_task *t)
{
    t->end_ns = cw_clock_real_ns();
    finish(h, t, true);
}

/* SIGKILL: at once, or when the grace is over. */
static void kill_now(struct cw_herd *h, struct cw_task *t, int64_t now)
{
    if (t->headless && t->phase == CW_TASK_RUNNING)
        empty_box(h, t, now);
    else
        hard_kill(h, t, now);
}

void cw_ending_kill(struct cw_herd *h, struct cw_task *t, Cw__Cause cause, uint32_t grace_ms)
{
    int64_t now = cw_herd_now_ms();
    if (t->phase != CW_TASK_RUNNING || t->give_up_at != 0)
        return; /* ended, or SIGKILL is under way */
    bool first = t->kill_cause == 0;
    if (first) {
        t->kill_cause = (int)cause;
        h->n_emptying += t->headless;
    }
    if (t->headless && count(t) == 0) {
        end_headless(h, t);
        return;
    }
    if (grace_ms == 0) {
        kill_now(h, t, now);
        return;
    }
    if (first) {
        ops(t)->signal(cw_plug_ctx(t->isolation), t->box, SIGTERM);
        ops(t)->signal(cw_plug_ctx(t->isolation), t->box,
                       SIGCONT); /* a stopped process hears nothing */
    }
    if (t->kill_at == 0 || now + grace_ms < t->kill_at)
        t->kill_at = now + grace_ms;
    cw_herd_wake(h, t->kill_at);
}

static void fill_usage(const struct cw_task *t, Cw__Usage *u, struct cw_box_usage *box)
{
    memset(box, 0, sizeof *box);
    box->size = sizeof *box;
    box->source = "";
    if (t->box != NULL && CW_PLUG_HAS(isolation, t->isolation, usage) &&
        ops(t)->usage(cw_plug_ctx(t->isolation), t->box, box) < 0)
        box->source = "";
    bool measured = box->source != NULL && box->source[0] != '\0';
    const struct rusage *ru = &t->rusage;
    u->has_cpu_user_ns = u->has_cpu_sys_ns = measured || t->reaped;
    u->cpu_user_ns = measured ? box->cpu_user_ns
                              : (uint64_t)ru->ru_utime.tv_sec * 1000000000u +
                                    (uint64_t)ru->ru_utime.tv_usec * 1000u;
    u->cpu_sys_ns = measured ? box->cpu_sys_ns
                             : (uint64_t)ru->ru_stime.tv_sec * 1000000000u +
                                   (uint64_t)ru->ru_stime.tv_usec * 1000u;
    u->has_mem_peak_bytes = measured;
    u->mem_peak_bytes = box->mem_peak_bytes;
    u->has_throttled_ns = box->throttled_ns > 0;
    u->throttled_ns = box->throttled_ns;
    u->has_maxrss_bytes = t->reaped;
    u->maxrss_bytes = (uint64_t)ru->ru_maxrss * 1024u;
    u->source = (char *)(uintptr_t)(measured ? box->source : "wait4");
}

/* The peak of anonymous memory is told only here, where it says what those who look have seen: the
 * kernel keeps none, and what was sampled now and then would be too low in the final record. */
int cw_ending_usage(struct cw_task *t, Cw__Usage *ret, uint64_t *ret_mem_bytes)
{
    struct cw_box_usage box;
    fill_usage(t, ret, &box);
    if (box.mem_anon_bytes > t->anon_peak_bytes)
        t->anon_peak_bytes = box.mem_anon_bytes;
    ret->has_mem_anon_peak_bytes = t->anon_peak_bytes > 0;
    ret->mem_anon_peak_bytes = t->anon_peak_bytes;
    *ret_mem_bytes = box.mem_now_bytes;
    return t->box == NULL ? 0 : ops(t)->signal(cw_plug_ctx(t->isolation), t->box, 0);
}

/* C6: the job's own error file says it, where people look first. */
static void say_oom(struct cw_herd *h, const struct cw_task *t, const struct cw_box_usage *box,
                    char *buf, size_t cap)
{
    char limit[32], peak[32], line[CW_ERROR_MAX];
    snprintf(buf, cap, "out of memory: limit %s, peak %s, %u process%s killed by the kernel",
             t->mem_bytes != 0 ? cw_size_format(t->mem_bytes, limit, sizeof limit) : "none",
             cw_size_format(box->mem_peak_bytes, peak, sizeof peak), box->oom_kills,
             box->oom_kills == 1 ? "" : "es");
    snprintf(line, sizeof line, "crun: job %llu on %.64s: %.300s\n", (unsigned long long)t->id,
             h->node, buf);
    cw_outfiles_say(h, t, line);
}

static Cw__Cause cause_of(const struct cw_task *t, const struct cw_box_usage *box)
{
    if (t->kill_cause != 0)
        return (Cw__Cause)t->kill_cause;
    if (box->oom_kills > 0)
        return CW__CAUSE__CAUSE_OOM;
    return WIFSIGNALED(t->wait_status) ? CW__CAUSE__CAUSE_SIGNAL : CW__CAUSE__CAUSE_EXIT;
}

static void fill_fate(const struct cw_task *t, Cw__TaskEnd *e)
{
    if (!t->reaped)
        return;
    if (WIFEXITED(t->wait_status)) {
        e->has_exit_code = 1;
        e->exit_code = (uint32_t)WEXITSTATUS(t->wait_status);
    } else if (WIFSIGNALED(t->wait_status)) {
        e->has_signal = 1;
        e->signal = (uint32_t)WTERMSIG(t->wait_status);
        e->has_core_dumped = 1;
        e->core_dumped = WCOREDUMP(t->wait_status);
    }
}

static void fill_start(const struct cw_task *t, Cw__TaskEnd *e)
{
    if (t->start_ns == 0)
        return;
    e->has_start_ns = 1;
    e->start_ns = t->start_ns;
    e->has_pid = !t->headless;
    e->pid = (uint32_t)t->pid;
    e->has_cpus_bound = 1;
    e->cpus_bound = t->cpus_bound;
}

/* The record is kept, written down, and told. */
static void record_end(struct cw_herd *h, struct cw_task *t, Cw__TaskEnd *e)
{
    e->stdout_path = t->stdout_path;
    e->stderr_path = t->stderr_path;
    e->end_ns = t->end_ns;
    cw_buf_clear(&t->end);
    cw_walk_pack(&e->base, &t->end);
    cw_crashpoint("shepherd.before-exit-record");
    cw_herd_journal(h, CW_JOURNAL_EXIT, t, t->end.data, t->end.len);
    cw_crashpoint("shepherd.after-exit-record");
}

/* A box that is empty may still need a moment to go (EBUSY): that is no business of the job. */
static void tear_down(struct cw_herd *h, struct cw_task *t)
{
    t->check_at = 0;
    if (cw_steps_tear_down(h, t) != -EBUSY)
        return;
    t->check_step_ms = t->check_step_ms != 0 && t->check_step_ms < CHECK_MAX_MS
                           ? t->check_step_ms * 2
                           : CHECK_FIRST_MS;
    t->check_at = cw_herd_now_ms() + t->check_step_ms;
    cw_herd_wake(h, t->check_at);
}

static void finish(struct cw_herd *h, struct cw_task *t, bool empty)
{
    Cw__Usage usage = CW__USAGE__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskEnd e = CW__TASK_END__INIT;
    struct cw_box_usage box;
    char message[256] = "", leftover[256] = "";
    key.id = t->id;
    key.attempt = t->attempt;
    e.key = &key;
    fill_usage(t, &usage, &box);
    e.usage = &usage;
    e.cause = cause_of(t, &box);
    e.empty = empty;
    cw_stepset_task_ended(h, t, e.cause); /* reported before it */
    fill_fate(t, &e);
    fill_start(t, &e);
    if (e.cause == CW__CAUSE__CAUSE_OOM) {
        say_oom(h, t, &box, message, sizeof message);
        e.message = message;
    }
    if (!empty) {
        cw_leftover_describe(t->pid, count(t), leftover, sizeof leftover);
        e.leftover = leftover;
    }
    record_end(h, t, &e);
    set_phase(h, t, empty ? CW_TASK_ENDED : CW_TASK_LEFTOVER);
    t->limit_at = t->kill_at = t->give_up_at = t->early_at = 0;
    if (empty) {
        tear_down(h, t);
    } else {
        t->check_at = cw_herd_now_ms() + WATCH_MS;
        cw_herd_wake(h, t->check_at);
        cw_log_warn("task %s: not empty %d s after SIGKILL: %s", t->key,
                    CW_ENDING_DEADLINE_MS / 1000, leftover);
    }
    cw_herd_tell(h, CW_PACKET_END, t->end.data, t->end.len);
}

void cw_ending_leader(struct cw_herd *h, struct cw_task *t, int wait_status,
                      const struct rusage *ru)
{
    t->reaped = true;
    t->wait_status = wait_status;
    t->rusage = *ru;
    t->end_ns = cw_clock_real_ns();
    if (t->phase != CW_TASK_RUNNING)
        return; /* given up before: the watch goes on */
    if (count(t) == 0) {
        finish(h, t, true);
        return;
    }
    empty_box(h, t, cw_herd_now_ms());
}

static void emptied(struct cw_herd *h, struct cw_task *t)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskEmptied m = CW__TASK_EMPTIED__INIT;
    cw_autobuf struct cw_buf b = { 0 };
    key.id = t->id;
    key.attempt = t->attempt;
    m.key = &key;
    cw_walk_pack(&m.base, &b);
    t->emptied = true;
    set_phase(h, t, CW_TASK_ENDED);
    cw_herd_journal(h, CW_JOURNAL_EMPTIED, t, NULL, 0);
    tear_down(h, t);
    cw_herd_tell(h, CW_PACKET_EMPTIED, b.data, b.len);
}

void cw_ending_recheck(struct cw_herd *h, struct cw_task *t, int64_t now_ms)
{
    if (t->headless && cw_ending_awaits_empty(t) && count(t) == 0)
        end_headless(h, t);
    else if (t->phase == CW_TASK_EMPTYING && count(t) == 0)
        finish(h, t, true);
    else if (t->phase == CW_TASK_LEFTOVER && (t->reaped || t->headless) && count(t) == 0)
        emptied(h, t);
    else if (t->phase == CW_TASK_ENDED && t->box != NULL && t->check_at <= now_ms)
        tear_down(h, t);
}

/* The check's timer: looks, kills again what was born since, and waits longer the next time. */
static void check(struct cw_herd *h, struct cw_task *t, int64_t now)
{
    cw_ending_recheck(h, t, now);
    if (t->phase == CW_TASK_EMPTYING) {
        kill_all(t);
        t->check_step_ms = t->check_step_ms < CHECK_MAX_MS ? t->check_step_ms * 2 : CHECK_MAX_MS;
        t->check_at = now + t->check_step_ms;
    } else if (t->phase == CW_TASK_LEFTOVER) {
        kill_all(t);
        t->check_at = now + WATCH_MS;
    }
}

static void wake_earliest(struct cw_herd *h, const struct cw_task *t)
{
    const int64_t at[] = { t->limit_at, t->kill_at, t->check_at, t->give_up_at, t->early_at };
    for (size_t i = 0; i < CW_ARRAY_LEN(at); i++)
        if (at[i] != 0)
            cw_herd_wake(h, at[i]);
}

void cw_ending_due(struct cw_herd *h, struct cw_task *t, int64_t now)
{
    cw_earlysignal_due(t, now);
    if (t->limit_at != 0 && t->limit_at <= now) {
        t->limit_at = 0;
        cw_ending_kill(h, t, CW__CAUSE__CAUSE_TIME_LIMIT, t->kill_grace_ms);
    }
    if (t->kill_at != 0 && t->kill_at <= now)
        kill_now(h, t, now);
    if (t->check_at != 0 && t->check_at <= now)
        check(h, t, now);
    if (t->give_up_at != 0 && t->give_up_at <= now) {
        if (!t->reaped)
            t->end_ns = cw_clock_real_ns();
        finish(h, t, false);
    }
    wake_earliest(h, t);
}

void cw_ending_launch_failed(struct cw_herd *h, struct cw_task *t, const struct cw_error *why,
                             int exit_code)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskEnd e = CW__TASK_END__INIT;
    char line[CW_ERROR_MAX + 64];
    key.id = t->id;
    key.attempt = t->attempt;
    e.key = &key;
    e.cause = why->fault == CW_FAULT_USER ? CW__CAUSE__CAUSE_LAUNCH_USER
                                          : CW__CAUSE__CAUSE_LAUNCH_NODE;
    e.message = (char *)(uintptr_t)why->text;
    e.empty = 1; /* no process was made, or it was reaped before its exec */
    e.has_exit_code = exit_code != 0;
    e.exit_code = (uint32_t)exit_code;
    t->end_ns = cw_clock_real_ns();
    record_end(h, t, &e);
    set_phase(h, t, CW_TASK_ENDED);
    snprintf(line, sizeof line, "crun: job %llu: %s\n", (unsigned long long)t->id, why->text);
    if (exit_code != 0)
        cw_outfiles_say(h, t, line);
    tear_down(h, t);
    cw_herd_tell(h, CW_PACKET_END, t->end.data, t->end.len);
}
