/* Fitting one element on one node: terms, cores, GPUs, the grant. See placement.h. GPUs come from
 * one NUMA node where one has enough (the one with the fewest to spare), and the cores from the
 * same. */
#include "sched/placement.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/idset.h"
#include "spec/check.h"

/* "auto" leaves the choice to the node. */
static const char *asked(const char *isolation)
{
    bool any = isolation == NULL || isolation[0] == '\0' || strcmp(isolation, "auto") == 0;
    return any ? NULL : isolation;
}

bool cw_shape_of_job(const struct cw_model *m, const struct cw_job *j, struct cw_shape *ret)
{
    const struct cw_partition *p = cw_model_partition(m, j->partition);
    if (p == NULL)
        return false;
    *ret = (struct cw_shape){
        .part = p,
        .cores = j->cores,
        .gpus = j->gpus,
        .mem_bytes = j->mem_bytes != 0 ? j->mem_bytes : p->default_mem_bytes,
        .isolation = asked(j->isolation != NULL ? j->isolation : p->isolation),
        .gpu_type = j->gpu_type,
    };
    return true;
}

void cw_shape_of_spec(const Cw__JobSpec *s, const struct cw_partition *p, struct cw_shape *ret)
{
    const Cw__Settings *t = s->settings;
    const char *isolation =
        t != NULL && t->isolation != NULL && t->isolation[0] != '\0' ? t->isolation : p->isolation;
    *ret = (struct cw_shape){
        .part = p,
        .cores = cw_spec_cores(s),
        .gpus = cw_spec_gpus(s),
        .mem_bytes = t != NULL && t->mem_bytes != 0 ? t->mem_bytes : p->default_mem_bytes,
        .isolation = asked(isolation),
        .gpu_type = t != NULL && t->gpu_type != NULL && t->gpu_type[0] != '\0' ? t->gpu_type : NULL,
    };
}

uint64_t cw_shape_mem(const struct cw_shape *s, const struct cw_node *n)
{
    if (s->mem_bytes != 0 || n->n_cores == 0)
        return s->mem_bytes;
    return n->mem_total / n->n_cores * s->cores;
}

static uint64_t gpus_of_type(const struct cw_shape *s, const struct cw_node *n)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < n->gpus_total; i++) {
        const char *model = n->rec->inventory->gpus[i]->model;
        if (s->gpu_type == NULL || (model != NULL && strcasecmp(model, s->gpu_type) == 0))
            mask |= UINT64_C(1) << i;
    }
    return mask;
}

uint32_t cw_shape_gpus_total(const struct cw_shape *s, const struct cw_node *n)
{
    return (uint32_t)__builtin_popcountll(gpus_of_type(s, n));
}

uint32_t cw_shape_gpus_free(const struct cw_shape *s, const struct cw_node *n)
{
    return (uint32_t)__builtin_popcountll(gpus_of_type(s, n) & n->gpu_free);
}

bool cw_node_usable(const struct cw_node *n)
{
    return n->up && !n->lost && !n->rec->drained && n->rec->inventory != NULL;
}

static bool isolates(const struct cw_shape *s, const struct cw_node *n)
{
    const Cw__Inventory *inv = n->rec->inventory;
    if (s->isolation == NULL)
        return true;
    for (size_t i = 0; inv != NULL && i < inv->n_isolations; i++)
        if (strcmp(inv->isolations[i], s->isolation) == 0)
            return true;
    return false;
}

enum cw_term cw_shape_lacks(const struct cw_shape *s, const struct cw_node *n)
{
    if (s->cores > n->n_cores)
        return CW_TERM_CORES;
    if (cw_shape_mem(s, n) > n->mem_total)
        return CW_TERM_MEM;
    if (s->gpus > 0 && s->gpus > cw_shape_gpus_total(s, n))
        return CW_TERM_GPUS;
    return isolates(s, n) ? CW_TERM_NONE : CW_TERM_ISOLATION;
}

