/* Could this ever run? Asked at submit, so that a request no node can hold is refused with the term
 * that fails on the best node instead of waiting for ever. Looks at whole nodes, also drained and
 * absent ones: what is not possible now is crun-why's business. Test: pass_test.c. */
#include <inttypes.h>

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

static int refuse(const struct cw_shape *s, const struct cw_node *n, struct cw_error *err)
{
    char want[32], have[32];
    const char *part = s->part->name, *type = s->gpu_type != NULL ? s->gpu_type : "";
    switch (cw_shape_lacks(s, n)) {
    case CW_TERM_CORES:
        return cw_fail(err, -EINVAL, "asked %u cores, largest node in partition %s (%s) offers %u",
                       s->cores, part, n->name, n->n_cores);
    case CW_TERM_MEM:
        return cw_fail(err, -EINVAL,
                       "asked %s of memory with %u cores, best node in partition %s (%s) offers %s",
                       cw_size_format(cw_shape_mem(s, n), want, sizeof(want)), s->cores, part,
                       n->name, cw_size_format(n->mem_total, have, sizeof(have)));
    case CW_TERM_GPUS:
        return cw_fail(err, -EINVAL, "asked %u GPUs%s%s, best node in partition %s (%s) offers %u",
                       s->gpus, type[0] != '\0' ? " of type " : "", type, part, n->name,
                       cw_shape_gpus_total(s, n));
    case CW_TERM_ISOLATION:
        return cw_fail(err, -EINVAL,
                       "asked isolation %s, no fitting node in partition %s (such as %s) has it",
                       s->isolation, part, n->name);
    default: return 0;
    }
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
    cw_shape_of_spec(s, p, &shape);
    const struct cw_node *best = NULL;
    for (uint32_t i = 0; i < cw_model_n_nodes(m); i++) {
        const struct cw_node *n = cw_model_node_at(m, i);
        if (!cw_partition_has(p, n) || n->rec->inventory == NULL)
            continue;
        if (cw_shape_lacks(&shape, n) == CW_TERM_NONE)
            return 0;
        if (best == NULL || is_better(&shape, n, best))
            best = n;
    }
    return best != NULL ? refuse(&shape, best, err) : 0;
}
