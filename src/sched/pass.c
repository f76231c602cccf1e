/* The pass: walks the queue in order and starts what fits. What does not fit is remembered by wish
 * for the rest of the pass (a pass only takes, so what lacked room keeps lacking it): of 100,000
 * equal jobs behind a full cluster one is computed and the others cost a look-up, and when no core
 * is free anywhere only the first of each partition is looked at. Strict policies: the first job
 * that does not fit gets a reservation at the earliest moment that is known, and what is behind it
 * starts where it cannot delay that (EASY backfill: D. Lifka, "The ANL/IBM SP scheduling system",
 * 1995; conservative: the first `depth` jobs do); without backfill it closes its partition. A
 * reservation is made anew in every pass, so it moves forward when something ends early. A job that
 * no usable node could hold even when empty (ReqNodeNotAvail) reserves and closes nothing: waiting
 * for it would idle the nodes that are there. An array at its throttle neither: it waits by its own
 * wish. */
#include "sched/pass.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "sched/freenodes.h"
#include "sched/order.h"
#include "sched/placement.h"
#include "sched/timeline.h"

struct pass {
    struct cw_model *m;
    bool strict;
    struct cw_freenodes *nodes;
    struct cw_timeline *timeline; /* once something is reserved */
    enum cw_backfill backfill;
    uint32_t depth;
    uint32_t *n_reserved; /* by partition */
    int64_t now_ns;
    struct cw_picks picks, reserved;
    struct cw_placement *places; /* as many as the widest grant so far */
    struct cw_partgrant *parts;
    uint32_t n_places;
    uint64_t number; /* of this pass: marks what did not fit, in the wishes */
    uint64_t *closed;             /* strict: bit per partition */
    uint32_t n_closed;
    uint64_t max_starts;
    cw_pass_grant_fn grant;
    void *arg;
    struct cw_pass_stats stats;
};

/* ---- what did not fit ------------------------------------------------------------------------ */

/* Could it start if the nodes that there are were empty? The first that hold it settle that. */
static enum cw_reason why_not(struct pass *p, const struct cw_shape *s)
{
    const struct cw_want *w = s->want;
    uint64_t tasks = 0;
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < cw_model_n_nodes(p->m); i++) {
        const struct cw_node *n = cw_model_node_at(p->m, i);
        struct cw_room r;
        if (!cw_node_usable(n) || !cw_partition_has(s->part, n) ||
            cw_shape_lacks(s, n) != CW_TERM_NONE)
            continue;
        cw_room_whole(s, n, &r);
        tasks += cw_shape_tasks(s, n, &r);
        nodes++;
        if (tasks >= w->ntasks && nodes >= w->nodes_min && nodes >= w->n_listed)
            return CW_REASON_RESOURCES;
    }
    return CW_REASON_NODES_UNAVAILABLE;
}

/* ---- one job --------------------------------------------------------------------------------- */

/* Into p->picks, where it can start now. With t NULL reservations do not count. */
static bool find(struct pass *p, const struct cw_shape *s, struct cw_timeline *t, int64_t len_ns)
{
    p->picks.n = 0;
    struct cw_node *n = cw_freenodes_find(p->nodes, s, t, len_ns);
    if (n != NULL)
        cw_picks_one(&p->picks, n, s->want);
    else if (cw_freenodes_needs_several(p->nodes, s))
        return cw_freenodes_find_several(p->nodes, s, t, len_ns, &p->picks);
    return n != NULL;
}

static void make_places(struct pass *p, uint32_t n)
{
    if (n <= p->n_places)
        return;
    p->places = cw_xrealloc(p->places, n, sizeof(*p->places));
    p->parts = cw_xrealloc(p->parts, n, sizeof(*p->parts));
    memset(p->places + p->n_places, 0, (n - p->n_places) * sizeof(*p->places));
    p->n_places = n;
}

