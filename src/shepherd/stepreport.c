/* Records of steps for the controller; see stepreport.h. */
#include "shepherd/stepreport.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "proto/walk.h"
#include "spec/outcome.h"

#define NS_PER_US 1000u

uint32_t cw_stepreport_oom(const struct cw_task *t)
{
    struct cw_box_usage box = { .size = sizeof box, .source = "" };
    if (t->box == NULL || !CW_PLUG_HAS(isolation, t->isolation, usage) ||
        CW_PLUG_OPS(isolation, t->isolation)
                ->usage(cw_plug_ctx(t->isolation), t->box, &box) < 0)
        return 0;
    return box.oom_kills;
}

void cw_stepreport_rank(const struct cw_steptask *t, Cw__StepTaskEnd *ret)
{
    cw__step_task_end__init(ret);
    ret->rank = t->rank;
    ret->message = t->message;
    if (!t->reaped) {
        ret->has_exit_code = t->exit_code != 0;
        ret->exit_code = t->exit_code;
    } else if (WIFEXITED(t->wait_status)) {
        ret->has_exit_code = 1;
        ret->exit_code = (uint32_t)WEXITSTATUS(t->wait_status);
    } else if (WIFSIGNALED(t->wait_status)) {
        ret->has_signal = 1;
        ret->signal = (uint32_t)WTERMSIG(t->wait_status);
        ret->has_core_dumped = 1;
        ret->core_dumped = WCOREDUMP(t->wait_status);
    }
}

static bool killed_by_kernel(const struct cw_step *s)
{
    bool killed = false;
    for (size_t i = 0; i < s->n; i++)
        killed |= s->tasks[i].reaped && WIFSIGNALED(s->tasks[i].wait_status) &&
                  WTERMSIG(s->tasks[i].wait_status) == SIGKILL;
    return killed && cw_stepreport_oom(s->task) > s->oom_before;
}

static Cw__Cause cause_of(const struct cw_step *s)
{
    if (s->kill_cause != 0)
        return (Cw__Cause)s->kill_cause;
    if (s->task->kill_cause != 0)
        return (Cw__Cause)s->task->kill_cause;
    if (killed_by_kernel(s))
        return CW__CAUSE__CAUSE_OOM;
    if (s->fault_node)
        return CW__CAUSE__CAUSE_LAUNCH_NODE;
    if (s->fault_user)
        return CW__CAUSE__CAUSE_LAUNCH_USER;
    return s->bad_cause != 0 ? (Cw__Cause)s->bad_cause : CW__CAUSE__CAUSE_EXIT;
}

/* The highest exit code, the first signal, the first sentence. */
static void fill_fate(const struct cw_step *s, Cw__StepRecord *r)
{
    for (size_t i = 0; i < s->n; i++) {
        Cw__StepTaskEnd e;
        cw_stepreport_rank(&s->tasks[i], &e);
        if (e.has_exit_code && (!r->has_exit_code || e.exit_code > r->exit_code)) {
            r->has_exit_code = 1;
            r->exit_code = e.exit_code;
        }
        if (e.has_signal && !r->has_signal) {
            r->has_signal = 1;
            r->signal = e.signal;
        }
        if (r->message == NULL)
            r->message = e.message;
    }
}

static uint64_t ns_of(const struct timeval *v)
{
    return ((uint64_t)v->tv_sec * 1000000u + (uint64_t)v->tv_usec) * NS_PER_US;
}

static void fill_usage(const struct cw_step *s, Cw__Usage *u)
{
    u->has_cpu_user_ns = u->has_cpu_sys_ns = u->has_maxrss_bytes = 1;
    u->cpu_user_ns = ns_of(&s->usage.ru_utime);
    u->cpu_sys_ns = ns_of(&s->usage.ru_stime);
    u->maxrss_bytes = (uint64_t)s->usage.ru_maxrss * 1024u;
    u->source = (char *)(uintptr_t) "wait4";
}

static void fill_state(const struct cw_step *s, Cw__StepRecord *r)
{
    Cw__TaskEnd e = CW__TASK_END__INIT;
    e.cause = (Cw__Cause)s->cause;
    e.has_exit_code = r->has_exit_code;
    e.exit_code = r->exit_code;
    e.has_signal = r->has_signal;
    e.signal = r->signal;
    r->state = cw_outcome_state(&e);
    r->has_cause = 1;
    r->cause = e.cause;
    r->has_end_ns = 1;
    r->end_ns = s->end_ns;
}

static void report(struct cw_step *s, bool end, struct cw_buf *out)
{
    Cw__StepReport m = CW__STEP_REPORT__INIT;
    Cw__StepRecord r = CW__STEP_RECORD__INIT;
    Cw__Usage usage = CW__USAGE__INIT;
    char *node = (char *)(uintptr_t)s->herd->node;
    r.id = s->task->id;
    r.attempt = s->task->attempt;
    r.step = s->number;
    r.name = (char *)(uintptr_t)s->name;
    r.has_ntasks = 1;
    r.ntasks = (uint32_t)s->n;
    r.n_nodes = 1;
    r.nodes = &node;
    r.state = CW__STATE__RUNNING;
    r.has_start_ns = 1;
    r.start_ns = s->start_ns;
    if (end) {
        fill_fate(s, &r);
        fill_state(s, &r);
        fill_usage(s, &usage);
        r.usage = &usage;
    }
    m.step = &r;
    m.node = s->layout->node;
    m.has_started = !end;
    m.started = !end;
    cw_walk_pack(&m.base, out);
    cw_herd_tell(s->herd, CW_PACKET_STEP_REPORT, out->data, out->len);
}

void cw_stepreport_started(struct cw_step *s)
{
    report(s, false, &s->started);
}

void cw_stepreport_end(struct cw_step *s)
{
    s->cause = (int)cause_of(s);
    report(s, true, &s->end);
}
