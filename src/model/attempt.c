/* Attempts: one try at running an element, from its grant to the proof that nothing of it is left.
 * Every report is fenced by (element id, attempt): what does not name the attempt in memory changes
 * nothing. An attempt whose end was reported without that proof keeps its cores (quarantine) while
 * its job goes on: it has ended, or, after a node's fault, waits until the ledger is free before it
 * may start again. When the node itself is lost nobody waits for it: the attempt becomes a *ghost*,
 * fenced, known to its node only, charged there until the node answers for it, while its element may
 * start elsewhere. Test: attempt_test.c, model_random_test.c. */
#include "model/model.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "spec/outcome.h"

#define NS_PER_S INT64_C(1000000000)

/* ---- making ---------------------------------------------------------------------------------- */

struct cw_attempt *cw_attempt_create(struct cw_job *j, struct cw_node *n, Cw__AttemptRecord *rec)
{
    struct cw_attempt *a = cw_xcalloc(1, sizeof(*a));
    a->id = rec->id;
    a->job_id = rec->job_id;
    a->attempt = rec->attempt;
    a->state = rec->state;
    a->job = j;
    a->node = n;
    a->rec = rec;
    a->deadline_ns = INT64_MAX;
    a->heap_pos = UINT32_MAX;
    a->kill_step = rec->has_kill_cause ? 1 : 0;
    if (j != NULL)
        cw_job_ordinal(j, a->id, &a->ordinal);
    return a;
}

void cw_attempt_destroy(struct cw_model *m, struct cw_attempt *a)
{
    cw_heap_set(m, a, INT64_MAX);
    cw_list_remove(&a->on_job);
    cw_list_remove(&a->on_node);
    cw__attempt_record__free_unpacked(a->rec, NULL);
    free(a->cores);
    free(a);
}

static Cw__Grant *copy_grant(const Cw__Grant *g)
{
    size_t n = cw__grant__get_packed_size(g);
    cw_autofree uint8_t *p = cw_xmalloc(n);
    return cw__grant__unpack(NULL, cw__grant__pack(g, p), p);
}

static void leave_memory(struct cw_model *m, struct cw_attempt *a)
{
    if (a->ghost.next == NULL)
        cw_idtable_remove(m->attempts, a->id);
    cw_list_remove(&a->ghost);
    cw_attempt_destroy(m, a);
}

struct cw_attempt *cw_model_attempt_numbered(struct cw_model *m, uint64_t element_id, uint32_t attempt)
{
    struct cw_attempt *a = cw_model_attempt(m, element_id);
    if (a != NULL && a->attempt == attempt)
        return a;
    cw_list_each(pos, &m->ghosts) {
        a = cw_list_entry(pos, struct cw_attempt, ghost);
        if (a->id == element_id && a->attempt == attempt)
            return a;
    }
    return NULL;
}

static uint32_t take_attempt_number(struct cw_job *j, uint64_t ordinal)
{
    if (!j->is_array)
        return j->next_attempt++;
    uint32_t number = cw_jobarray_next_attempt(j->array, ordinal);
    bool was_pending = cw_jobarray_took(j->array, ordinal);
    assert(was_pending);
    (void)was_pending;
    j->array->n_live++;
    return number;
}

struct cw_attempt *cw_model_grant(struct cw_model *m, struct cw_job *j, uint64_t ordinal,
                                  const struct cw_partgrant *parts, size_t n_parts, int64_t now_ns)
{
    struct cw_node *n = parts[0].node;
    assert(n_parts == 1);
    (void)n_parts;
    uint64_t id = cw_job_element_id(j, ordinal);
    /* Nothing starts twice. */
    assert(j->in_queue.next != NULL && cw_idtable_find(m->attempts, id) == NULL);
    Cw__AttemptRecord *rec = cw_xmalloc(sizeof(*rec));
    cw__attempt_record__init(rec);
    rec->id = id;
    rec->attempt = take_attempt_number(j, ordinal);
    rec->job_id = j->id;
    rec->state = CW__STATE__STARTING;
    rec->grant = copy_grant(parts[0].grant);
    rec->has_grant_ns = true;
    rec->grant_ns = now_ns;
    struct cw_attempt *a = cw_attempt_create(j, n, rec);
    cw_ledger_resolve(a);
    if (n->words > 0)
        memcpy(a->cores, parts[0].cores, n->words * sizeof(*a->cores));
    cw_ledger_charge(m, a);
    cw_list_add_tail(&j->attempts, &a->on_job);
    cw_idtable_set(m->attempts, id, a);
    cw_queue_place(m, j);
    cw_job_settle(j);
    cw_heap_set(m, a, cw_attempt_launch_end(a));
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    cw_emit_job(m, CW_EFFECT_PUT_JOB, j);
    cw_emit_event(m, j, a, n, j->uid, "start", "cores %s", parts[0].grant->cores);
    cw_emit_attempt(m, CW_EFFECT_SEND_START, a);
    return a;
}

