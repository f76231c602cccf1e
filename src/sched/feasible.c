/* Could this ever run? Asked at submit, so that a request no node can hold is refused with the term
 * that fails on the best node instead of waiting for ever. Looks at whole nodes, also drained and
 * absent ones: what is not possible now is crun-why's business. Test: pass_test.c. */
#include <inttypes.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "sched/pass.h"
#include "sched/placement.h"

/* How much of the term a whole node offers. */
static uint64_t offer(const struct cw_shape *s, const struct cw_node *n, enum cw_term term)
{
    switch (term) {
    case CW_TERM_CORES: return n->n_cores;
    case CW_TERM_MEM: return n->mem_total;
    case CW_TERM_GPUS: return cw_shape_gpus_total(s, n);
    default: return 0;
    }
}

/* The best node: the one whose failing term comes last, then the one that offers most of it. */
static bool is_better(const struct cw_shape *s, const struct cw_node *n, const struct cw_node *best)
{
    enum cw_term a = cw_shape_lacks(s, n), b = cw_shape_lacks(s, best);
    return a != b ? a > b : offer(s, n, a) > offer(s, best, b);
}

static int refuse_kind(const struct cw_shape *s, struct cw_error *err)
{
    const struct cw_want *w = s->want;
    if (w->constraint != NULL)
        return cw_fail(err, -EINVAL, "asked nodes with %s, no fitting node in partition %s has it",
                       w->constraint, s->part->name);
    return cw_fail(err, -EINVAL, "asked nodes %s%s%s, no fitting node in partition %s is left",
                   w->nodelist != NULL ? w->nodelist : "", w->exclude != NULL ? " without " : "",
                   w->exclude != NULL ? w->exclude : "", s->part->name);
}

/* n is the best node, and it cannot hold the fewest tasks that a node has to. */
static int refuse(const struct cw_shape *s, const struct cw_node *n, struct cw_error *err)
{
    char want[32], have[32];
    const char *part = s->part->name, *type = s->want->gpu_type != NULL ? s->want->gpu_type : "";
    struct cw_need need = cw_shape_need(s, n, cw_shape_least(s));
    const char *a_node = cw_shape_single(s) ? "" : " a node";
    switch (cw_shape_lacks(s, n)) {
    case CW_TERM_CORES:
        return cw_fail(err, -EINVAL,
                       "asked %u cores%s, largest node in partition %s (%s) offers %u", need.cores,
                       a_node, part, n->name, n->n_cores);
    case CW_TERM_MEM:
        return cw_fail(err, -EINVAL,
                       "asked %s of memory%s with %u cores, best node in partition %s (%s) offers "
                       "%s",
                       cw_size_format(need.mem, want, sizeof(want)), a_node, need.cores, part,
                       n->name, cw_size_format(n->mem_total, have, sizeof(have)));
    case CW_TERM_GPUS:
        return cw_fail(err, -EINVAL, "asked %u GPUs%s%s%s, best node in partition %s (%s) offers %u",
                       need.gpus, type[0] != '\0' ? " of type " : "", type, a_node, part, n->name,
                       cw_shape_gpus_total(s, n));
    case CW_TERM_ISOLATION:
        return cw_fail(err, -EINVAL,
                       "asked isolation %s, no fitting node in partition %s (such as %s) has it",
                       s->isolation, part, n->name);
    case CW_TERM_KIND: return refuse_kind(s, err);
    default: return 0;
    }
}

/* Every node of the partition, as if it were empty. */
struct whole {
    struct cw_candidate *c;
    uint32_t n, members;
    uint64_t tasks;
    const struct cw_node *best;
    bool one_is_enough;
};

static void look(struct whole *x, const struct cw_shape *s, struct cw_node *n)
{
    struct cw_room r;
    x->members++;
    if (x->best == NULL || is_better(s, n, x->best))
        x->best = n;
    if (cw_shape_lacks(s, n) != CW_TERM_NONE)
        return;
    x->one_is_enough = x->one_is_enough || cw_shape_holds_all(s, n);
    cw_room_whole(s, n, &r);
    uint32_t tasks = cw_shape_tasks(s, n, &r);
    if (tasks == 0)
        return;
    x->tasks += tasks;
    x->c[x->n++] = (struct cw_candidate){
        .node = n, .tasks = tasks, .free = n->n_cores, .listed = cw_shape_lists(s, n)};
}

