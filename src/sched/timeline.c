/* Room over time, one line of ends and reservations per node. See timeline.h. On a node without
 * reservations room only grows, so the first moment for several such nodes is found by halving. */
#include "sched/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

struct end {
    int64_t t_ns;
    uint32_t cores;
    uint64_t mem, gpus; /* a mask of the node's GPUs */
};
struct hold {
    int64_t from_ns, to_ns;
    uint32_t cores, gpus;
    uint64_t mem;
};
struct line {
    bool built;
    struct end *ends; /* by time */
    struct hold *holds;
    uint32_t n_ends, n_holds;
};
struct cw_timeline {
    struct cw_model *m;
    int64_t now_ns;
    struct line *lines; /* by node index */
    uint32_t n_lines;
    uint64_t n_holds;
    struct cw_candidate *candidates; /* room for all nodes */
    struct cw_picks best;
};

struct cw_timeline *cw_timeline_create(struct cw_model *m, int64_t now_ns)
{
    struct cw_timeline *t = cw_xcalloc(1, sizeof(*t));
    t->m = m;
    t->now_ns = now_ns;
    t->n_lines = cw_model_n_nodes(m);
    t->lines = cw_xcalloc(t->n_lines + 1, sizeof(*t->lines));
    t->candidates = cw_xcalloc(t->n_lines + 1, sizeof(*t->candidates));
    return t;
}

void cw_timeline_destroy(struct cw_timeline *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->n_lines; i++) {
        free(t->lines[i].ends);
        free(t->lines[i].holds);
    }
    free(t->lines);
    free(t->candidates);
    cw_picks_fini(&t->best);
    free(t);
}

/* ---- when what runs ends --------------------------------------------------------------------- */

static int64_t after(int64_t t_ns, uint64_t s)
{
    if (s > (uint64_t)((INT64_MAX - t_ns) / CW_NS_PER_S))
        return INT64_MAX;
    return t_ns + (int64_t)s * CW_NS_PER_S;
}

int64_t cw_timeline_length(const struct cw_job *j)
{
    return after(0, j->time_est_s != 0 ? j->time_est_s : j->time_limit_s);
}

/* Late ones end any moment now. An attempt whose job has left memory is being torn down. */
int64_t cw_timeline_end(const struct cw_attempt *a, int64_t now_ns)
{
    if (a->job == NULL)
        return now_ns + CW_NS_PER_S;
    int64_t start = a->rec->has_start_ns ? a->rec->start_ns : now_ns;
    int64_t end = after(start, a->job->time_limit_s);
    if (a->job->time_est_s != 0 && after(start, a->job->time_est_s) > now_ns)
        end = after(start, a->job->time_est_s);
    return end > now_ns ? end : now_ns + CW_NS_PER_S;
}

static int by_time(const void *pa, const void *pb)
{
    const struct end *a = pa, *b = pb;
    return a->t_ns < b->t_ns ? -1 : a->t_ns > b->t_ns;
}

static struct line *line_of(struct cw_timeline *t, struct cw_node *n)
{
    struct line *l = &t->lines[n->index];
    uint32_t k = 0;
    if (l->built)
        return l;
    cw_list_each(pos, &n->parts)
        k++;
    l->ends = cw_xrealloc(l->ends, k + 1, sizeof(*l->ends));
    l->n_ends = 0;
    cw_list_each(pos, &n->parts) {
        const struct cw_part *p = cw_list_entry(pos, struct cw_part, on_node);
        struct end *e = &l->ends[l->n_ends++];
        *e = (struct end){.t_ns = cw_timeline_end(p->attempt, t->now_ns), .mem = p->mem_bytes, .gpus = p->gpus};
        for (uint32_t w = 0; w < n->words; w++)
            e->cores += (uint32_t)__builtin_popcountll(p->cores[w]);
    }
    qsort(l->ends, l->n_ends, sizeof(*l->ends), by_time);
    l->built = true;
    return l;
}

void cw_timeline_forget(struct cw_timeline *t, const struct cw_node *n)
{
    if (t != NULL)
        t->lines[n->index].built = false;
}

bool cw_timeline_reserved(const struct cw_timeline *t, const struct cw_node *n)
{
    return t->lines[n->index].n_holds > 0;
}

/* ---- room ------------------------------------------------------------------------------------ */

