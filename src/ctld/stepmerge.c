/* stepmerge.c: reports of nodes into the row of a step; see stepmerge.h. */
#include "ctld/stepmerge.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spec/outcome.h"

static bool has(const uint32_t *v, size_t n, uint32_t x)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] == x)
            return true;
    return false;
}

static bool note(uint32_t **v, size_t *n, uint32_t x)
{
    if (has(*v, *n, x))
        return false;
    *v = cw_xrealloc(*v, *n + 1, sizeof(**v));
    (*v)[(*n)++] = x;
    return true;
}

/* The step's number of this node; the report's own must agree. */
static bool is_ours(const Cw__StepRecord *rec, const char *node, uint32_t number)
{
    return number < rec->n_nodes && strcmp(rec->nodes[number], node) == 0;
}

static void sum(protobuf_c_boolean *has_to, uint64_t *to, protobuf_c_boolean has_from,
                uint64_t from, bool peak)
{
    if (!has_from)
        return;
    uint64_t now = *has_to ? *to : 0;
    *to = peak ? (from > now ? from : now) : now + from;
    *has_to = true;
}

static void add_usage(Cw__StepRecord *rec, const Cw__Usage *u)
{
    if (u == NULL)
        return;
    if (rec->usage == NULL) {
        size_t n = cw__usage__get_packed_size(u);
        cw_autofree uint8_t *p = cw_xmalloc(n + 1);
        rec->usage = cw__usage__unpack(NULL, cw__usage__pack(u, p), p);
        return;
    }
    Cw__Usage *s = rec->usage;
    sum(&s->has_cpu_user_ns, &s->cpu_user_ns, u->has_cpu_user_ns, u->cpu_user_ns, false);
    sum(&s->has_cpu_sys_ns, &s->cpu_sys_ns, u->has_cpu_sys_ns, u->cpu_sys_ns, false);
    sum(&s->has_throttled_ns, &s->throttled_ns, u->has_throttled_ns, u->throttled_ns, false);
    sum(&s->has_mem_peak_bytes, &s->mem_peak_bytes, u->has_mem_peak_bytes, u->mem_peak_bytes, true);
    sum(&s->has_maxrss_bytes, &s->maxrss_bytes, u->has_maxrss_bytes, u->maxrss_bytes, true);
    sum(&s->has_mem_anon_peak_bytes, &s->mem_anon_peak_bytes, u->has_mem_anon_peak_bytes,
        u->mem_anon_peak_bytes, true);
}

static void take_end(Cw__StepRecord *rec, const Cw__StepRecord *part)
{
    if (part->has_exit_code && (!rec->has_exit_code || part->exit_code > rec->exit_code)) {
        rec->has_exit_code = true;
        rec->exit_code = part->exit_code;
    }
    if (part->has_signal && !rec->has_signal) {
        rec->has_signal = true;
        rec->signal = part->signal;
    }
    if (part->has_cause && (!rec->has_cause || rec->cause == CW__CAUSE__CAUSE_EXIT)) {
        rec->has_cause = true;
        rec->cause = part->cause;
    }
    if (part->message != NULL && rec->message == NULL)
        rec->message = cw_xstrdup(part->message);
    add_usage(rec, part->usage);
}

static Cw__State state_of(const Cw__StepRecord *rec)
{
    Cw__TaskEnd e = CW__TASK_END__INIT;
    e.cause = rec->has_cause ? rec->cause : CW__CAUSE__CAUSE_EXIT;
    e.has_exit_code = rec->has_exit_code;
    e.exit_code = rec->exit_code;
    if (e.cause == CW__CAUSE__CAUSE_EXIT && rec->has_signal)
        e.cause = CW__CAUSE__CAUSE_SIGNAL;
    return cw_outcome_state(&e);
}

static void set_end(Cw__StepRecord *rec, Cw__State state, int64_t end_ns)
{
    int64_t least = rec->has_start_ns ? rec->start_ns : rec->create_ns;
    rec->state = state;
    rec->has_end_ns = true;
    rec->end_ns = end_ns > least ? end_ns : least;
}

static void set_start(Cw__StepRecord *rec, int64_t now_ns)
{
    if (rec->has_start_ns)
        return;
    rec->has_start_ns = true;
    rec->start_ns = now_ns > rec->create_ns ? now_ns : rec->create_ns;
}

enum cw_stepmerge_news cw_stepmerge(Cw__StepRecord *rec, const char *node, const Cw__StepReport *r,
                                    int64_t now_ns)
{
    if (cw_state_terminal(rec->state) || !is_ours(rec, node, r->node))
        return CW_STEPMERGE_NOTHING;
    bool started = note(&rec->started, &rec->n_started, r->node);
    if (started)
        set_start(rec, now_ns);
    bool all_run = rec->n_started == rec->n_nodes && rec->state == CW__STATE__STARTING;
    if (all_run)
        rec->state = CW__STATE__RUNNING;
    if (r->has_started && r->started)
        return all_run ? CW_STEPMERGE_STARTED : started ? CW_STEPMERGE_PART : CW_STEPMERGE_NOTHING;
    if (!note(&rec->ended, &rec->n_ended, r->node))
        return CW_STEPMERGE_NOTHING;
    take_end(rec, r->step);
    if (rec->n_ended < rec->n_nodes)
        return CW_STEPMERGE_PART;
    set_end(rec, state_of(rec), now_ns);
    return CW_STEPMERGE_ENDED;
}

void cw_stepmerge_close(Cw__StepRecord *rec, Cw__Cause cause, Cw__State state, const char *message,
                        int64_t end_ns)
{
    rec->has_cause = true;
    rec->cause = cause;
    if (message != NULL && rec->message == NULL)
        rec->message = cw_xstrdup(message);
    set_end(rec, state, end_ns);
}

void cw_stepmerge_text(const Cw__StepRecord *r, char *buf, size_t cap)
{
    int n = snprintf(buf, cap, "step %u (%.40s)", r->step, r->name != NULL ? r->name : "");
    if (n < 0 || (size_t)n >= cap)
        return;
    buf += n;
    cap -= (size_t)n;
    if (!cw_state_terminal(r->state))
        snprintf(buf, cap, ": %u tasks on %zu nodes", r->ntasks, r->n_nodes);
    else if (r->has_signal)
        snprintf(buf, cap, ": %s, signal %u", cw_state_name(r->state), r->signal);
    else
        snprintf(buf, cap, ": %s, exit code %u", cw_state_name(r->state), r->exit_code);
}