enum cw_term cw_shape_lacks_now(const struct cw_shape *s, const struct cw_node *n)
{
    if (s->cores > n->n_free)
        return CW_TERM_CORES;
    if (cw_shape_mem(s, n) > n->mem_free)
        return CW_TERM_MEM;
    if (s->gpus > 0 && s->gpus > cw_shape_gpus_free(s, n))
        return CW_TERM_GPUS;
    return isolates(s, n) ? CW_TERM_NONE : CW_TERM_ISOLATION;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static uint32_t gpu_numa(const struct cw_node *n, uint32_t i)
{
    return n->rec->inventory->gpus[i]->numa;
}

/* Of the free ones in mask, those of the NUMA node that has enough with the fewest to spare; mask
 * itself when none has. */
static uint64_t near_gpus(const struct cw_node *n, uint64_t mask, uint32_t want)
{
    uint64_t best = 0;
    for (uint32_t i = 0; i < n->gpus_total; i++) {
        if (((mask >> i) & 1) == 0)
            continue;
        uint64_t same = 0;
        for (uint32_t k = 0; k < n->gpus_total; k++)
            if (((mask >> k) & 1) != 0 && gpu_numa(n, k) == gpu_numa(n, i))
                same |= UINT64_C(1) << k;
        int have = __builtin_popcountll(same);
        if (have >= (int)want && (best == 0 || have < __builtin_popcountll(best)))
            best = same;
    }
    return best != 0 ? best : mask;
}

/* Returns the NUMA node of the first GPU, -1 without GPUs. */
static int fill_gpus(struct cw_placement *p, const struct cw_shape *s, const struct cw_node *n)
{
    int numa = -1;
    p->grant.n_gpus = 0;
    p->grant.gpus = p->gpu_list;
    if (s->gpus == 0)
        return numa;
    uint64_t mask = near_gpus(n, gpus_of_type(s, n) & n->gpu_free, s->gpus);
    for (uint32_t i = 0; i < n->gpus_total && p->grant.n_gpus < s->gpus; i++) {
        if (((mask >> i) & 1) == 0)
            continue;
        const Cw__Gpu *g = n->rec->inventory->gpus[i];
        Cw__GpuGrant *out = &p->gpus[p->grant.n_gpus];
        cw__gpu_grant__init(out);
        out->index = g->index;
        out->uuid = g->uuid;
        p->gpu_list[p->grant.n_gpus++] = out;
        if (numa < 0 && g->has_numa)
            numa = (int)g->numa;
    }
    return numa;
}

/* ---- cores ----------------------------------------------------------------------------------- */

static void free_coremap(void *p) { cw_coremap_destroy(p); }

static const struct cw_coremap *coremap(struct cw_node *n)
{
    if (n->coremap == NULL) {
        n->coremap = cw_coremap_create(n->n_cores, n->core_l3, n->core_numa, n->core_package);
        n->coremap_free = free_coremap;
    }
    return n->coremap;
}

static void fill_texts(struct cw_placement *p, const struct cw_node *n)
{
    struct cw_idset cores = {0}, cpus = {0};
    for (uint32_t i = 0; i < n->n_cores; i++) {
        if (((p->cores[i / 64] >> (i % 64)) & 1) == 0)
            continue;
        const Cw__Core *c = n->rec->inventory->cores[i];
        cw_idset_add(&cores, c->logical, c->logical);
        for (size_t k = 0; k < c->n_pus; k++)
            cw_idset_add(&cpus, c->pus[k], c->pus[k]);
    }
    cw_buf_clear(&p->core_text);
    cw_buf_clear(&p->cpu_text);
    cw_idset_format(&cores, &p->core_text);
    cw_idset_format(&cpus, &p->cpu_text);
    cw_idset_fini(&cores);
    cw_idset_fini(&cpus);
}

void cw_placement_fill(struct cw_placement *p, const struct cw_shape *s, struct cw_node *n)
{
    cw__grant__init(&p->grant);
    int numa = fill_gpus(p, s, n);
    bool picked = cw_corepick(coremap(n), n->core_free, s->cores, numa, p->cores);
    assert(picked); /* n_free said so */
    (void)picked;
    fill_texts(p, n);
    p->grant.node = (char *)n->name;
    p->grant.cores = (char *)cw_buf_str(&p->core_text);
    p->grant.cpus = (char *)cw_buf_str(&p->cpu_text);
    p->grant.mem_bytes = cw_shape_mem(s, n);
}

void cw_placement_fini(struct cw_placement *p)
{
    cw_buf_fini(&p->core_text);
    cw_buf_fini(&p->cpu_text);
}
