/* Jobs: made from a submitted or a stored row, turned back into the row, concluded when nothing of
 * them waits or lives. What never changes of a job stays packed (spec_packed) and is only copied
 * into rows; the few numbers that scheduling needs are taken out once. Test: job_test.c. */
#include "model/model.h"

#include <string.h>

#include "base/mem.h"
#include "spec/check.h"
#include "spec/outcome.h"

/* ---- making ---------------------------------------------------------------------------------- */

/* The part of the row that never changes. Packed without the counters, so that appending those to
 * it gives a whole row (fields of a protobuf message may come in any order, the last one counts).
 */
static void pack_fixed(struct cw_job *j, const Cw__JobRecord *rec)
{
    Cw__JobRecord r = *rec;
    r.id = j->id;
    r.state = CW__STATE__PENDING;
    r.has_end_ns = r.has_held = r.has_next_attempt = r.has_count = false;
    r.has_held_by_admin = r.has_node_faults = r.has_retries_used = r.has_not_before_ns = false;
    r.held_reason = NULL;
    r.has_n_completed = r.has_n_failed = r.has_n_cancelled = r.has_worst_exit = false;
    r.reason = r.pending = r.cancelled = NULL;
    r.n_requeued = 0;
    r.requeued = NULL;
    size_t n = cw__job_record__get_packed_size(&r);
    j->spec_packed = cw_xmalloc(n);
    j->spec_len = (uint32_t)cw__job_record__pack(&r, j->spec_packed);
}

static uint64_t time_limit(const Cw__JobSpec *s, const struct cw_partition *p)
{
    if (s->has_time_limit_s)
        return s->time_limit_s;
    uint64_t t = p != NULL && p->default_time_s != 0 ? p->default_time_s : UINT64_MAX;
    return p != NULL && p->max_time_s != 0 && t > p->max_time_s ? p->max_time_s : t;
}

/* What a spec says, into a job; also when it has changed. */
static void take_spec(struct cw_model *m, struct cw_job *j, const Cw__JobSpec *s)
{
    const struct cw_partition *p = cw_model_partition_find(m, s->partition);
    j->throttle = j->is_array && s->array->has_throttle ? s->array->throttle : 0;
    j->want = cw_want_get(m, s);
    j->time_limit_s = time_limit(s, p);
    j->time_est_s = s->time_est_s < UINT32_MAX ? (uint32_t)s->time_est_s : UINT32_MAX;
    j->priority = INT64_MIN;
    j->set_priority = s->has_priority ? s->priority : INT64_MIN;
    j->nice = s->nice;
    j->partition = p != NULL ? p->index : UINT16_MAX;
    j->no_requeue = s->no_requeue;
    j->has_deps = s->n_dependencies > 0;
    j->kill_grace_s = s->kill_grace_s;
    j->keep_invalid = s->keep_on_invalid_dep;
    j->deps_any = s->dependency_rule != NULL && strcmp(s->dependency_rule, CW_DEPS_ANY) == 0;
    j->deadline_ns = s->has_deadline_ns ? s->deadline_ns : INT64_MAX;
    j->retries = s->retries;
    j->retry_delay_s = s->retry_delay_s;
    j->retry_on = cw_names_get(m, s->retry_on);
    j->name = cw_names_get(m, s->name);
    j->account = cw_names_get(m, s->account);
}

static void drop_spec(struct cw_model *m, struct cw_job *j)
{
    cw_want_put(m, cw_steal(j->want));
    cw_names_put(m, cw_steal(j->retry_on));
    cw_names_put(m, cw_steal(j->name));
    cw_names_put(m, cw_steal(j->account));
}

