/* Who waits where: the queue that the scheduler walks, and the jobs that are parked beside it
 * because a hold, a dependency or a vanished partition keeps them from starting whatever is free.
 * Keeping these out of the queue is what makes a pass cheap behind 100,000 dependent jobs. Order of
 * the queue: larger priority first, then smaller id. Test: job_test.c. */
#include "model/model.h"

struct cw_list *cw_model_queue(struct cw_model *m) { return &m->queue; }
struct cw_list *cw_model_parked(struct cw_model *m) { return &m->parked; }

uint64_t cw_model_next_pass(struct cw_model *m) { return ++m->n_passes; }

int64_t *cw_model_order_stamp(struct cw_model *m) { return &m->order_ns; }

static bool goes_before(const struct cw_job *a, const struct cw_job *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->id < b->id;
}

/* Searches from both ends at once: new jobs belong to the tail, requeued ones near the head. */
static void insert_ordered(struct cw_list *head, struct cw_job *j)
{
    struct cw_list *front = head->next, *back = head->prev;
    while (back != head && front != head) {
        if (goes_before(cw_list_entry(back, struct cw_job, in_queue), j)) {
            cw_list_add_tail(back->next, &j->in_queue);
            return;
        }
        if (goes_before(j, cw_list_entry(front, struct cw_job, in_queue))) {
            cw_list_add_tail(front, &j->in_queue);
            return;
        }
        back = back->prev;
        front = front->next;
    }
    cw_list_add_tail(head, &j->in_queue);
}

static void count(struct cw_model *m, const struct cw_job *j, int step)
{
    if (j->partition >= m->n_parts)
        return;
    uint64_t *n = &m->parts[j->partition].n_queued;
    if (step > 0 && (*n)++ == 0)
        m->n_queued_parts++;
    if (step < 0 && --*n == 0)
        m->n_queued_parts--;
}

void cw_queue_leave(struct cw_model *m, struct cw_job *j)
{
    if (j->in_queue.next == NULL)
        return;
    cw_list_remove(&j->in_queue);
    if (!j->parked)
        count(m, j, -1);
    j->parked = false;
}

void cw_queue_place(struct cw_model *m, struct cw_job *j)
{
    uint64_t ordinal;
    bool waits = cw_job_next(j, &ordinal);
    bool park = waits && (j->held || j->deps != NULL || j->early || j->partition >= m->n_parts);
    bool is_in = j->in_queue.next != NULL;
    if (is_in == waits && j->parked == park)
        return;
    cw_queue_leave(m, j);
    if (!waits)
        return;
    j->parked = park;
    if (park) {
        cw_list_add_tail(&m->parked, &j->in_queue);
        return;
    }
    insert_ordered(&m->queue, j);
    count(m, j, 1);
}

void cw_model_queue_reorder(struct cw_model *m, struct cw_job *j)
{
    if (j->in_queue.next == NULL || j->parked)
        return;
    cw_list_remove(&j->in_queue);
    insert_ordered(&m->queue, j);
}

uint64_t cw_model_n_queued(const struct cw_model *m, uint16_t partition)
{
    return partition < m->n_parts ? m->parts[partition].n_queued : 0;
}

uint32_t cw_model_n_queued_partitions(const struct cw_model *m) { return m->n_queued_parts; }
