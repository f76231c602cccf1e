/* Attempts from their stored rows: linked to job and node, charged, with their deadlines. Comes
 * after nodes and jobs. What must not be in memory is refused with the reason; the owner puts such
 * a row aside. Test: attempt_test.c, model_random_test.c. */
#include "model/model.h"

#include <string.h>

#include "base/mem.h"
#include "spec/outcome.h"

static struct cw_node *node_for(struct cw_model *m, const char *name)
{
    struct cw_node *n = cw_model_node(m, name);
    if (n != NULL)
        return n;
    Cw__NodeRecord rec = CW__NODE_RECORD__INIT;
    rec.name = (char *)name;
    return cw_model_node_set(m, &rec, false, 0);
}

static const char *name_of(const Cw__AttemptRecord *rec, size_t k)
{
    return k == 0 ? rec->grant->node : rec->more_grants[k - 1]->node;
}

static int check_nodes(const Cw__AttemptRecord *rec, struct cw_error *err)
{
    for (size_t k = 1; k <= rec->n_more_grants; k++)
        for (size_t i = 0; i < k; i++)
            if (strcmp(name_of(rec, i), name_of(rec, k)) == 0)
                return cw_fail(err, -EBADMSG, "attempt %llu:%u: node %s is in it twice",
                               (unsigned long long)rec->id, rec->attempt, name_of(rec, k));
    return 0;
}

static int check_row(struct cw_model *m, const Cw__AttemptRecord *rec, const struct cw_job *j,
                     struct cw_error *err)
{
    unsigned long long id = rec->id;
    uint64_t ordinal;
    bool live = !cw_state_terminal(rec->state);
    const struct cw_attempt *older = cw_idtable_find(m->attempts, rec->id);
    if (older != NULL && !cw_state_terminal(older->state))
        return cw_fail(err, -EEXIST, "attempt %llu:%u: another attempt of it is live", id,
                       rec->attempt);
    if (live && (j == NULL || !cw_job_ordinal(j, rec->id, &ordinal)))
        return cw_fail(err, -ENOENT, "attempt %llu:%u: its job %llu is not live", id, rec->attempt,
                       (unsigned long long)rec->job_id);
    if (live && j->is_array && cw_idset_has(&j->array->pending, ordinal))
        return cw_fail(err, -EBADMSG, "attempt %llu:%u lives, but its element waits", id,
                       rec->attempt);
    return check_nodes(rec, err);
}

/* Does the element of this ended attempt wait for its ledger to start again? Otherwise it has
 * ended. */
static bool waits_for_ledger(const struct cw_job *j, uint64_t ordinal, uint32_t attempt)
{
    if (!j->is_array)
        return true; /* a plain job with a final attempt would be final and not here */
    return !cw_idset_has(&j->array->pending, ordinal) &&
           cw_jobarray_next_attempt(j->array, ordinal) > attempt;
}

/* What is charged for it still is so on lost nodes only, and its element went on. (That the next
 * try has begun shows only when that row comes: see outlived.) */
static bool is_ghost(const struct cw_attempt *a)
{
    const struct cw_job *j = a->job;
    if (!cw_state_terminal(a->state) || j == NULL || cw_parts_held(a))
        return false;
    return !j->is_array || cw_jobarray_next_attempt(j->array, a->ordinal) > a->attempt;
}

/* Rows come in the order of attempts: a later one of the same element makes the earlier a ghost. */
static void outlived(struct cw_model *m, struct cw_attempt *a)
{
    if (a->requeue && a->job->is_array)
        a->job->array->n_held_back--;
    a->requeue = false;
    a->job = NULL;
    cw_list_remove(&a->on_job);
    cw_idtable_remove(m->attempts, a->id);
    cw_list_add_tail(&m->ghosts, &a->ghost);
}

static void join_job(struct cw_model *m, struct cw_attempt *a)
{
    struct cw_job *j = a->job;
    cw_list_add_tail(&j->attempts, &a->on_job);
    if (cw_state_terminal(a->state)) {
        a->requeue = waits_for_ledger(j, a->ordinal, a->attempt);
        if (a->requeue && j->is_array)
            j->array->n_held_back++;
    } else if (j->is_array) {
        j->array->n_live++;
        j->array->n_running += a->state == CW__STATE__RUNNING;
    }
    if (!j->is_array && j->next_attempt <= a->attempt)
        j->next_attempt = a->attempt + 1;
    if (a->state == CW__STATE__RUNNING)
        cw_deps_note_started(m, a);
    cw_queue_place(m, j);
    cw_job_settle(j);
}

static void charge(struct cw_attempt *a)
{
    for (uint32_t k = 0; k < a->n_parts; k++)
        if (a->parts[k].phase != CW_PART_FREED) {
            cw_ledger_resolve(&a->parts[k]);
            cw_ledger_charge(&a->parts[k]);
        }
}

int cw_model_restore_attempt(struct cw_model *m, const Cw__AttemptRecord *rec,
                             struct cw_attempt **ret, struct cw_error *err)
{
    *ret = NULL;
    if (cw_state_terminal(rec->state) && rec->ledger_freed)
        return 0;
    struct cw_job *j = cw_model_job(m, rec->job_id);
    int r = check_row(m, rec, j, err);
    if (r < 0)
        return r;
    size_t n = cw__attempt_record__get_packed_size(rec);
    cw_autofree uint8_t *p = cw_xmalloc(n);
    Cw__AttemptRecord *copy = cw__attempt_record__unpack(NULL, cw__attempt_record__pack(rec, p), p);
    struct cw_attempt *older = cw_model_attempt(m, rec->id);
    if (older != NULL)
        outlived(m, older);
    struct cw_attempt *a = cw_attempt_create(j, copy);
    for (uint32_t k = 0; k < a->n_parts; k++)
        cw_part_init(a, k, node_for(m, name_of(copy, k)));
    cw_parts_load(a);
    charge(a);
    if (is_ghost(a)) {
        a->job = NULL;
        cw_list_add_tail(&m->ghosts, &a->ghost);
    } else {
        cw_idtable_set(m->attempts, a->id, a);
    }
    if (a->job != NULL)
        join_job(m, a);
    if (!cw_state_terminal(a->state) && a->kill_step != 0)
        cw_heap_set(m, a, INT64_MIN);
    else if (a->state == CW__STATE__RUNNING)
        cw_heap_set(m, a, cw_attempt_limit_end(a));
    else if (a->state == CW__STATE__STARTING)
        cw_heap_set(m, a, cw_attempt_launch_end(a));
    *ret = a;
    return 0;
}
