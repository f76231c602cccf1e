/* Attempts: one try at running an element, from its grant to the kill; attempt_end.c has the end.
 * Every report is fenced by (element id, attempt, node): what does not name the attempt in memory
 * changes nothing. With several nodes the boxes of nodes 1.. are started first and the leader on
 * the head when all of them stand; each stage has its own patience. Test: attempt_test.c,
 * attempt_parts_test.c, model_random_test.c. */
#include "model/model.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "spec/outcome.h"

#define NS_PER_S INT64_C(1000000000)

/* ---- making ---------------------------------------------------------------------------------- */

struct cw_attempt *cw_attempt_create(struct cw_job *j, Cw__AttemptRecord *rec)
{
    size_t n_parts = rec->n_more_grants + 1;
    struct cw_attempt *a = cw_xcalloc(1, sizeof(*a) + n_parts * sizeof(a->parts[0]));
    a->id = rec->id;
    a->job_id = rec->job_id;
    a->attempt = rec->attempt;
    a->state = rec->state;
    a->job = j;
    a->rec = rec;
    a->n_parts = (uint32_t)n_parts;
    a->deadline_ns = INT64_MAX;
    a->heap_pos = UINT32_MAX;
    a->kill_step = rec->has_kill_cause || rec->state == CW__STATE__COMPLETING ? 1 : 0;
    if (j != NULL)
        cw_job_ordinal(j, a->id, &a->ordinal);
    return a;
}

void cw_attempt_destroy(struct cw_model *m, struct cw_attempt *a)
{
    cw_heap_set(m, a, INT64_MAX);
    cw_list_remove(&a->on_job);
    for (uint32_t k = 0; k < a->n_parts; k++) {
        cw_list_remove(&a->parts[k].on_node);
        free(a->parts[k].cores);
    }
    cw__attempt_record__free_unpacked(a->rec, NULL);
    free(a);
}

