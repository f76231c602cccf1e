/* req_why.c: why does it wait, where does it run, how did it end. A waiting job gets every rule
 * that blocks it from sched/pass; the others get what is known of their newest attempt. */
#include "ctld/requests.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "ctld/answer.h"
#include "ctld/jobpick.h"
#include "ctld/turn.h"
#include "spec/outcome.h"

static void explain_alive(const struct cw_ctld *c, const Cw__JobInfo *i, struct cw_strv *out)
{
    char line[320], left[32];
    const Cw__AttemptRecord *at = i->attempt;
    if (at == NULL || at->grant == NULL)
        return;
    snprintf(line, sizeof line, "%s on node %s, attempt %u, cores %s", cw_state_name(i->state),
             at->grant->node, at->attempt, at->grant->cores);
    cw_strv_add(out, line);
    struct cw_attempt *live = cw_model_attempt(c->model, i->id);
    if (live != NULL && live->rec->state == CW__STATE__RUNNING && live->kill_step == 0 &&
        live->deadline_ns != INT64_MAX) {
        int64_t ns = live->deadline_ns - cw_clock_real_ns();
        snprintf(line, sizeof line, "its time limit ends in %s",
                 cw_duration_format(ns > 0 ? (uint64_t)(ns / CW_NS_PER_S) : 0, left, sizeof left));
        cw_strv_add(out, line);
    }
    if (live != NULL && live->kill_step != 0) {
        snprintf(line, sizeof line, "it was asked to end: %s",
                 at->has_kill_cause ? cw_cause_name(at->kill_cause) : "kill");
        cw_strv_add(out, line);
    }
}

static void explain_ended(const Cw__JobInfo *i, struct cw_strv *out)
{
    char line[320];
    const Cw__AttemptRecord *at = i->attempt;
    snprintf(line, sizeof line, "%s, exit status %d", cw_state_name(i->state),
             i->has_exit_status ? i->exit_status : 0);
    cw_strv_add(out, line);
    if (at != NULL && at->has_cause) {
        const char *node = at->grant != NULL ? at->grant->node : "?";
        if (at->has_signal)
            snprintf(line, sizeof line, "attempt %u on node %s ended by %s, signal %u", at->attempt,
                     node, cw_cause_name(at->cause), at->signal);
        else if (at->has_exit_code)
            snprintf(line, sizeof line, "attempt %u on node %s ended by %s, exit code %u",
                     at->attempt, node, cw_cause_name(at->cause), at->exit_code);
        else
            snprintf(line, sizeof line, "attempt %u on node %s ended by %s", at->attempt, node,
                     cw_cause_name(at->cause));
        cw_strv_add(out, line);
    }
    if (at != NULL && at->message != NULL)
        cw_strv_add(out, at->message);
    if (i->reason != NULL)
        cw_strv_add(out, i->reason);
}

static void explain(struct cw_ctld *c, const struct cw_jobsrc *s, const Cw__JobInfo *i,
                    struct cw_strv *out)
{
    struct cw_error err;
    if (i->state == CW__STATE__PENDING && cw_turn_failing(c->turn, &err)) {
        cw_strv_add(out, "nothing starts while the state cannot be stored:");
        cw_strv_add(out, err.text);
    } else if (i->state == CW__STATE__PENDING && s->live != NULL) {
        cw_pass_explain(c->model, &c->policy, s->live, cw_clock_real_ns(), out);
    } else if (cw_state_terminal(i->state)) {
        explain_ended(i, out);
    } else {
        explain_alive(c, i, out);
    }
}

void cw_req_why(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    const Cw__WhyRequest *m = (const Cw__WhyRequest *)msg;
    struct cw_arena *a = cw_rpc_call_arena(call);
    struct cw_error err = {0};
    struct cw_jobpick p;
    if (cw_jobpick(c, m->id, a, &p, &err) < 0) {
        cw_answer_failure(c, call, &err);
        return;
    }
    Cw__WhyReply *r = cw_arena_alloc(a, sizeof *r);
    cw__why_reply__init(r);
    r->job =
        p.is_element ? cw_jobview_element(c, &p.src, p.ordinal, a) : cw_jobview_info(c, &p.src, a);
    cw_autostrv struct cw_strv lines = {0};
    explain(c, &p.src, r->job, &lines);
    r->lines = cw_arena_alloc(a, (lines.n + 1) * sizeof *r->lines);
    for (; r->n_lines < lines.n; r->n_lines++)
        r->lines[r->n_lines] = cw_arena_strdup(a, lines.v[r->n_lines]);
    cw_jobsrc_fini(&p.src);
    cw_answer(c, call, &r->base);
}