/* ---- time ------------------------------------------------------------------------------------ */

static int64_t clamp(int64_t t, int64_t from, int64_t to)
{
    return t < from ? from : t > to ? to : t;
}

int64_t cw_attempt_limit_end(const struct cw_attempt *a)
{
    uint64_t s = a->job != NULL ? a->job->time_limit_s : UINT64_MAX;
    if (s > (uint64_t)((INT64_MAX - a->rec->start_ns) / NS_PER_S))
        return INT64_MAX;
    return a->rec->start_ns + (int64_t)s * NS_PER_S;
}

int64_t cw_attempt_launch_end(const struct cw_attempt *a)
{
    return a->rec->grant_ns + CW_MODEL_LAUNCH_PATIENCE_S * NS_PER_S;
}

int64_t cw_attempt_patience(const struct cw_attempt *a, int64_t now_ns)
{
    int64_t grace_s = a->job != NULL ? a->job->kill_grace_s : 0;
    return now_ns + (grace_s + CW_MODEL_KILL_PATIENCE_S) * NS_PER_S;
}

/* Times in rows are the controller's: a node's clock may be wrong, but not before the grant nor in
 * the future. */
static void set_start(struct cw_attempt *a, int64_t start_ns, int64_t now_ns)
{
    a->rec->has_start_ns = true;
    a->rec->start_ns =
        clamp(start_ns, a->rec->grant_ns, now_ns > a->rec->grant_ns ? now_ns : a->rec->grant_ns);
}

/* ---- what the node says ---------------------------------------------------------------------- */

static void replace(char **field, const char *text)
{
    if (text == NULL)
        return;
    free(*field);
    *field = cw_xstrdup(text);
}

static void set_running(struct cw_attempt *a)
{
    if (a->job != NULL && a->job->is_array)
        a->job->array->n_running++;
    a->state = a->rec->state = CW__STATE__RUNNING;
}

int cw_model_started(struct cw_model *m, const Cw__TaskStarted *s, int64_t now_ns)
{
    struct cw_attempt *a = cw_model_attempt(m, s->key->id);
    if (a == NULL || a->attempt != s->key->attempt || cw_state_terminal(a->state))
        return -ESTALE;
    if (a->state != CW__STATE__STARTING)
        return 0; /* heard before */
    Cw__AttemptRecord *r = a->rec;
    set_start(a, s->start_ns, now_ns);
    r->has_pid = true;
    r->pid = s->pid;
    r->has_cpus_bound = s->has_cpus_bound;
    r->cpus_bound = s->cpus_bound;
    replace(&r->stdout_path, s->stdout_path);
    replace(&r->stderr_path, s->stderr_path);
    set_running(a);
    a->node->launch_faults = 0;
    cw_job_settle(a->job);
    if (a->kill_step == 0)
        cw_heap_set(m, a, cw_attempt_limit_end(a));
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    cw_emit_event(m, a->job, a, a->node, a->job->uid, "running", "pid %u", s->pid);
    return 0;
}

/* Our own kill wins over what the node saw, but for what is a fact beside it: the task was faster
 * and exited by itself, or the kernel reported that it ran out of memory. */
static Cw__Cause true_cause(const struct cw_attempt *a, Cw__Cause reported)
{
    bool fact = reported == CW__CAUSE__CAUSE_EXIT || reported == CW__CAUSE__CAUSE_OOM;
    return a->rec->has_kill_cause && !fact ? a->rec->kill_cause : reported;
}

static Cw__State state_of(Cw__Cause cause, const Cw__TaskEnd *e)
{
    Cw__TaskEnd copy = CW__TASK_END__INIT;
    if (e != NULL)
        copy = *e;
    copy.cause = cause;
    return cw_outcome_state(&copy);
}