static struct cw_job *job_create(struct cw_model *m, const Cw__JobRecord *rec, uint64_t id,
                                 struct cw_error *err)
{
    const Cw__JobSpec *s = rec->spec;
    struct cw_jobarray *a = NULL;
    if (s->array != NULL && (a = cw_jobarray_create(s->array->indices, err)) == NULL)
        return NULL;
    struct cw_job *j = cw_xcalloc(1, sizeof(*j));
    j->id = id;
    j->array = a;
    j->is_array = a != NULL;
    j->count = a != NULL ? cw_idset_count(&a->indices) : 1;
    j->state = CW__STATE__PENDING;
    j->held = rec->has_held ? rec->held : s->hold;
    j->held_by_admin = rec->held_by_admin;
    j->uid = rec->owner->uid;
    j->gid = rec->owner->gid;
    j->user = cw_names_get(m, rec->owner->name);
    j->next_attempt = rec->has_next_attempt ? rec->next_attempt : 1;
    j->submit_ns = rec->submit_ns;
    j->begin_ns = rec->has_not_before_ns && rec->not_before_ns > s->begin_ns ? rec->not_before_ns
                                                                             : s->begin_ns;
    j->early = j->begin_ns > rec->submit_ns; /* one in the past is over at the first look */
    j->timer_pos = UINT32_MAX;
    j->node_faults = rec->node_faults;
    j->retries_used = rec->retries_used;
    cw_list_init(&j->attempts);
    cw_list_init(&j->waiters);
    take_spec(m, j, s);
    pack_fixed(j, rec);
    return j;
}

void cw_job_destroy(struct cw_model *m, struct cw_job *j)
{
    cw_queue_leave(m, j);
    cw_jobtimer_leave(m, j);
    cw_deps_detach(m, j);
    cw_list_each_safe(pos, &j->attempts) {
        /* In quarantine: it outlives its job. */
        cw_list_entry(pos, struct cw_attempt, on_job)->job = NULL;
        cw_list_remove(pos);
    }
    cw_names_put(m, j->user);
    drop_spec(m, j);
    cw_names_put(m, j->end_reason);
    cw_jobarray_destroy(j->array);
    free(j->spec_packed);
    free(j);
}

int cw_model_submit(struct cw_model *m, const Cw__JobRecord *rec, struct cw_job **ret,
                    struct cw_error *err)
{
    const Cw__JobSpec *s = rec->spec;
    if (cw_model_partition_find(m, s->partition) == NULL)
        return cw_fail(err, -EINVAL, "partition %s does not exist",
                       s->partition != NULL ? s->partition : "(default)");
    int r = cw_deps_check(m, s, err);
    if (r < 0)
        return r;
    struct cw_error parse = {.code = -EINVAL};
    struct cw_job *j = job_create(m, rec, m->next_id, &parse);
    if (j == NULL)
        return cw_fail(err, parse.code, "%s", parse.text);
    m->next_id += j->is_array ? j->count + 1 : 1;
    cw_model_slot_add(m, j);
    cw_deps_attach(m, j, s, false);
    j->early = j->begin_ns > rec->submit_ns; /* after:ID+MIN may have moved it */
    cw_jobtimer_set(m, j);
    cw_queue_place(m, j);
    cw_job_settle(j);
    cw_emit_job(m, CW_EFFECT_PUT_JOB, j);
    cw_emit_event(m, j, NULL, NULL, j->uid, "submit", "%s", j->name != NULL ? j->name : "");
    if (!j->parked)
        cw_emit_cycle(m);
    *ret = j;
    return 0;
}

/* The stored part that does not change by itself, with the new spec. True: its begin is another one. */
static bool repack(struct cw_job *j, const Cw__JobSpec *s)
{
    Cw__JobRecord *old = cw_job_record(j), rec = *old;
    bool begin = old->spec->begin_ns != s->begin_ns;
    rec.spec = (Cw__JobSpec *)s;
    rec.has_revision = true;
    rec.revision = old->revision + 1;
    free(cw_steal(j->spec_packed));
    pack_fixed(j, &rec);
    cw__job_record__free_unpacked(old, NULL);
    return begin;
}

/* A changed limit counts for what runs, from its start. */
static void set_limits(struct cw_model *m, struct cw_job *j)
{
    cw_list_each(pos, &j->attempts) {
        struct cw_attempt *a = cw_list_entry(pos, struct cw_attempt, on_job);
        if (a->state != CW__STATE__RUNNING || a->kill_step != 0)
            continue;
        cw_heap_set(m, a, cw_attempt_limit_end(a));
        cw_emit_attempt(m, CW_EFFECT_PUT_ATTEMPT, a);
        cw_emit(m, &(struct cw_effect){.kind = CW_EFFECT_SEND_LIMIT,
                                       .job = j,
                                       .attempt = a,
                                       .node = a->parts[0].node});
    }
}

