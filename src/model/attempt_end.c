/* The end of an attempt, from the first word of it to the proof that nothing is left. A part whose
 * end was reported without that proof keeps its cores (quarantine) while the job goes on: it has
 * ended, or, after a node's fault, waits until nothing is charged on a living node before it may
 * start again. For a lost node nobody waits: an attempt of which only parts on lost nodes are left
 * becomes a *ghost*, fenced, known to those nodes only, charged there until they answer for it,
 * while its element may start elsewhere.
 *
 * With several nodes the first part that ends decides cause, time of the end and whether another
 * try follows (all in the record); the others are killed and the attempt is COMPLETING until the
 * last has ended. Test: attempt_test.c, attempt_parts_test.c, model_random_test.c. */
#include "model/model.h"

#include <string.h>

#include "base/mem.h"
#include "spec/outcome.h"
#include "spec/retryrule.h"

static void leave_memory(struct cw_model *m, struct cw_attempt *a)
{
    if (a->ghost.next == NULL)
        cw_idtable_remove(m->attempts, a->id);
    cw_list_remove(&a->ghost);
    cw_attempt_destroy(m, a);
}

/* ---- what ended it --------------------------------------------------------------------------- */

/* Our own kill wins over what the node saw, but for what is a fact beside it: the leader was faster
 * and exited by itself, or the kernel reported that the task ran out of memory. */
static bool is_fact(const struct cw_part *p, Cw__Cause reported)
{
    return reported == CW__CAUSE__CAUSE_OOM ||
           (reported == CW__CAUSE__CAUSE_EXIT && cw_part_number(p) == 0);
}

/* A box without a leader ends by a kill only: else what holds it is gone. */
static Cw__Cause true_cause(const struct cw_part *p, Cw__Cause reported)
{
    const Cw__AttemptRecord *r = p->attempt->rec;
    if (r->has_kill_cause && !is_fact(p, reported))
        return r->kill_cause;
    bool odd = reported == CW__CAUSE__CAUSE_EXIT || reported == CW__CAUSE__CAUSE_SIGNAL ||
               reported == CW__CAUSE__CAUSE_PEER;
    return odd && cw_part_number(p) > 0 ? CW__CAUSE__CAUSE_NODE_LOST : reported;
}

static Cw__State state_of(const Cw__AttemptRecord *r)
{
    Cw__TaskEnd e = CW__TASK_END__INIT;
    e.cause = r->cause;
    e.has_exit_code = r->has_exit_code;
    e.exit_code = r->exit_code;
    return cw_outcome_state(&e);
}

/* Why another attempt follows, NULL: none does. A node's fault has a budget of its own, so that it
 * never uses up the retries that the user asked for. */
static const char *why_again(struct cw_attempt *a, uint32_t max_requeues, char *buf, size_t cap)
{
    Cw__AttemptRecord *r = a->rec;
    const struct cw_job *j = a->job;
    bool node_fault =
        r->cause == CW__CAUSE__CAUSE_LAUNCH_NODE || r->cause == CW__CAUSE__CAUSE_NODE_LOST;
    if (r->cause == CW__CAUSE__CAUSE_REQUEUED)
        return cw_cause_name(r->cause);
    if (node_fault) {
        if (j->no_requeue || r->node_faults >= max_requeues)
            return NULL;
        r->has_node_faults = true;
        r->node_faults++;
        return cw_cause_name(r->cause);
    }
    if (r->retries_used >= j->retries || !cw_retryrule_matches(j->retry_on, r))
        return NULL;
    r->has_retries_used = true;
    r->retries_used++;
    return cw_retryrule_word(r, buf, cap);
}

/* Three faults, three answers: a node that cannot launch is marked. It is taken last at once, and
 * drained when launches of several jobs fail in a row; one job alone, whose fault it may be after
 * all, drains nothing. */
static void mark_node(struct cw_model *m, struct cw_node *n, const struct cw_attempt *a,
                      int64_t now_ns)
{
    n->faults_of_several =
        n->launch_faults > 0 && (n->faults_of_several || n->fault_job != a->job_id);
    n->fault_job = a->job_id;
    n->launch_faults++;
    if (n->launch_faults < CW_MODEL_LAUNCH_FAULTS || !n->faults_of_several || n->rec->drained)
        return;
    cw_autofree char *why =
        cw_xasprintf("%u launches in a row failed, the last of job %llu%s%.120s", n->launch_faults,
                     (unsigned long long)a->id, a->rec->message != NULL ? ": " : "",
                     a->rec->message != NULL ? a->rec->message : "");
    cw_model_node_drain(m, n, true, why, 0, now_ns);
}