static bool may_requeue(const struct cw_attempt *a, Cw__Cause cause, uint32_t max_requeues)
{
    bool node_fault = cause == CW__CAUSE__CAUSE_LAUNCH_NODE || cause == CW__CAUSE__CAUSE_NODE_LOST;
    return node_fault && !a->job->no_requeue && a->attempt <= max_requeues;
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

static void copy_end(struct cw_attempt *a, const Cw__TaskEnd *e, int64_t now_ns)
{
    Cw__AttemptRecord *r = a->rec;
    if (e->has_start_ns && !r->has_start_ns)
        set_start(a, e->start_ns, now_ns);
    r->has_exit_code = e->has_exit_code;
    r->exit_code = e->exit_code;
    r->has_signal = e->has_signal;
    r->signal = e->signal;
    r->has_core_dumped = e->has_core_dumped;
    r->core_dumped = e->core_dumped;
    if (e->has_pid) {
        r->has_pid = true;
        r->pid = e->pid;
    }
    if (e->has_cpus_bound) {
        r->has_cpus_bound = true;
        r->cpus_bound = e->cpus_bound;
    }
    replace(&r->message, e->message);
    replace(&r->stdout_path, e->stdout_path);
    replace(&r->stderr_path, e->stderr_path);
    if (e->usage == NULL)
        return;
    size_t n = cw__usage__get_packed_size(e->usage);
    cw_autofree uint8_t *p = cw_xmalloc(n + 1);
    if (r->usage != NULL)
        cw__usage__free_unpacked(r->usage, NULL);
    r->usage = cw__usage__unpack(NULL, cw__usage__pack(e->usage, p), p);
}

/* ---- the end of an attempt ------------------------------------------------------------------- */

/* The element waits for its next try; its old attempt is off the job's list. */
static void requeue_now(struct cw_model *m, struct cw_job *j, uint64_t ordinal, uint32_t after)
{
    if (j->is_array)
        cw_idset_add(&j->array->pending, ordinal, ordinal);
    cw_emit_event(m, j, NULL, NULL, 0, "requeue", "element %llu, attempt %u comes next",
                  (unsigned long long)cw_job_element_id(j, ordinal), after + 1);
}

static void leave_live(struct cw_attempt *a, bool was_running)
{
    if (!a->job->is_array)
        return;
    a->job->array->n_live--;
    if (was_running)
        a->job->array->n_running--;
}

/* Its node is lost and its element goes on without it. */
static void become_ghost(struct cw_model *m, struct cw_attempt *a)
{
    cw_idtable_remove(m->attempts, a->id);
    cw_list_add_tail(&m->ghosts, &a->ghost);
    a->job = NULL;
}

/* Tells the job that its attempt has ended. */
static void job_after(struct cw_model *m, struct cw_attempt *a, bool requeue, bool empty)
{
    struct cw_job *j = a->job;
    bool ghost = requeue && !empty && a->rec->cause == CW__CAUSE__CAUSE_NODE_LOST;
    if (empty || ghost)
        cw_list_remove(&a->on_job);
    if (!requeue) {
        if (j->is_array) {
            cw_jobarray_count(j->array, a->state, (uint32_t)cw_outcome_exit_status(a->rec));
            cw_deps_note_element(m, j, a->ordinal, a->state);
        }
        cw_job_conclude(m, j, a->state, a->rec->end_ns);
        return;
    }
    if (j->is_array)
        cw_jobarray_set_next_attempt(j->array, a->ordinal, a->attempt + 1);
    a->requeue = !empty && !ghost;
    if (ghost)
        become_ghost(m, a);
    if (empty || ghost)
        requeue_now(m, j, a->ordinal, a->attempt);
    else if (j->is_array)
        j->array->n_held_back++;
    cw_job_conclude(m, j, CW__STATE__PENDING, 0);
}

struct ending {
    Cw__State state;
    Cw__Cause cause;
    int64_t end_ns;
    bool empty, requeue;
};

static void finish(struct cw_model *m, struct cw_attempt *a, const struct ending *end,
                   int64_t now_ns)
{
    Cw__AttemptRecord *r = a->rec;
    bool was_running = a->state == CW__STATE__RUNNING;
    int64_t begun = r->has_start_ns ? r->start_ns : r->grant_ns;
    a->state = r->state = end->state;
    r->has_cause = r->has_end_ns = true;
    r->cause = end->cause;
    r->end_ns = clamp(end->end_ns, begun, now_ns > begun ? now_ns : begun);
    cw_heap_set(m, a, INT64_MAX);
    leave_live(a, was_running);
    if (end->empty) {
        r->has_ledger_freed = r->ledger_freed = true;
        cw_ledger_free(a);
    }
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    cw_emit_attempt(m, CW_EFFECT_DONE, a);
    cw_emit_event(m, a->job, a, a->node, a->job->uid, "end", "%s (%s)%s%.80s",
                  cw_state_name(a->state), cw_cause_name(r->cause), r->message != NULL ? ": " : "",
                  r->message != NULL ? r->message : "");
    job_after(m, a, end->requeue, end->empty);
    if (end->empty)
        leave_memory(m, a);
    cw_deps_drain(m, now_ns);
    cw_emit_cycle(m);
}

/* The proof came after the end. */
static void empty_at_last(struct cw_model *m, struct cw_attempt *a)
{
    struct cw_job *j = a->job;
    a->rec->has_ledger_freed = a->rec->ledger_freed = true;
    cw_ledger_free(a);
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    cw_emit_event(m, j, a, a->node, 0, "emptied", "%s", "its cores are free again");
    if (a->requeue) {
        cw_list_remove(&a->on_job);
        if (j->is_array)
            j->array->n_held_back--;
        requeue_now(m, j, a->ordinal, a->attempt);
        cw_job_conclude(m, j, CW__STATE__PENDING, 0);
    }
    leave_memory(m, a);
    cw_emit_cycle(m);
}

int cw_model_ended(struct cw_model *m, const Cw__TaskEnd *e, int64_t now_ns, uint32_t max_requeues)
{
    struct cw_attempt *a = cw_model_attempt_numbered(m, e->key->id, e->key->attempt);
    if (a == NULL)
        return -ESTALE;
    if (cw_state_terminal(a->state)) {
        if (!e->empty)
            return -ESTALE;
        empty_at_last(m, a);
        return 0;
    }
    copy_end(a, e, now_ns);
    Cw__Cause cause = true_cause(a, e->cause);
    struct ending end = {
        .state = state_of(cause, e),
        .cause = cause,
        .end_ns = e->end_ns,
        .empty = e->empty,
        .requeue = may_requeue(a, cause, max_requeues),
    };
    if (e->cause == CW__CAUSE__CAUSE_LAUNCH_NODE)
        mark_node(m, a->node, a, now_ns);
    finish(m, a, &end, now_ns);
    return 0;
}

int cw_model_emptied(struct cw_model *m, uint64_t id, uint32_t attempt, int64_t now_ns)
{
    (void)now_ns;
    struct cw_attempt *a = cw_model_attempt_numbered(m, id, attempt);
    if (a == NULL || !cw_state_terminal(a->state))
        return -ESTALE;
    empty_at_last(m, a);
    return 0;
}

void cw_model_lost(struct cw_model *m, struct cw_attempt *a, const char *why, bool ledger_free,
                   int64_t now_ns, uint32_t max_requeues)
{
    if (cw_state_terminal(a->state)) {
        if (ledger_free)
            empty_at_last(m, a);
        return;
    }
    replace(&a->rec->message, why);
    Cw__Cause cause = true_cause(a, CW__CAUSE__CAUSE_NODE_LOST);
    struct ending end = {
        .state = state_of(cause, NULL),
        .cause = cause,
        .end_ns = now_ns,
        .empty = ledger_free,
        .requeue = may_requeue(a, cause, max_requeues),
    };
    finish(m, a, &end, now_ns);
}

/* ---- killing --------------------------------------------------------------------------------- */

void cw_attempt_ask_kill(struct cw_model *m, struct cw_attempt *a, Cw__Cause why, uint32_t uid,
                         int64_t now_ns)
{
    if (a->kill_step != 0)
        return;
    a->kill_step = 1;
    a->rec->has_kill_cause = true;
    a->rec->kill_cause = why;
    cw_heap_set(m, a, cw_attempt_patience(a, now_ns));
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    const char *event = why == CW__CAUSE__CAUSE_CANCEL ? "cancel" : "time-limit";
    if (why == CW__CAUSE__CAUSE_LAUNCH_NODE)
        event = "launch-limit";
    cw_emit_event(m, a->job, a, a->node, uid, event, "%s", "");
    cw_emit(m, &(struct cw_effect){.kind = CW_EFFECT_SEND_KILL,
                                   .job = a->job,
                                   .attempt = a,
                                   .node = a->node,
                                   .cause = why});
}

void cw_attempt_quarantine(struct cw_model *m, struct cw_attempt *a, int64_t now_ns)
{
    cw_autofree char *text = cw_xasprintf("node %s did not report the end within %d s of the kill",
                                          a->node->name, CW_MODEL_KILL_PATIENCE_S);
    replace(&a->rec->message, text);
    struct ending end = {
        .state = state_of(a->rec->kill_cause, NULL),
        .cause = a->rec->kill_cause,
        .end_ns = now_ns,
    };
    finish(m, a, &end, now_ns);
}