int cw_model_update(struct cw_model *m, struct cw_job *j, const Cw__JobSpec *s, bool new_deps,
                    uint32_t uid, const char *what, int64_t now_ns, struct cw_error *err)
{
    if (cw_model_partition_find(m, s->partition) == NULL)
        return cw_fail(err, -EINVAL, "partition %s does not exist", s->partition);
    int r = new_deps ? cw_deps_check(m, s, err) : 0;
    if (r == 0 && new_deps && cw_deps_cycle(m, j, s))
        r = cw_fail(err, -EINVAL, "dependency: it would wait for itself");
    if (r < 0)
        return r;
    bool limit = s->time_limit_s != j->time_limit_s;
    cw_queue_leave(m, j);
    if (new_deps)
        cw_deps_detach(m, j);
    bool begin = repack(j, s);
    drop_spec(m, j);
    take_spec(m, j, s);
    if (begin || new_deps) /* else a back-off or the delay of a dependency stays */
        j->begin_ns = s->begin_ns;
    if (new_deps)
        cw_deps_attach(m, j, s, false);
    j->early = j->begin_ns > now_ns;
    cw_jobtimer_set(m, j);
    cw_queue_place(m, j);
    cw_job_settle(j);
    if (limit)
        set_limits(m, j);
    cw_emit_job(m, CW_EFFECT_PUT_JOB, j);
    cw_emit_event(m, j, NULL, NULL, uid, "update", "%s", what);
    cw_emit_cycle(m);
    return 0;
}

int cw_model_restore_job(struct cw_model *m, const Cw__JobRecord *rec, struct cw_job **ret,
                         struct cw_error *err)
{
    *ret = NULL;
    if (cw_state_terminal(rec->state))
        return 0;
    if (cw_model_job(m, rec->id) != NULL)
        return cw_fail(err, -EEXIST, "job %llu is there already", (unsigned long long)rec->id);
    struct cw_error parse = {.code = -EINVAL};
    struct cw_job *j = job_create(m, rec, rec->id, &parse);
    if (j == NULL)
        return cw_fail(err, parse.code, "job %llu: %s", (unsigned long long)rec->id, parse.text);
    int r = j->is_array ? cw_jobarray_restore(j->array, rec, err) : 0;
    if (r < 0) {
        cw_job_destroy(m, j);
        return r;
    }
    j->end_reason = cw_names_get(m, rec->reason);
    cw_model_slot_add(m, j);
    cw_deps_attach(m, j, rec->spec, true);
    cw_jobtimer_set(m, j);
    cw_queue_place(m, j);
    cw_job_settle(j);
    uint64_t behind = j->id + (j->is_array ? j->count : 0) + 1;
    if (behind > m->next_id)
        m->next_id = behind;
    *ret = j;
    return 0;
}

/* ---- elements -------------------------------------------------------------------------------- */

uint64_t cw_job_element_id(const struct cw_job *j, uint64_t ordinal)
{
    return j->is_array ? j->id + 1 + ordinal : j->id;
}

bool cw_job_ordinal(const struct cw_job *j, uint64_t element_id, uint64_t *ret)
{
    if (!j->is_array && element_id == j->id) {
        *ret = 0;
        return true;
    }
    if (!j->is_array || element_id <= j->id || element_id - j->id > j->count)
        return false;
    *ret = element_id - j->id - 1;
    return true;
}

uint64_t cw_job_index(const struct cw_job *j, uint64_t ordinal)
{
    uint64_t index = 0;
    if (j->is_array)
        cw_idset_nth(&j->array->indices, ordinal, &index);
    return index;
}

uint64_t cw_job_n_waiting(const struct cw_job *j)
{
    if (j->is_array)
        return cw_idset_count(&j->array->pending);
    return !cw_state_terminal(j->state) && cw_list_empty(&j->attempts) ? 1 : 0;
}

bool cw_job_next(const struct cw_job *j, uint64_t *ret_ordinal)
{
    if (j->is_array && !cw_idset_empty(&j->array->pending)) {
        *ret_ordinal = cw_idset_first(&j->array->pending);
        return true;
    }
    *ret_ordinal = 0;
    return !j->is_array && cw_job_n_waiting(j) == 1;
}

static bool throttled(const struct cw_job *j)
{
    return j->is_array && j->throttle != 0 && j->array->n_live >= j->throttle;
}