static void room_at(const struct line *l, const struct cw_shape *s, const struct cw_node *n,
                    int64_t t_ns, struct cw_room *ret)
{
    uint64_t gpus = n->gpu_free, taken_gpus = 0, taken_cores = 0, taken_mem = 0;
    uint64_t mem_used = n->mem_used;
    uint32_t left = l->n_ends, cores = n->n_free;
    for (uint32_t i = 0; i < l->n_ends && l->ends[i].t_ns <= t_ns; i++) {
        cores += l->ends[i].cores;
        mem_used -= l->ends[i].mem < mem_used ? l->ends[i].mem : mem_used;
        gpus |= l->ends[i].gpus;
        left--;
    }
    for (uint32_t i = 0; i < l->n_holds; i++) {
        const struct hold *h = &l->holds[i];
        if (h->from_ns > t_ns || h->to_ns <= t_ns)
            continue;
        taken_cores += h->cores;
        taken_gpus += h->gpus;
        taken_mem += h->mem;
        left++;
    }
    uint64_t mem = n->mem_total > mem_used ? n->mem_total - mem_used : 0;
    uint64_t of_type = n->gpus_total == 0
                           ? 0
                           : (uint64_t)__builtin_popcountll(gpus & cw_shape_gpu_mask(s, n));
    *ret = (struct cw_room){
        .cores = cores > taken_cores ? (uint32_t)(cores - taken_cores) : 0,
        .gpus = of_type > taken_gpus ? (uint32_t)(of_type - taken_gpus) : 0,
        .mem = mem > taken_mem ? mem - taken_mem : 0,
        .unused = left == 0,
    };
}

void cw_timeline_room(struct cw_timeline *t, const struct cw_shape *s, struct cw_node *n,
                      int64_t t0_ns, int64_t len_ns, struct cw_room *ret)
{
    const struct line *l = line_of(t, n);
    int64_t t1 = len_ns > INT64_MAX - t0_ns ? INT64_MAX : t0_ns + len_ns;
    room_at(l, s, n, t0_ns, ret);
    for (uint32_t i = 0; i < l->n_holds; i++) {
        struct cw_room r;
        if (l->holds[i].from_ns <= t0_ns || l->holds[i].from_ns >= t1)
            continue;
        room_at(l, s, n, l->holds[i].from_ns, &r);
        ret->cores = r.cores < ret->cores ? r.cores : ret->cores;
        ret->gpus = r.gpus < ret->gpus ? r.gpus : ret->gpus;
        ret->mem = r.mem < ret->mem ? r.mem : ret->mem;
        ret->unused = ret->unused && r.unused;
    }
}

void cw_timeline_reserve(struct cw_timeline *t, const struct cw_shape *s,
                         const struct cw_picks *picks, int64_t start_ns, int64_t len_ns)
{
    for (uint32_t i = 0; i < picks->n; i++) {
        struct line *l = line_of(t, picks->v[i].node);
        struct cw_need need = cw_shape_need(s, picks->v[i].node, picks->v[i].tasks);
        l->holds = cw_xrealloc(l->holds, l->n_holds + 1, sizeof(*l->holds));
        l->holds[l->n_holds++] = (struct hold){
            .from_ns = start_ns,
            .to_ns = len_ns > INT64_MAX - start_ns ? INT64_MAX : start_ns + len_ns,
            .cores = need.cores,
            .gpus = picks->v[i].gpus,
            .mem = need.mem,
        };
        t->n_holds++;
    }
}

/* ---- the first moment ------------------------------------------------------------------------ */

static bool of_use(const struct cw_shape *s, const struct cw_node *n)
{
    return cw_node_usable(n) && cw_partition_has(s->part, n) &&
           cw_shape_lacks(s, n) == CW_TERM_NONE;
}

/* The next moment behind t at which something of the node changes for the better. */
static int64_t next_change(const struct line *l, int64_t t_ns)
{
    int64_t next = INT64_MAX;
    for (uint32_t i = 0; i < l->n_ends; i++)
        if (l->ends[i].t_ns > t_ns) {
            next = l->ends[i].t_ns;
            break;
        }
    for (uint32_t i = 0; i < l->n_holds; i++)
        if (l->holds[i].to_ns > t_ns && l->holds[i].to_ns < next)
            next = l->holds[i].to_ns;
    return next;
}

static bool one_node(struct cw_timeline *t, const struct cw_shape *s, int64_t len_ns,
                     int64_t *ret_ns, struct cw_picks *ret)
{
    struct cw_node *best = NULL;
    int64_t best_ns = INT64_MAX;
    for (uint32_t i = 0; i < t->n_lines && best_ns > t->now_ns; i++) {
        struct cw_node *n = cw_model_node_at(t->m, i);
        if (!of_use(s, n))
            continue;
        const struct line *l = line_of(t, n);
        struct cw_need need = cw_shape_need(s, n, s->want->ntasks);
        for (int64_t at = t->now_ns; at < best_ns; at = next_change(l, at)) {
            struct cw_room r;
            cw_timeline_room(t, s, n, at, len_ns, &r);
            if (!cw_room_holds(s, &r, &need))
                continue;
            best_ns = at;
            best = n;
        }
    }
    if (best == NULL)
        return false;
    *ret_ns = best_ns;
    cw_picks_one(ret, best, s->want);
    return true;
}