/* The attempt's message is of the part that decides how it ends. */
static void set_message(struct cw_part *p, const char *text)
{
    struct cw_attempt *a = p->attempt;
    if (text == NULL || a->rec->has_cause)
        return;
    free(a->rec->message);
    a->rec->message = cw_part_number(p) == 0 ? cw_xstrdup(text)
                                             : cw_xasprintf("%s: %s", p->node->name, text);
}

static void copy_leader(struct cw_attempt *a, const Cw__TaskEnd *e, int64_t now_ns)
{
    Cw__AttemptRecord *r = a->rec;
    if (e->has_start_ns && !r->has_start_ns)
        cw_attempt_set_start(a, e->start_ns, now_ns);
    /* One that was given back has the exit code of the command that held it. */
    if (!r->has_kill_cause || r->kill_cause != CW__CAUSE__CAUSE_RELEASED) {
        r->has_exit_code = e->has_exit_code;
        r->exit_code = e->exit_code;
        r->has_signal = e->has_signal;
        r->signal = e->signal;
        r->has_core_dumped = e->has_core_dumped;
        r->core_dumped = e->core_dumped;
    }
    if (e->has_pid) {
        r->has_pid = true;
        r->pid = e->pid;
    }
    if (e->has_cpus_bound) {
        r->has_cpus_bound = true;
        r->cpus_bound = e->cpus_bound;
    }
    cw_attempt_replace(&r->stdout_path, e->stdout_path);
    cw_attempt_replace(&r->stderr_path, e->stderr_path);
}

static void copy_end(struct cw_part *p, const Cw__TaskEnd *e, int64_t now_ns)
{
    if (cw_part_number(p) == 0)
        copy_leader(p->attempt, e, now_ns);
    set_message(p, e->message);
    if (e->usage != NULL)
        cw_parts_add_usage(p->attempt->rec, e->usage);
}

static void decide(struct cw_attempt *a, Cw__Cause cause, int64_t end_ns, int64_t now_ns,
                   uint32_t max_requeues)
{
    Cw__AttemptRecord *r = a->rec;
    int64_t begun = r->has_start_ns ? r->start_ns : r->grant_ns;
    int64_t latest = now_ns > begun ? now_ns : begun;
    r->has_cause = r->has_end_ns = true;
    r->cause = cause;
    r->end_ns = end_ns < begun ? begun : end_ns > latest ? latest : end_ns;
    char buf[32];
    const char *again = why_again(a, max_requeues, buf, sizeof(buf));
    if (again != NULL)
        cw_attempt_replace(&r->retry, again);
}

/* ---- the job --------------------------------------------------------------------------------- */

/* The element waits for its next try; its old attempt is off the job's list. */
static void requeue_now(struct cw_model *m, struct cw_job *j, uint64_t ordinal, uint32_t after)
{
    if (j->is_array)
        cw_idset_add(&j->array->pending, ordinal, ordinal);
    cw_emit_event(m, j, NULL, NULL, 0, "requeue", "element %llu, attempt %u comes next",
                  (unsigned long long)cw_job_element_id(j, ordinal), after + 1);
}

/* Only lost nodes hold it still, and its element goes on without it. */
static void become_ghost(struct cw_model *m, struct cw_attempt *a)
{
    cw_idtable_remove(m->attempts, a->id);
    cw_list_add_tail(&m->ghosts, &a->ghost);
    a->job = NULL;
}

/* No node that lives holds anything of it: its element waits for its next try. */
static void let_element_go(struct cw_model *m, struct cw_attempt *a)
{
    struct cw_job *j = a->job;
    cw_list_remove(&a->on_job);
    a->requeue = false;
    if (!cw_parts_all(a, CW_PART_FREED))
        become_ghost(m, a);
    requeue_now(m, j, a->ordinal, a->attempt);
    cw_job_conclude(m, j, CW__STATE__PENDING, 0);
}

