/* Drains with an end: at its time what still runs on the node is cancelled or requeued, once; the
 * node stays drained. The time is in the node's row and cleared in the step that asks for the
 * kills, so a restart neither forgets nor repeats it. Nodes are walked only when one is due.
 * Test: testsuite/t2600-drain.t. */
#include "model/model.h"

#include <string.h>

#include "base/mem.h"
#include "spec/outcome.h"

void cw_drain_note(struct cw_model *m, const struct cw_node *n)
{
    const Cw__NodeRecord *r = n->rec;
    if (r->drained && r->has_drain_deadline_ns &&
        (!m->has_drain_next || r->drain_deadline_ns < m->drain_next_ns)) {
        m->has_drain_next = true;
        m->drain_next_ns = r->drain_deadline_ns;
    }
}

void cw_drain_forget(struct cw_node *n)
{
    free(n->rec->drain_then);
    n->rec->drain_then = NULL;
    n->rec->has_drain_deadline_ns = false;
}

void cw_model_node_drain_until(struct cw_model *m, struct cw_node *n, int64_t deadline_ns,
                               bool requeue)
{
    cw_drain_forget(n);
    n->rec->has_drain_deadline_ns = true;
    n->rec->drain_deadline_ns = deadline_ns;
    n->rec->drain_then = cw_xstrdup(requeue ? "requeue" : "cancel");
    cw_emit(m, &(struct cw_effect){.kind = CW_EFFECT_PUT_NODE, .node = n});
    cw_drain_note(m, n);
}

static void end_drain(struct cw_model *m, struct cw_node *n, int64_t now_ns)
{
    Cw__NodeRecord *r = n->rec;
    bool requeue = r->drain_then != NULL && strcmp(r->drain_then, "requeue") == 0;
    Cw__Cause cause = requeue ? CW__CAUSE__CAUSE_REQUEUED : CW__CAUSE__CAUSE_CANCEL;
    uint32_t ended = 0;
    cw_list_each_safe (pos, &n->parts) {
        struct cw_attempt *a = cw_list_entry(pos, struct cw_part, on_node)->attempt;
        if (a->job == NULL || cw_state_terminal(a->state))
            continue;
        ended++;
        cw_emit_event(m, a->job, a, n, r->drain_uid, "drain-deadline",
                      "node %s is drained (%s): %s", n->name,
                      r->drain_reason != NULL ? r->drain_reason : "",
                      requeue ? "requeued" : "cancelled");
        cw_attempt_ask_kill(m, a, cause, r->drain_uid, now_ns);
    }
    cw_drain_forget(n);
    cw_emit(m, &(struct cw_effect){.kind = CW_EFFECT_PUT_NODE, .node = n});
    cw_emit_event(m, NULL, NULL, n, r->drain_uid, "drain-deadline", "%u attempts %s", ended,
                  requeue ? "requeued" : "cancelled");
}

int64_t cw_drains_run(struct cw_model *m, int64_t now_ns)
{
    if (!m->has_drain_next)
        return INT64_MAX;
    if (m->drain_next_ns > now_ns)
        return m->drain_next_ns;
    m->has_drain_next = false;
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        struct cw_node *n = m->nodes[i];
        if (n->rec->drained && n->rec->has_drain_deadline_ns && n->rec->drain_deadline_ns <= now_ns)
            end_drain(m, n, now_ns);
        cw_drain_note(m, n);
    }
    return m->has_drain_next ? m->drain_next_ns : INT64_MAX;
}