static void give(struct pass *p, struct cw_job *j, const struct cw_shape *s, uint64_t ordinal)
{
    uint32_t n = p->picks.n;
    make_places(p, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct cw_pick *pick = &p->picks.v[i];
        cw_placement_fill(&p->places[i], s, pick->node, pick->tasks, pick->gpus);
        p->parts[i] = (struct cw_partgrant){
            .node = pick->node, .cores = p->places[i].cores, .grant = &p->places[i].grant};
    }
    uint32_t free_before = p->picks.v[0].node->n_free;
    p->grant(j, ordinal, p->parts, n, p->arg);
    assert(p->picks.v[0].node->n_free < free_before); /* the grant must be charged */
    (void)free_before;
    for (uint32_t i = 0; i < n; i++) {
        cw_freenodes_update(p->nodes, p->picks.v[i].node);
        cw_timeline_forget(p->timeline, p->picks.v[i].node);
    }
    p->stats.started++;
}

/* Starts one element; NONE when it did. */
static enum cw_reason start_one(struct pass *p, struct cw_job *j, const struct cw_shape *s,
                                uint64_t ordinal)
{
    struct cw_wantmiss *miss = &j->want->miss;
    int64_t len_ns = cw_timeline_length(j);
    if (miss->pass == p->number && miss->partition == j->partition && miss->len_ns <= len_ns)
        return (enum cw_reason)miss->reason;
    if (find(p, s, p->timeline, len_ns)) {
        give(p, j, s, ordinal);
        return CW_REASON_NONE;
    }
    bool by_rank = p->timeline != NULL && find(p, s, NULL, len_ns);
    enum cw_reason why = by_rank ? CW_REASON_PRIORITY : why_not(p, s);
    /* what has no room now has none however short it is; what would touch a reservation may be shorter */
    *miss = (struct cw_wantmiss){
        p->number, by_rank ? len_ns : 0, j->partition, (uint8_t)why};
    return why;
}

/* Keeps the first moment at which j could start free for it. */
static void reserve(struct pass *p, struct cw_job *j)
{
    struct cw_shape s;
    int64_t start_ns, len_ns = cw_timeline_length(j);
    uint32_t most = p->backfill == CW_BACKFILL_CONSERVATIVE && p->depth > 0 ? p->depth : 1;
    if (p->n_reserved[j->partition] >= most || !cw_shape_of_job(p->m, j, &s))
        return;
    if (p->timeline == NULL)
        p->timeline = cw_timeline_create(p->m, p->now_ns);
    p->n_reserved[j->partition]++;
    if (cw_timeline_earliest(p->timeline, &s, len_ns, 0, &start_ns, &p->reserved))
        cw_timeline_reserve(p->timeline, &s, &p->reserved, start_ns, len_ns);
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
    bool full = cw_freenodes_exhausted(p->nodes), waits = p->strict && why == CW_REASON_RESOURCES;
    if (waits && !full && p->backfill != CW_BACKFILL_NONE)
        reserve(p, j);
    bool closes = full || (waits && p->backfill == CW_BACKFILL_NONE);
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
    p->backfill = policy != NULL ? policy->backfill : CW_BACKFILL_NONE;
    p->depth = policy != NULL ? policy->depth : 0;
    p->now_ns = now_ns;
    p->number = cw_model_next_pass(m);
    p->max_starts = max_starts;
    p->grant = grant;
    p->arg = arg;
    if (!cw_list_empty(queue)) {
        p->closed = cw_xcalloc(UINT16_MAX / 64 + 1, sizeof(*p->closed));
        p->n_reserved = cw_xcalloc(UINT16_MAX + 1, sizeof(*p->n_reserved));
        p->nodes = cw_freenodes_create(m, now_ns);
        cw_list_each_safe(pos, queue)
            if (!look_at(p, cw_list_entry(pos, struct cw_job, in_queue)))
                break;
    }
    if (ret != NULL)
        *ret = p->stats;
    cw_freenodes_destroy(p->nodes);
    for (uint32_t i = 0; i < p->n_places; i++)
        cw_placement_fini(&p->places[i]);
    cw_timeline_destroy(p->timeline);
    cw_picks_fini(&p->picks);
    cw_picks_fini(&p->reserved);
    free(p->places);
    free(p->parts);
    free(p->n_reserved);
    free(p->closed);
    free(p);
}