#define BACK_OFF_MAX_S 3600u

/* Doubled with each retry. Elements of an array do not wait: the others would have to. */
static int64_t back_off(const struct cw_job *j, int64_t end_ns)
{
    uint64_t s = j->retry_delay_s;
    for (uint32_t i = 1; i < j->retries_used && s < BACK_OFF_MAX_S; i++)
        s *= 2;
    return end_ns + (int64_t)(s < BACK_OFF_MAX_S ? s : BACK_OFF_MAX_S) * INT64_C(1000000000);
}

/* Tells the job that its attempt has ended. */
static void job_after(struct cw_model *m, struct cw_attempt *a)
{
    struct cw_job *j = a->job;
    if (a->rec->retry == NULL) {
        if (cw_parts_all(a, CW_PART_FREED))
            cw_list_remove(&a->on_job);
        if (j->is_array) {
            cw_jobarray_count(j->array, a->state, (uint32_t)cw_outcome_exit_status(a->rec));
            cw_deps_note_element(m, j, a->ordinal, a->state);
        }
        cw_job_conclude(m, j, a->state, a->rec->end_ns);
        return;
    }
    const Cw__AttemptRecord *r = a->rec;
    if (j->is_array) {
        cw_jobarray_set_tries(j->array, a->ordinal,
                              &(struct cw_tries){a->attempt + 1, r->node_faults, r->retries_used});
    } else {
        bool retried = r->retries_used > j->retries_used;
        j->node_faults = r->node_faults;
        j->retries_used = r->retries_used;
        if (retried && j->retry_delay_s > 0)
            cw_jobtimer_not_before(m, j, back_off(j, r->end_ns), r->end_ns);
    }
    if (!cw_parts_held(a)) {
        let_element_go(m, a);
        return;
    }
    a->requeue = true;
    if (j->is_array)
        j->array->n_held_back++;
    cw_job_conclude(m, j, CW__STATE__PENDING, 0);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void leave_running(struct cw_attempt *a)
{
    if (a->job->is_array && a->state == CW__STATE__RUNNING)
        a->job->array->n_running--;
}

static void finish(struct cw_model *m, struct cw_attempt *a, int64_t now_ns)
{
    Cw__AttemptRecord *r = a->rec;
    bool empty = cw_parts_all(a, CW_PART_FREED);
    leave_running(a);
    if (a->job->is_array)
        a->job->array->n_live--;
    a->state = r->state = state_of(r);
    cw_heap_set(m, a, INT64_MAX);
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    cw_emit_attempt(m, CW_EFFECT_DONE, a);
    cw_emit_event(m, a->job, a, a->parts[0].node, a->job->uid, "end", "%s (%s)%s%.80s",
                  cw_state_name(a->state), cw_cause_name(r->cause), r->message != NULL ? ": " : "",
                  r->message != NULL ? r->message : "");
    job_after(m, a);
    if (empty)
        leave_memory(m, a);
    cw_deps_drain(m, now_ns);
    cw_emit_cycle(m);
}

/* The first part has ended: the others go down with it. */
static void go_down(struct cw_model *m, struct cw_part *first, int64_t now_ns)
{
    struct cw_attempt *a = first->attempt;
    bool asked = a->kill_step != 0; /* then all of them were told */
    leave_running(a);
    a->state = a->rec->state = CW__STATE__COMPLETING;
    a->kill_step = 1;
    cw_job_settle(a->job);
    if (!asked)
        cw_heap_set(m, a, cw_attempt_patience(a, now_ns));
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    cw_emit_event(m, a->job, a, first->node, 0, "completing", "%s", cw_cause_name(a->rec->cause));
    if (!asked)
        cw_attempt_send_kill(m, a, CW__CAUSE__CAUSE_PEER);
}

/* A part of a live attempt has ended, and how the attempt ends is decided. */
static void part_gone(struct cw_model *m, struct cw_part *p, int64_t now_ns)
{
    struct cw_attempt *a = p->attempt;
    cw_parts_drop_unsent(a);
    if (cw_parts_all(a, CW_PART_ENDED))
        finish(m, a, now_ns);
    else if (a->state != CW__STATE__COMPLETING)
        go_down(m, p, now_ns);
    else
        cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
}

/* A part that had ended is proven empty, or its node is given up. */
static void settle_ended(struct cw_model *m, struct cw_part *p, enum cw_partphase phase)
{
    struct cw_attempt *a = p->attempt;
    cw_part_set(p, phase);
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    if (phase == CW_PART_FREED)
        cw_emit_event(m, a->job, a, p->node, 0, "emptied", "%s", "its cores are free again");
    if (a->requeue && !cw_parts_held(a)) {
        if (a->job->is_array)
            a->job->array->n_held_back--;
        let_element_go(m, a);
    }
    if (cw_parts_all(a, CW_PART_FREED))
        leave_memory(m, a);
    cw_emit_cycle(m);
}

static struct cw_part *find_part(struct cw_model *m, const struct cw_node *n, uint64_t id,
                                 uint32_t attempt)
{
    struct cw_attempt *a = cw_model_attempt_numbered(m, id, attempt);
    struct cw_part *p = a != NULL ? cw_attempt_part(a, n) : NULL;
    return p != NULL && p->phase != CW_PART_FREED ? p : NULL;
}

int cw_model_ended(struct cw_model *m, const struct cw_node *n, const Cw__TaskEnd *e,
                   int64_t now_ns, uint32_t max_requeues)
{
    struct cw_part *p = find_part(m, n, e->key->id, e->key->attempt);
    if (p == NULL || (p->phase >= CW_PART_ENDED && !e->empty))
        return -ESTALE;
    if (p->phase >= CW_PART_ENDED) {
        settle_ended(m, p, CW_PART_FREED);
        return 0;
    }
    struct cw_attempt *a = p->attempt;
    Cw__AttemptRecord *r = a->rec;
    bool launching = p->phase == CW_PART_GRANTED;
    Cw__Cause cause = true_cause(p, e->cause);
    copy_end(p, e, now_ns);
    cw_part_set(p, e->empty ? CW_PART_FREED : CW_PART_ENDED);
    if (!r->has_cause)
        decide(a, cause, e->end_ns, now_ns, max_requeues);
    else if (r->has_kill_cause && r->cause == r->kill_cause && is_fact(p, e->cause))
        r->cause = e->cause; /* the head spoke later than the others, but was faster */
    if (e->cause == CW__CAUSE__CAUSE_LAUNCH_NODE && launching)
        mark_node(m, p->node, a, now_ns);
    part_gone(m, p, now_ns);
    return 0;
}

int cw_model_emptied(struct cw_model *m, const struct cw_node *n, uint64_t id, uint32_t attempt,
                     int64_t now_ns)
{
    (void)now_ns;
    struct cw_part *p = find_part(m, n, id, attempt);
    if (p == NULL || p->phase < CW_PART_ENDED)
        return -ESTALE;
    settle_ended(m, p, CW_PART_FREED);
    return 0;
}

void cw_model_lost(struct cw_model *m, struct cw_part *p, const char *why, bool ledger_free,
                   int64_t now_ns, uint32_t max_requeues)
{
    enum cw_partphase phase = ledger_free ? CW_PART_FREED : CW_PART_LOST;
    if (p->phase >= CW_PART_ENDED) {
        if (p->phase < phase)
            settle_ended(m, p, phase);
        return;
    }
    set_message(p, why);
    cw_part_set(p, phase);
    if (!p->attempt->rec->has_cause)
        decide(p->attempt, true_cause(p, CW__CAUSE__CAUSE_NODE_LOST), now_ns, now_ns,
               max_requeues);
    part_gone(m, p, now_ns);
}

void cw_attempt_quarantine(struct cw_model *m, struct cw_attempt *a, int64_t now_ns)
{
    Cw__AttemptRecord *r = a->rec;
    const struct cw_node *silent = NULL;
    for (uint32_t k = 0; k < a->n_parts; k++)
        if (a->parts[k].phase < CW_PART_ENDED) {
            silent = a->parts[k].node;
            cw_part_set(&a->parts[k], CW_PART_ENDED);
        }
    if (!r->has_cause) {
        free(r->message);
        r->message = cw_xasprintf("node %s did not report the end within %d s of the kill",
                                  silent->name, CW_MODEL_KILL_PATIENCE_S);
        decide(a, r->kill_cause, now_ns, now_ns, 0);
    }
    finish(m, a, now_ns);
}
