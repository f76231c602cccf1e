/* The pass: walks the queue in order and starts what fits. What does not fit is remembered by shape
 * for the rest of the pass (a pass only takes, so what lacked room keeps lacking it): of 100,000
 * equal jobs behind a full cluster one is computed and the others cost a look-up, and when no core
 * is free anywhere only the first of each partition is looked at. Strict policies: the first job
 * that does not fit closes its partition. A job that no usable node could hold even when empty
 * (ReqNodeNotAvail) closes nothing: waiting for it would idle the nodes that are there. An array at
 * its throttle closes nothing either: it waits by its own wish. */
#include "sched/pass.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "sched/freenodes.h"
#include "sched/order.h"
#include "sched/placement.h"

#define N_MISSES 256

struct miss {
    struct cw_shape shape;
    enum cw_reason reason;
    bool set;
};

struct pass {
    struct cw_model *m;
    bool strict;
    struct cw_freenodes *nodes;
    struct cw_placement place;
    struct miss misses[N_MISSES]; /* direct-mapped by shape: a collision only computes again */
    uint64_t *closed;             /* strict: bit per partition */
    uint32_t n_closed;
    uint64_t max_starts;
    cw_pass_grant_fn grant;
    void *arg;
    struct cw_pass_stats stats;
};

/* ---- what did not fit ------------------------------------------------------------------------ */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static struct miss *miss_slot(struct pass *p, const struct cw_shape *s)
{
    uint64_t h = mix(mix(mix(s->part->index, s->cores), s->gpus), s->mem_bytes);
    h = mix(mix(h, (uintptr_t)s->isolation), (uintptr_t)s->gpu_type); /* interned texts */
    return &p->misses[h % N_MISSES];
}

static bool same_shape(const struct cw_shape *a, const struct cw_shape *b)
{
    return a->part == b->part && a->cores == b->cores && a->gpus == b->gpus &&
           a->mem_bytes == b->mem_bytes && a->isolation == b->isolation &&
           a->gpu_type == b->gpu_type;
}

static enum cw_reason why_not(struct pass *p, const struct cw_shape *s)
{
    for (uint32_t i = 0; i < cw_model_n_nodes(p->m); i++) {
        const struct cw_node *n = cw_model_node_at(p->m, i);
        if (cw_node_usable(n) && cw_partition_has(s->part, n) &&
            cw_shape_lacks(s, n) == CW_TERM_NONE)
            return CW_REASON_RESOURCES;
    }
    return CW_REASON_NODES_UNAVAILABLE;
}

/* ---- one job --------------------------------------------------------------------------------- */

/* Starts one element; NONE when it did. */
static enum cw_reason start_one(struct pass *p, struct cw_job *j, const struct cw_shape *s,
                                uint64_t ordinal)
{
    struct miss *miss = miss_slot(p, s);
    if (miss->set && same_shape(&miss->shape, s))
        return miss->reason;
    struct cw_node *n = cw_freenodes_find(p->nodes, s);
    if (n == NULL) {
        *miss = (struct miss){*s, why_not(p, s), true};
        return miss->reason;
    }
    cw_placement_fill(&p->place, s, n);
    uint32_t free_before = n->n_free;
    struct cw_partgrant part = {.node = n, .cores = p->place.cores, .grant = &p->place.grant};
    p->grant(j, ordinal, &part, 1, p->arg);
    assert(n->n_free < free_before); /* the grant must be charged */
    (void)free_before;
    cw_freenodes_update(p->nodes, n);
    p->stats.started++;
    return CW_REASON_NONE;
}

static bool may_start_more(const struct pass *p)
{
    return p->max_starts == 0 || p->stats.started < p->max_starts;
}

/* Starts what it can of j; NONE when j has nothing left to start or may not go on. A job whose last
 * element starts leaves the queue and stays in memory. */
static enum cw_reason start_job(struct pass *p, struct cw_job *j)
{
    struct cw_shape shape;
    uint64_t ordinal;
    if (!cw_shape_of_job(p->m, j, &shape))
        return CW_REASON_PARTITION_DOWN;
    while (may_start_more(p) && cw_job_eligible(j) && cw_job_next(j, &ordinal)) {
        enum cw_reason why = start_one(p, j, &shape, ordinal);
        if (why != CW_REASON_NONE)
            return why;
    }
    return CW_REASON_NONE;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool is_closed(const struct pass *p, uint16_t part)
{
    return ((p->closed[part / 64] >> (part % 64)) & 1) != 0;
}

static bool look_at(struct pass *p, struct cw_job *j)
{
    if (is_closed(p, j->partition))
        return p->n_closed < cw_model_n_queued_partitions(p->m);
    p->stats.looked_at++;
    enum cw_reason why = start_job(p, j);
    if (why != CW_REASON_NONE)
        j->reason = (uint8_t)why;
    bool closes = cw_freenodes_exhausted(p->nodes) || (p->strict && why == CW_REASON_RESOURCES);
    if (why != CW_REASON_NONE && closes) {
        p->closed[j->partition / 64] |= UINT64_C(1) << (j->partition % 64);
        p->n_closed++;
        return p->n_closed < cw_model_n_queued_partitions(p->m);
    }
    return may_start_more(p);
}

void cw_pass_run(struct cw_model *m, const struct cw_pass_policy *policy, int64_t now_ns,
                 uint64_t max_starts, cw_pass_grant_fn grant, void *arg, struct cw_pass_stats *ret)
{
    cw_order_refresh(m, policy, now_ns);
    struct cw_list *queue = cw_model_queue(m);
    struct pass *p = cw_xcalloc(1, sizeof(*p));
    p->m = m;
    p->strict = policy == NULL || (policy->caps & CW_SCHED_CAP_STRICT) != 0;
    p->max_starts = max_starts;
    p->grant = grant;
    p->arg = arg;
    if (!cw_list_empty(queue)) {
        p->closed = cw_xcalloc(UINT16_MAX / 64 + 1, sizeof(*p->closed));
        p->nodes = cw_freenodes_create(m);
        cw_list_each_safe(pos, queue)
            if (!look_at(p, cw_list_entry(pos, struct cw_job, in_queue)))
                break;
    }
    if (ret != NULL)
        *ret = p->stats;
    cw_freenodes_destroy(p->nodes);
    cw_placement_fini(&p->place);
    free(p->closed);
    free(p);
}
