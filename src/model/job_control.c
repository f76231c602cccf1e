/* What people do to jobs: cancel, signal, hold, release. Waiting elements end at once, live ones
 * are asked to die; asking twice is the same as asking once. Test: job_control_test.c. */
#include "model/model.h"

#include "base/mem.h"
#include "spec/outcome.h"

struct dropping {                    /* waiting elements that end now */
    const struct cw_idset *ordinals; /* NULL: all */
    uint32_t exit_status;
};

static bool named(const struct cw_idset *ordinals, uint64_t ordinal)
{
    return ordinals == NULL || cw_idset_has(ordinals, ordinal);
}

/* An element whose old attempt still holds its ledger will not start again after all. */
static uint64_t drop_held_back(struct cw_model *m, struct cw_job *j, const struct dropping *d)
{
    uint64_t n = 0;
    cw_list_each(pos, &j->attempts) {
        struct cw_attempt *a = cw_list_entry(pos, struct cw_attempt, on_job);
        if (!a->requeue || !named(d->ordinals, a->ordinal))
            continue;
        a->requeue = false;
        n++;
        if (!j->is_array)
            continue;
        j->array->n_held_back--;
        cw_jobarray_set_next_attempt(j->array, a->ordinal, 1);
        cw_jobarray_count(j->array, CW__STATE__CANCELLED, d->exit_status);
        cw_deps_note_element(m, j, a->ordinal, CW__STATE__CANCELLED);
    }
    return n;
}

static uint64_t drop_waiting(struct cw_model *m, struct cw_job *j, const struct dropping *d)
{
    if (!j->is_array)
        return named(d->ordinals, 0) ? cw_job_n_waiting(j) + drop_held_back(m, j, d) : 0;
    struct cw_idset hit = {0};
    uint64_t n = cw_jobarray_cancel_pending(j->array, d->ordinals, d->exit_status, &hit);
    for (size_t i = 0; j->array->n_element_deps > 0 && i < hit.n; i++)
        for (uint64_t o = hit.r[i].first; o <= hit.r[i].last; o++)
            cw_deps_note_element(m, j, o, CW__STATE__CANCELLED);
    cw_idset_fini(&hit);
    return n + drop_held_back(m, j, d);
}

/* Sees why it ended, when nothing of it ever ran. */
static void set_reason(struct cw_model *m, struct cw_job *j, const char *why)
{
    cw_names_put(m, j->end_reason);
    j->end_reason = cw_names_get(m, why);
}

static uint64_t kill_live(struct cw_model *m, struct cw_job *j, const struct cw_idset *ordinals,
                          Cw__Cause cause, uint32_t uid, int64_t now_ns)
{
    uint64_t n = 0;
    cw_list_each(pos, &j->attempts) {
        struct cw_attempt *a = cw_list_entry(pos, struct cw_attempt, on_job);
        if (cw_state_terminal(a->state) || !named(ordinals, a->ordinal))
            continue;
        n++;
        cw_attempt_ask_kill(m, a, cause, uid, now_ns);
    }
    return n;
}

uint64_t cw_model_cancel(struct cw_model *m, struct cw_job *j, const struct cw_idset *ordinals,
                         uint32_t uid, int64_t now_ns)
{
    struct dropping d = {ordinals,
                         (uint32_t)cw_outcome_exit_status_job(CW__STATE__CANCELLED, NULL)};
    uint64_t n_waiting = drop_waiting(m, j, &d);
    uint64_t n_live = kill_live(m, j, ordinals, CW__CAUSE__CAUSE_CANCEL, uid, now_ns);
    if (n_waiting > 0) {
        cw_autofree char *why = cw_xasprintf("cancelled by uid %u", uid);
        set_reason(m, j, why);
        cw_emit_event(m, j, NULL, NULL, uid, "cancel", "%llu waiting",
                      (unsigned long long)n_waiting);
        cw_job_conclude(m, j, CW__STATE__CANCELLED, now_ns);
        cw_deps_drain(m, now_ns);
        cw_emit_cycle(m); /* those behind it in the queue may start */
    }
    return n_waiting + n_live;
}

void cw_job_end_all(struct cw_model *m, struct cw_job *j, Cw__State state, Cw__Cause cause,
                    uint32_t uid, int64_t now_ns)
{
    struct dropping d = {NULL, (uint32_t)cw_outcome_exit_status_job(state, NULL)};
    uint64_t n = drop_waiting(m, j, &d);
    kill_live(m, j, NULL, cause, uid, now_ns);
    if (n == 0)
        return;
    set_reason(m, j, cw_cause_name(cause));
    cw_emit_event(m, j, NULL, NULL, uid, cw_cause_name(cause), "%llu waiting", (unsigned long long)n);
    cw_job_conclude(m, j, state, now_ns);
    cw_deps_drain(m, now_ns);
    cw_emit_cycle(m);
}

uint64_t cw_model_requeue(struct cw_model *m, struct cw_job *j, const struct cw_idset *ordinals,
                          bool hold, uint32_t uid, int64_t now_ns)
{
    if (hold)
        cw_model_hold(m, j, true, uid, false, now_ns);
    return kill_live(m, j, ordinals, CW__CAUSE__CAUSE_REQUEUED, uid, now_ns);
}

void cw_job_cancel_unmet(struct cw_model *m, struct cw_job *j, const char *kind,
                         unsigned long long pred, int64_t now_ns)
{
    drop_waiting(m, j, &(struct dropping){NULL, CW_EXIT_DEPENDENCY});
    set_reason(m, j, CW_WHY_DEPENDENCY);
    cw_emit_event(m, j, NULL, NULL, 0, "cancel", "%s %s:%llu", CW_WHY_DEPENDENCY, kind, pred);
    cw_job_conclude(m, j, CW__STATE__CANCELLED, now_ns);
}

uint64_t cw_model_signal(struct cw_model *m, struct cw_job *j, const struct cw_idset *ordinals,
                         uint32_t sig)
{
    uint64_t n = 0;
    cw_list_each(pos, &j->attempts) {
        struct cw_attempt *a = cw_list_entry(pos, struct cw_attempt, on_job);
        if (a->state != CW__STATE__RUNNING || !named(ordinals, a->ordinal))
            continue;
        n++;
        for (uint32_t k = 0; k < a->n_parts; k++)
            cw_emit(m, &(struct cw_effect){.kind = CW_EFFECT_SEND_SIGNAL,
                                           .job = j,
                                           .attempt = a,
                                           .node = a->parts[k].node,
                                           .signal = sig});
    }
    return n;
}

void cw_model_hold(struct cw_model *m, struct cw_job *j, bool hold, uint32_t uid, bool by_admin,
                   int64_t now_ns)
{
    (void)now_ns;
    by_admin = hold && (by_admin || j->held_by_admin);
    if (j->held == hold && j->held_by_admin == by_admin)
        return;
    j->held = hold;
    j->held_by_admin = by_admin;
    cw_queue_place(m, j);
    cw_job_settle(j);
    cw_emit_job(m, CW_EFFECT_PUT_JOB, j);
    cw_emit_event(m, j, NULL, NULL, uid, hold ? "hold" : "release", "%s", "");
    cw_emit_cycle(m);
}