bool cw_job_eligible(const struct cw_job *j)
{
    uint64_t ordinal;
    return j->in_queue.next != NULL && !j->parked && !throttled(j) && cw_job_next(j, &ordinal);
}

enum cw_reason cw_job_reason(const struct cw_job *j)
{
    if (j->partition == UINT16_MAX)
        return CW_REASON_PARTITION_DOWN;
    if (j->held)
        return j->held_by_admin ? CW_REASON_HELD_ADMIN : CW_REASON_HELD;
    if (j->deps != NULL)
        return j->deps->never ? CW_REASON_NEVER : CW_REASON_DEPENDENCY;
    if (j->early)
        return CW_REASON_BEGIN;
    if (throttled(j))
        return CW_REASON_ARRAY_LIMIT;
    switch ((enum cw_reason)j->reason) {
    case CW_REASON_PRIORITY:
    case CW_REASON_RESOURCES:
    case CW_REASON_NODES_UNAVAILABLE:
    case CW_REASON_SCHEDULING:
    case CW_REASON_PAUSED:
    case CW_REASON_DISK: return (enum cw_reason)j->reason;
    default: return CW_REASON_PRIORITY;
    }
}

void cw_job_settle(struct cw_job *j)
{
    const struct cw_jobarray *a = j->array;
    if (a != NULL && (!cw_idset_empty(&a->pending) || a->n_live == 0))
        j->state = CW__STATE__PENDING;
    else if (a != NULL)
        j->state = a->n_running > 0 ? CW__STATE__RUNNING : CW__STATE__STARTING;
    else if (cw_list_empty(&j->attempts))
        j->state = CW__STATE__PENDING;
    else {
        const struct cw_attempt *t = cw_list_entry(j->attempts.next, struct cw_attempt, on_job);
        j->state = cw_state_terminal(t->state) ? CW__STATE__PENDING : t->state;
    }
    j->reason = j->state == CW__STATE__PENDING ? (uint8_t)cw_job_reason(j) : CW_REASON_NONE;
}

/* ---- the end --------------------------------------------------------------------------------- */

bool cw_job_done(const struct cw_job *j)
{
    const struct cw_jobarray *a = j->array;
    if (a != NULL)
        return cw_idset_empty(&a->pending) && a->n_live == 0 && a->n_held_back == 0;
    if (cw_list_empty(&j->attempts))
        return false; /* it waits */
    const struct cw_attempt *t = cw_list_entry(j->attempts.next, struct cw_attempt, on_job);
    return cw_state_terminal(t->state) && !t->requeue;
}

static Cw__State array_state(const struct cw_jobarray *a)
{
    if (a->n_failed > 0)
        return CW__STATE__FAILED;
    return a->n_cancelled > 0 ? CW__STATE__CANCELLED : CW__STATE__COMPLETED;
}

bool cw_job_conclude(struct cw_model *m, struct cw_job *j, Cw__State plain_state, int64_t end_ns)
{
    bool is_final = j->is_array ? cw_job_done(j) : cw_state_terminal(plain_state);
    if (!is_final) {
        if (j->is_array && (j->array->n_failed > 0 || j->array->n_cancelled > 0))
            cw_deps_note(m, j->id, CW_DEPNEWS_FAILING);
        cw_queue_place(m, j);
        cw_job_settle(j);
        cw_emit_job(m, CW_EFFECT_PUT_JOB, j);
        return false;
    }
    j->state = j->is_array ? array_state(j->array) : plain_state;
    j->reason = CW_REASON_NONE;
    j->end_ns = end_ns;
    if (j->state != CW__STATE__CANCELLED && j->state != CW__STATE__DEADLINE) { /* of some elements it may be the reason, not of all */
        cw_names_put(m, j->end_reason);
        j->end_reason = NULL;
    }
    cw_queue_leave(m, j);
    cw_emit_job(m, CW_EFFECT_PUT_JOB, j);
    cw_emit_job(m, CW_EFFECT_JOB_FINAL, j);
    cw_deps_note(m, j->id, j->state == CW__STATE__COMPLETED ? CW_DEPNEWS_OK : CW_DEPNEWS_FAILED);
    cw_model_slot_remove(m, j);
    cw_job_destroy(m, j);
    return true;
}
