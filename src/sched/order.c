/* Priorities from the sched plugin. New jobs stand at the tail, not evaluated; one is moved only
 * when its priority demands it, so with a policy that gives equal priorities a refresh costs the
 * evaluation and nothing else. See order.h. */
#include "sched/order.h"

#include <stdlib.h>

#include "base/mem.h"

static int64_t by_policy(const struct cw_model *m, const struct cw_pass_policy *p,
                         const struct cw_job *j, int64_t now_ns)
{
    const struct cw_partition *part = cw_model_partition(m, j->partition);
    if (p == NULL || p->ops == NULL || p->ops->priority == NULL)
        return 0;
    struct cw_sched_job view = {
        .size = sizeof(view),
        .id = j->id,
        .submit_ns = j->submit_ns,
        .now_ns = now_ns,
        .time_limit_s = j->time_limit_s,
        .cores = cw_want_cores(j->want),
        .gpus = cw_want_gpus(j->want),
        .uid = j->uid,
        .mem_bytes = j->want->mem_node != 0 ? j->want->mem_node : j->want->mem_cpu * cw_want_cores(j->want),
        .partition = part != NULL ? part->name : NULL,
        .account = j->account,
    };
    return p->ops->priority(p->ctx, &view);
}

void cw_order_explain(const struct cw_model *m, const struct cw_pass_policy *p,
                      const struct cw_job *j, int64_t now_ns, struct cw_order_terms *ret)
{
    int64_t v;
    ret->policy = by_policy(m, p, j, now_ns);
    ret->is_set = j->set_priority != INT64_MIN;
    if (ret->is_set)
        v = j->set_priority;
    else if (__builtin_sub_overflow(ret->policy, (int64_t)j->nice, &v))
        v = j->nice > 0 ? INT64_MIN : INT64_MAX;
    ret->priority = v == INT64_MIN ? v + 1 : v; /* INT64_MIN says: not evaluated */
}

static int64_t evaluate(const struct cw_model *m, const struct cw_pass_policy *p,
                        const struct cw_job *j, int64_t now_ns)
{
    struct cw_order_terms t;
    cw_order_explain(m, p, j, now_ns, &t);
    return t.priority;
}

/* Behind it are only larger ids that are not evaluated yet. */
static bool in_order(struct cw_list *queue, const struct cw_job *j)
{
    if (j->in_queue.prev == queue)
        return true;
    const struct cw_job *before = cw_list_entry(j->in_queue.prev, struct cw_job, in_queue);
    return before->priority > j->priority ||
           (before->priority == j->priority && before->id < j->id);
}

static int compare(const void *pa, const void *pb)
{
    const struct cw_job *a = *(struct cw_job *const *)pa, *b = *(struct cw_job *const *)pb;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static void sort(struct cw_list *queue, size_t n)
{
    struct cw_job **v = cw_xcalloc(n, sizeof(*v));
    size_t i = 0;
    cw_list_each(pos, queue)
        v[i++] = cw_list_entry(pos, struct cw_job, in_queue);
    qsort(v, n, sizeof(*v), compare);
    cw_list_init(queue);
    for (i = 0; i < n; i++)
        cw_list_add_tail(queue, &v[i]->in_queue);
    free(v);
}

static void refresh_all(struct cw_model *m, const struct cw_pass_policy *p, int64_t now_ns)
{
    struct cw_list *queue = cw_model_queue(m);
    size_t n = 0;
    bool sorted = true;
    const struct cw_job *before = NULL;
    cw_list_each(pos, queue) {
        struct cw_job *j = cw_list_entry(pos, struct cw_job, in_queue);
        j->priority = evaluate(m, p, j, now_ns);
        sorted = sorted && (before == NULL || compare(&before, &j) < 0);
        before = j;
        n++;
    }
    if (!sorted)
        sort(queue, n);
}

/* Whoever is not evaluated stands behind all that are; from the first of these on, so that each one
 * moves forward or not at all. */
static void refresh_new(struct cw_model *m, const struct cw_pass_policy *p, int64_t now_ns)
{
    struct cw_list *queue = cw_model_queue(m), *first = queue;
    while (first->prev != queue &&
           cw_list_entry(first->prev, struct cw_job, in_queue)->priority == INT64_MIN)
        first = first->prev;
    for (struct cw_list *pos = first, *behind; pos != queue; pos = behind) {
        struct cw_job *j = cw_list_entry(pos, struct cw_job, in_queue);
        behind = pos->next;
        j->priority = evaluate(m, p, j, now_ns);
        if (!in_order(queue, j))
            cw_model_queue_reorder(m, j);
    }
}

void cw_order_refresh(struct cw_model *m, const struct cw_pass_policy *p, int64_t now_ns)
{
    int64_t *last = cw_model_order_stamp(m);
    if (now_ns - *last < CW_ORDER_REFRESH_NS && now_ns >= *last) {
        refresh_new(m, p, now_ns);
        return;
    }
    *last = now_ns;
    refresh_all(m, p, now_ns);
}
