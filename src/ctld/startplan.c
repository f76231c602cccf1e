/* startplan.c: what sched/estimate says, kept for the rows of one answer. */
#include "ctld/startplan.h"

#include "base/clock.h"
#include "base/table.h"

struct start {
    int64_t start_ns;
    uint32_t n;
    const char *nodes[]; /* interned by the model; nodes never go */
};
struct cw_startplan {
    struct cw_arena *arena;
    struct cw_idtable *starts; /* by job id */
};

static bool keep(struct cw_job *j, int64_t start_ns, const struct cw_picks *where, void *arg)
{
    struct cw_startplan *p = arg;
    struct start *s = cw_arena_alloc(p->arena, sizeof *s + where->n * sizeof s->nodes[0]);
    s->start_ns = start_ns;
    s->n = where->n;
    for (uint32_t i = 0; i < where->n; i++)
        s->nodes[i] = cw_arena_strdup(p->arena, where->v[i].node->name);
    cw_idtable_set(p->starts, j->id, s);
    return true;
}

struct cw_startplan *cw_startplan_create(struct cw_ctld *c)
{
    struct cw_startplan *p = cw_xcalloc(1, sizeof *p);
    p->arena = cw_arena_create();
    p->starts = cw_idtable_create();
    cw_pass_estimates(c->model, &c->policy, cw_clock_real_ns(), CW_STARTPLAN_JOBS, CW_STARTPLAN_MS,
                      keep, p);
    return p;
}

void cw_startplan_destroy(struct cw_startplan *p)
{
    if (p == NULL)
        return;
    cw_idtable_destroy(p->starts);
    cw_arena_destroy(p->arena);
    free(p);
}

void cw_startplan_fill(const struct cw_startplan *p, Cw__JobInfo *row, struct cw_arena *a)
{
    if (row->state != CW__STATE__PENDING)
        return;
    const struct start *s =
        cw_idtable_find(p->starts, row->has_array_id ? row->array_id : row->id);
    if (s == NULL)
        return;
    row->has_start_ns = true;
    row->start_ns = s->start_ns;
    row->start_nodes = cw_arena_alloc(a, (s->n + 1) * sizeof *row->start_nodes);
    for (uint32_t i = 0; i < s->n; i++)
        row->start_nodes[row->n_start_nodes++] = cw_arena_strdup(a, s->nodes[i]);
}