/* Could it start at this moment? */
static bool several_at(struct cw_timeline *t, const struct cw_shape *s, int64_t at_ns,
                       int64_t len_ns, struct cw_picks *ret)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < t->n_lines; i++) {
        struct cw_node *n = cw_model_node_at(t->m, i);
        struct cw_room r;
        if (!of_use(s, n))
            continue;
        cw_timeline_room(t, s, n, at_ns, len_ns, &r);
        uint32_t tasks = cw_shape_tasks(s, n, &r);
        if (tasks > 0)
            t->candidates[k++] = (struct cw_candidate){
                .node = n,
                .tasks = tasks,
                .free = r.cores,
                .listed = s->want->n_listed > 0 && cw_shape_lists(s, n),
                .preferred = cw_shape_prefers(s, n),
            };
    }
    return cw_gangpick(s->want, t->candidates, k, ret);
}

static int by_ns(const void *pa, const void *pb)
{
    const int64_t *a = pa, *b = pb;
    return *a < *b ? -1 : *a > *b;
}

/* Every moment at which room appears somewhere, sorted, without doubles. */
static size_t moments(struct cw_timeline *t, const struct cw_shape *s, int64_t **ret)
{
    size_t n = 0, cap = 64, k = 0;
    int64_t *v = cw_xcalloc(cap, sizeof(*v));
    v[n++] = t->now_ns;
    for (uint32_t i = 0; i < t->n_lines; i++) {
        struct cw_node *node = cw_model_node_at(t->m, i);
        if (!of_use(s, node))
            continue;
        const struct line *l = line_of(t, node);
        if (n + l->n_ends + l->n_holds > cap) {
            cap = (n + l->n_ends + l->n_holds) * 2;
            v = cw_xrealloc(v, cap, sizeof(*v));
        }
        for (uint32_t e = 0; e < l->n_ends; e++)
            if (l->ends[e].t_ns != INT64_MAX)
                v[n++] = l->ends[e].t_ns;
        for (uint32_t h = 0; h < l->n_holds; h++)
            if (l->holds[h].to_ns != INT64_MAX)
                v[n++] = l->holds[h].to_ns;
    }
    qsort(v, n, sizeof(*v), by_ns);
    for (size_t i = 0; i < n; i++)
        if (k == 0 || v[k - 1] != v[i])
            v[k++] = v[i];
    *ret = v;
    return k;
}

static bool several(struct cw_timeline *t, const struct cw_shape *s, int64_t len_ns,
                    int64_t budget_ns, int64_t *ret_ns, struct cw_picks *ret)
{
    int64_t *when;
    size_t n = moments(t, s, &when), lo = 0, hi = n;
    bool found = false;
    if (t->n_holds == 0) { /* room only grows: the first moment that does */
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (several_at(t, s, when[mid], len_ns, ret))
                hi = mid;
            else
                lo = mid + 1;
        }
        found = lo < n && several_at(t, s, when[lo], len_ns, ret);
    } else {
        for (lo = 0; lo < n && !found; lo += !found) {
            if (budget_ns != 0 && cw_clock_mono_ns() > budget_ns)
                break;
            found = several_at(t, s, when[lo], len_ns, ret);
        }
    }
    if (found)
        *ret_ns = when[lo];
    free(when);
    return found;
}

/* Some node of the partition holds all tasks when it is empty. */
static bool one_holds_all(struct cw_timeline *t, const struct cw_shape *s)
{
    for (uint32_t i = 0; i < t->n_lines; i++) {
        struct cw_node *n = cw_model_node_at(t->m, i);
        if (of_use(s, n) && cw_shape_holds_all(s, n))
            return true;
    }
    return false;
}

bool cw_timeline_earliest(struct cw_timeline *t, const struct cw_shape *s, int64_t len_ns,
                          int64_t budget_ns, int64_t *ret_ns, struct cw_picks *ret)
{
    ret->n = 0;
    if (cw_shape_single(s))
        return one_node(t, s, len_ns, ret_ns, ret);
    if (one_holds_all(t, s))
        return one_node(t, s, len_ns, ret_ns, ret);
    return several(t, s, len_ns, budget_ns, ret_ns, ret);
}