static int refuse_several(const struct cw_shape *s, const struct whole *x, struct cw_error *err)
{
    const struct cw_want *w = s->want;
    uint32_t named = 0;
    for (uint32_t i = 0; i < x->n; i++)
        named += x->c[i].listed;
    if (named < w->n_listed)
        return cw_fail(err, -EINVAL,
                       "asked nodes %s, only %u of the %u fit and are in partition %s", w->nodelist,
                       named, w->n_listed, s->part->name);
    if (w->nodes_min > x->n)
        return cw_fail(err, -EINVAL, "asked %u nodes, %u of the %u in partition %s fit",
                       w->nodes_min, x->n, x->members, s->part->name);
    if (x->tasks < w->ntasks)
        return cw_fail(err, -EINVAL,
                       "asked %u tasks of %u cores each, the %u fitting node%s in partition %s hold "
                       "%" PRIu64 " of them",
                       w->ntasks, w->cpus, x->n, x->n == 1 ? "" : "s", s->part->name, x->tasks);
    return cw_fail(err, -EINVAL,
                   "asked %u tasks on at most %u nodes, that many nodes in partition %s cannot hold "
                   "them",
                   w->ntasks, w->nodes_max, s->part->name);
}

/* A name that no node has is a mistake, not a lack. Before any node has registered nobody knows. */
static int check_names(struct cw_model *m, const struct cw_want *w, struct cw_error *err)
{
    struct cw_strv hosts = {0};
    int r = 0;
    if (w->nodelist == NULL || cw_model_n_nodes(m) == 0 ||
        cw_hostlist_parse(w->nodelist, &hosts, NULL) < 0)
        return 0;
    for (size_t i = 0; i < hosts.n && r == 0; i++)
        if (cw_model_node(m, hosts.v[i]) == NULL)
            r = cw_fail(err, -EINVAL, "node '%s' does not exist", hosts.v[i]);
    cw_strv_fini(&hosts);
    return r;
}

static int check_nodes(struct cw_model *m, const struct cw_shape *s, struct cw_error *err)
{
    struct whole x = {0};
    struct cw_picks picks = {0};
    int r = 0;
    x.c = cw_xcalloc(cw_model_n_nodes(m) + 1, sizeof(*x.c));
    for (uint32_t i = 0; i < cw_model_n_nodes(m); i++) {
        struct cw_node *n = cw_model_node_at(m, i);
        if (cw_partition_has(s->part, n) && n->rec->inventory != NULL)
            look(&x, s, n);
    }
    if (x.best == NULL || (x.one_is_enough && s->want->nodes_min <= 1))
        r = 0;
    else if (x.n == 0)
        r = refuse(s, x.best, err);
    else if (!cw_gangpick(s->want, x.c, x.n, &picks))
        r = refuse_several(s, &x, err);
    cw_picks_fini(&picks);
    free(x.c);
    return r;
}

static int check_time(const Cw__JobSpec *s, const struct cw_partition *p, struct cw_error *err)
{
    char want[32], most[32];
    if (!s->has_time_limit_s || p->max_time_s == 0 || s->time_limit_s <= p->max_time_s)
        return 0;
    return cw_fail(err, -EINVAL, "asked a time limit of %s, partition %s allows %s",
                   cw_duration_format(s->time_limit_s, want, sizeof(want)), p->name,
                   cw_duration_format(p->max_time_s, most, sizeof(most)));
}

int cw_pass_feasible(struct cw_model *m, const Cw__JobSpec *s, const struct cw_partition *p,
                     struct cw_error *err)
{
    int r = check_time(s, p, err);
    if (r < 0)
        return r;
    struct cw_shape shape;
    struct cw_want *w = cw_want_make(s);
    cw_shape_of_want(w, p, &shape);
    r = check_names(m, w, err);
    if (r == 0)
        r = check_nodes(m, &shape, err);
    cw_want_free(w);
    return r;
}