static Cw__Grant *copy_grant(const Cw__Grant *g)
{
    size_t n = cw__grant__get_packed_size(g);
    cw_autofree uint8_t *p = cw_xmalloc(n);
    return cw__grant__unpack(NULL, cw__grant__pack(g, p), p);
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

/* What the element has used up; its number of the next attempt moves on. */
static struct cw_tries take_attempt_number(struct cw_job *j, uint64_t ordinal)
{
    if (!j->is_array)
        return (struct cw_tries){j->next_attempt++, j->node_faults, j->retries_used};
    struct cw_tries t = cw_jobarray_tries(j->array, ordinal);
    bool was_pending = cw_jobarray_took(j->array, ordinal);
    assert(was_pending);
    (void)was_pending;
    j->array->n_live++;
    return t;
}

static Cw__AttemptRecord *make_record(struct cw_job *j, uint64_t ordinal,
                                      const struct cw_partgrant *parts, size_t n_parts,
                                      int64_t now_ns)
{
    Cw__AttemptRecord *rec = cw_xmalloc(sizeof(*rec));
    cw__attempt_record__init(rec);
    rec->id = cw_job_element_id(j, ordinal);
    struct cw_tries tries = take_attempt_number(j, ordinal);
    rec->attempt = tries.next;
    rec->has_node_faults = (rec->node_faults = tries.node_faults) != 0;
    rec->has_retries_used = (rec->retries_used = tries.retries_used) != 0;
    rec->job_id = j->id;
    rec->state = CW__STATE__STARTING;
    rec->grant = copy_grant(parts[0].grant);
    rec->has_grant_ns = true;
    rec->grant_ns = now_ns;
    if (n_parts > 1)
        rec->more_grants = cw_xcalloc(n_parts - 1, sizeof(struct Cw__Grant *));
    for (; rec->n_more_grants < n_parts - 1; rec->n_more_grants++)
        rec->more_grants[rec->n_more_grants] = copy_grant(parts[rec->n_more_grants + 1].grant);
    return rec;
}

static void send_start(struct cw_model *m, struct cw_part *p)
{
    cw_emit(m, &(struct cw_effect){.kind = CW_EFFECT_SEND_START,
                                   .job = p->attempt->job,
                                   .attempt = p->attempt,
                                   .node = p->node});
}

static void emit_granted(struct cw_model *m, struct cw_attempt *a)
{
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    cw_emit_job(m, CW_EFFECT_PUT_JOB, a->job);
    if (a->n_parts == 1)
        cw_emit_event(m, a->job, a, a->parts[0].node, a->job->uid, "start", "cores %s",
                      a->rec->grant->cores);
    else
        cw_emit_event(m, a->job, a, a->parts[0].node, a->job->uid, "start", "cores %s, %u nodes",
                      a->rec->grant->cores, a->n_parts);
    for (uint32_t k = 0; k < a->n_parts; k++)
        if (cw_part_startable(&a->parts[k]))
            send_start(m, &a->parts[k]);
}

struct cw_attempt *cw_model_grant(struct cw_model *m, struct cw_job *j, uint64_t ordinal,
                                  const struct cw_partgrant *parts, size_t n_parts, int64_t now_ns)
{
    uint64_t id = cw_job_element_id(j, ordinal);
    assert(n_parts > 0);
    /* Nothing starts twice. */
    assert(j->in_queue.next != NULL && cw_idtable_find(m->attempts, id) == NULL);
    struct cw_attempt *a = cw_attempt_create(j, make_record(j, ordinal, parts, n_parts, now_ns));
    for (uint32_t k = 0; k < n_parts; k++) {
        struct cw_node *n = parts[k].node;
        struct cw_part *p = &a->parts[k];
        assert(cw_attempt_part(a, n) == NULL);
        cw_part_init(a, k, n);
        cw_ledger_resolve(p);
        if (n->words > 0)
            memcpy(p->cores, parts[k].cores, n->words * sizeof(*p->cores));
        cw_ledger_charge(p);
    }
    cw_list_add_tail(&j->attempts, &a->on_job);
    cw_idtable_set(m->attempts, id, a);
    cw_queue_place(m, j);
    cw_job_settle(j);
    cw_heap_set(m, a, cw_attempt_launch_end(a));
    emit_granted(m, a);
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
    int64_t begun = a->rec->has_boxes_ns ? a->rec->boxes_ns : a->rec->grant_ns;
    return begun + CW_MODEL_LAUNCH_PATIENCE_S * NS_PER_S;
}

int64_t cw_attempt_patience(const struct cw_attempt *a, int64_t now_ns)
{
    int64_t grace_s = a->job != NULL ? a->job->kill_grace_s : 0;
    return now_ns + (grace_s + CW_MODEL_KILL_PATIENCE_S) * NS_PER_S;
}

void cw_attempt_set_start(struct cw_attempt *a, int64_t start_ns, int64_t now_ns)
{
    int64_t least = a->rec->has_boxes_ns ? a->rec->boxes_ns : a->rec->grant_ns;
    a->rec->has_start_ns = true;
    a->rec->start_ns = clamp(start_ns, least, now_ns > least ? now_ns : least);
}

/* ---- what the node says ---------------------------------------------------------------------- */

void cw_attempt_replace(char **field, const char *text)
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

/* Nodes 1.. all stand: the leader's turn. */
static void boxes_stand(struct cw_model *m, struct cw_attempt *a, int64_t now_ns)
{
    for (uint32_t k = 1; k < a->n_parts; k++)
        if (a->parts[k].phase != CW_PART_STARTED)
            return;
    if (a->state != CW__STATE__STARTING || a->kill_step != 0 || a->rec->has_boxes_ns)
        return;
    a->rec->has_boxes_ns = true;
    a->rec->boxes_ns = now_ns > a->rec->grant_ns ? now_ns : a->rec->grant_ns;
    cw_heap_set(m, a, cw_attempt_launch_end(a));
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    send_start(m, &a->parts[0]);
}

static void leader_runs(struct cw_model *m, struct cw_attempt *a, const Cw__TaskStarted *s,
                        int64_t now_ns)
{
    Cw__AttemptRecord *r = a->rec;
    cw_attempt_set_start(a, s->start_ns, now_ns);
    r->has_pid = true;
    r->pid = s->pid;
    r->has_cpus_bound = s->has_cpus_bound;
    r->cpus_bound = s->cpus_bound;
    cw_attempt_replace(&r->stdout_path, s->stdout_path);
    cw_attempt_replace(&r->stderr_path, s->stderr_path);
    if (a->state == CW__STATE__STARTING)
        set_running(a);
    cw_job_settle(a->job);
    if (a->kill_step == 0)
        cw_heap_set(m, a, cw_attempt_limit_end(a));
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    cw_emit_event(m, a->job, a, a->parts[0].node, a->job->uid, "running", "pid %u", s->pid);
}

int cw_model_started(struct cw_model *m, const struct cw_node *n, const Cw__TaskStarted *s,
                     int64_t now_ns)
{
    struct cw_attempt *a = cw_model_attempt(m, s->key->id);
    struct cw_part *p =
        a != NULL && a->attempt == s->key->attempt ? cw_attempt_part(a, n) : NULL;
    if (p == NULL || p->phase >= CW_PART_ENDED)
        return -ESTALE;
    if (p->phase != CW_PART_GRANTED)
        return 0; /* heard before */
    cw_part_set(p, CW_PART_STARTED);
    p->node->launch_faults = 0;
    if (cw_part_number(p) > 0) {
        boxes_stand(m, a, now_ns);
    } else {
        leader_runs(m, a, s, now_ns);
        cw_deps_note_started(m, a);
        cw_deps_drain(m, now_ns);
    }
    return 0;
}

/* ---- killing --------------------------------------------------------------------------------- */

void cw_attempt_send_kill(struct cw_model *m, struct cw_attempt *a, Cw__Cause why)
{
    for (uint32_t k = 0; k < a->n_parts; k++)
        if (a->parts[k].phase < CW_PART_ENDED)
            cw_emit(m, &(struct cw_effect){.kind = CW_EFFECT_SEND_KILL,
                                           .job = a->job,
                                           .attempt = a,
                                           .node = a->parts[k].node,
                                           .cause = why});
}

/* It goes down already; now nothing shall come after it. */
static void cancel_retry(struct cw_model *m, struct cw_attempt *a, uint32_t uid)
{
    Cw__AttemptRecord *r = a->rec;
    free(r->retry);
    r->retry = NULL;
    r->has_kill_cause = true;
    r->cause = r->kill_cause = CW__CAUSE__CAUSE_CANCEL;
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    cw_emit_event(m, a->job, a, a->parts[0].node, uid, "cancel", "%s", "");
}

static const char *kill_event(Cw__Cause why)
{
    switch ((int)why) {
    case CW__CAUSE__CAUSE_CANCEL: return "cancel";
    case CW__CAUSE__CAUSE_LAUNCH_NODE: return "launch-limit";
    case CW__CAUSE__CAUSE_TIME_LIMIT: return "time-limit";
    case CW__CAUSE__CAUSE_OWNER_GONE: return "owner-gone";
    default: return cw_cause_name(why);
    }
}

void cw_attempt_ask_kill(struct cw_model *m, struct cw_attempt *a, Cw__Cause why, uint32_t uid,
                         int64_t now_ns)
{
    if (a->rec->retry != NULL && why == CW__CAUSE__CAUSE_CANCEL)
        cancel_retry(m, a, uid);
    bool again = a->rec->has_kill_cause && a->rec->kill_cause == CW__CAUSE__CAUSE_REQUEUED;
    if (a->kill_step != 0 && again && why == CW__CAUSE__CAUSE_CANCEL && !a->rec->has_cause) {
        a->rec->kill_cause = why; /* it shall not begin again after all */
        cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    }
    if (a->kill_step != 0)
        return;
    a->kill_step = 1;
    a->rec->has_kill_cause = true;
    a->rec->kill_cause = why;
    cw_heap_set(m, a, cw_attempt_patience(a, now_ns));
    cw_parts_drop_unsent(a);
    cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
    cw_emit_event(m, a->job, a, a->parts[0].node, uid, kill_event(why), "%s", "");
    cw_attempt_send_kill(m, a, why);
}
