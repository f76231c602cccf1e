/* Choosing several nodes. See gangpick.h. */
#include "sched/gangpick.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void cw_picks_fini(struct cw_picks *p)
{
    free(p->v);
    *p = (struct cw_picks){0};
}

static void reserve(struct cw_picks *p, uint32_t n)
{
    if (p->cap >= n)
        return;
    p->v = cw_xrealloc(p->v, n, sizeof(*p->v));
    p->cap = n;
}

/* Listed, preferred, sound ones first. 0: equal so far. */
static int by_kind(const struct cw_candidate *a, const struct cw_candidate *b)
{
    if (a->listed != b->listed)
        return a->listed ? -1 : 1;
    if (a->preferred != b->preferred)
        return a->preferred ? -1 : 1;
    bool a_faulty = a->node->launch_faults > 0, b_faulty = b->node->launch_faults > 0;
    return a_faulty != b_faulty ? (a_faulty ? 1 : -1) : 0;
}

static int by_index(const struct cw_candidate *a, const struct cw_candidate *b)
{
    return a->node->index < b->node->index ? -1 : a->node->index > b->node->index;
}

static int tightest(const void *pa, const void *pb)
{
    const struct cw_candidate *a = pa, *b = pb;
    int r = by_kind(a, b);
    if (r == 0 && a->free != b->free)
        r = a->free < b->free ? -1 : 1;
    return r != 0 ? r : by_index(a, b);
}

static int roomiest(const void *pa, const void *pb)
{
    const struct cw_candidate *a = pa, *b = pb;
    int r = by_kind(a, b);
    if (r == 0 && a->tasks != b->tasks)
        r = a->tasks > b->tasks ? -1 : 1;
    return r != 0 ? r : by_index(a, b);
}

/* As people count: n2 before n10. So the list of nodes folds, and its order is that of the tasks. */
static int in_order(const void *pa, const void *pb)
{
    const struct cw_pick *a = pa, *b = pb;
    return strverscmp(a->node->name, b->node->name);
}

/* The job's GPUs over its nodes, in proportion to their tasks and exactly as many as asked. */
static void spread_gpus(const struct cw_want *w, struct cw_picks *p)
{
    uint64_t tasks = 0, given = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        if (w->gpus_task != 0) {
            p->v[i].gpus = w->gpus_task * p->v[i].tasks;
        } else if (w->gpus_node != 0) {
            p->v[i].gpus = w->gpus_node;
        } else {
            tasks += p->v[i].tasks;
            p->v[i].gpus = (uint32_t)((uint64_t)w->gpus * tasks / w->ntasks - given);
            given += p->v[i].gpus;
        }
    }
}

void cw_picks_one(struct cw_picks *p, struct cw_node *n, const struct cw_want *w)
{
    reserve(p, 1);
    p->n = 1;
    p->v[0] = (struct cw_pick){.node = n, .tasks = w->ntasks};
    spread_gpus(w, p);
}

/* The first n candidates get the tasks: one each, and then evenly, as far as each has room. */
static bool spread(const struct cw_want *w, const struct cw_candidate *c, uint32_t n,
                   struct cw_picks *p)
{
    uint64_t room = 0;
    for (uint32_t i = 0; i < n; i++)
        room += c[i].tasks;
    if (room < w->ntasks || n > w->ntasks)
        return false;
    reserve(p, n);
    p->n = n;
    uint32_t left = w->ntasks - n;
    for (uint32_t i = 0; i < n; i++)
        p->v[i] = (struct cw_pick){.node = c[i].node, .tasks = 1};
    while (left > 0) { /* each round fills somebody up or is the last */
        uint32_t open = 0;
        for (uint32_t i = 0; i < n; i++)
            open += p->v[i].tasks < c[i].tasks;
        uint32_t each = left / open, more = left % open;
        for (uint32_t i = 0; i < n && left > 0; i++) {
            uint32_t can = c[i].tasks - p->v[i].tasks, give = each + (more > 0);
            if (can == 0)
                continue;
            more -= more > 0;
            give = give < can ? give : can;
            p->v[i].tasks += give;
            left -= give;
        }
    }
    qsort(p->v, n, sizeof(*p->v), in_order);
    spread_gpus(w, p);
    return true;
}

/* As few as hold the tasks: each as full as it can be, the last gets the rest. */
static bool fill(const struct cw_want *w, const struct cw_candidate *c, uint32_t n,
                 struct cw_picks *p)
{
    uint32_t left = w->ntasks, i = 0;
    reserve(p, n);
    for (i = 0; i < n && left > 0; i++) {
        uint32_t k = c[i].tasks < left ? c[i].tasks : left;
        p->v[i] = (struct cw_pick){.node = c[i].node, .tasks = k};
        left -= k;
    }
    p->n = i;
    if (left > 0)
        return false;
    qsort(p->v, p->n, sizeof(*p->v), in_order);
    spread_gpus(w, p);
    return true;
}

/* Exactly `nodes`, evenly, out of those that hold an even share. */
static bool even(const struct cw_want *w, struct cw_candidate *c, uint32_t n, uint32_t nodes,
                 struct cw_picks *p)
{
    uint32_t share = (w->ntasks + nodes - 1) / nodes, fit = 0, named = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (c[i].tasks < share)
            continue;
        struct cw_candidate t = c[fit];
        c[fit++] = c[i];
        c[i] = t;
    }
    if (fit < nodes)
        return false;
    qsort(c, fit, sizeof(*c), tightest);
    for (uint32_t i = 0; i < nodes; i++)
        named += c[i].listed;
    return named == w->n_listed && spread(w, c, nodes, p);
}

bool cw_gangpick(const struct cw_want *w, struct cw_candidate *c, uint32_t n, struct cw_picks *ret)
{
    uint32_t lo = w->nodes_min > w->n_listed ? w->nodes_min : w->n_listed, named = 0;
    uint32_t hi = w->nodes_max < w->ntasks ? w->nodes_max : w->ntasks;
    ret->n = 0;
    for (uint32_t i = 0; i < n; i++)
        named += c[i].listed;
    if (named < w->n_listed || n < lo || lo > hi)
        return false;
    if (lo > 0 && even(w, c, n, lo, ret))
        return true;
    qsort(c, n, sizeof(*c), roomiest);
    if (lo == 0)
        return fill(w, c, n < hi ? n : hi, ret);
    for (uint32_t k = lo; k <= n && k <= hi; k++)
        if (spread(w, c, k, ret))
            return true;
    ret->n = 0;
    return false;
}
