/* Fitting one element on one node: terms, cores, GPUs, the grant. See placement.h. GPUs come from
 * one NUMA node where one has enough (the one with the fewest to spare), and the cores from the
 * same. */
#include "sched/placement.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/hostlist.h"
#include "base/idset.h"
#include "spec/constraint.h"

/* "auto" leaves the choice to the node. */
static const char *asked(const char *isolation)
{
    bool any = isolation == NULL || isolation[0] == '\0' || strcmp(isolation, "auto") == 0;
    return any ? NULL : isolation;
}

void cw_shape_of_want(const struct cw_want *w, const struct cw_partition *p, struct cw_shape *ret)
{
    *ret = (struct cw_shape){
        .part = p,
        .want = w,
        .isolation = asked(w->isolation != NULL ? w->isolation : p->isolation),
    };
}

bool cw_shape_of_job(const struct cw_model *m, const struct cw_job *j, struct cw_shape *ret)
{
    const struct cw_partition *p = cw_model_partition(m, j->partition);
    if (p == NULL)
        return false;
    cw_shape_of_want(j->want, p, ret);
    return true;
}

bool cw_shape_single(const struct cw_shape *s)
{
    const struct cw_want *w = s->want;
    return w->nodes_min <= 1 && w->n_listed <= 1 && (w->nodes_max == 1 || w->ntasks == 1);
}

uint32_t cw_shape_least(const struct cw_shape *s)
{
    return cw_shape_single(s) ? s->want->ntasks : 1;
}

/* ---- needs and room -------------------------------------------------------------------------- */

/* A job's GPUs spread over its nodes by tasks; at most so many for `tasks` of them. */
static uint32_t share_of_gpus(const struct cw_want *w, uint32_t tasks)
{
    uint64_t n = ((uint64_t)w->gpus * tasks + w->ntasks - 1) / w->ntasks;
    return n > w->gpus ? w->gpus : (uint32_t)n;
}

static uint32_t gpus_of(const struct cw_want *w, uint32_t tasks)
{
    uint32_t n;
    if (w->gpus_task != 0)
        return __builtin_mul_overflow(w->gpus_task, tasks, &n) ? UINT32_MAX : n;
    return w->gpus_node != 0 ? w->gpus_node : share_of_gpus(w, tasks);
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t n;
    return __builtin_mul_overflow(a, b, &n) ? UINT64_MAX : n;
}

/* Memory that one core brings along, where the job asked for none a node or a GPU. */
static uint64_t mem_of_core(const struct cw_shape *s, const struct cw_node *n)
{
    if (s->want->mem_cpu != 0)
        return s->want->mem_cpu;
    if (s->part->default_mem_bytes != 0)
        return s->part->default_mem_bytes;
    return n->n_cores != 0 ? n->mem_total / n->n_cores : 0;
}

struct cw_need cw_shape_need(const struct cw_shape *s, const struct cw_node *n, uint32_t tasks)
{
    const struct cw_want *w = s->want;
    struct cw_need need = {.gpus = gpus_of(w, tasks)};
    uint64_t cores = times(tasks, w->cpus);
    need.cores = cores > UINT32_MAX ? UINT32_MAX : (uint32_t)cores;
    if (w->exclusive && need.cores < n->n_cores)
        need.cores = n->n_cores;
    if (w->mem_node != 0)
        need.mem = w->mem_node;
    else if (w->mem_gpu != 0)
        need.mem = times(w->mem_gpu, need.gpus);
    else
        need.mem = times(mem_of_core(s, n), need.cores);
    if (w->exclusive && w->mem_node + w->mem_gpu + w->mem_cpu == 0)
        need.mem = n->mem_total;
    return need;
}

uint64_t cw_shape_gpu_mask(const struct cw_shape *s, const struct cw_node *n)
{
    const char *type = s->want->gpu_type;
    uint64_t mask = 0;
    for (uint32_t i = 0; i < n->gpus_total; i++) {
        const char *model = n->rec->inventory->gpus[i]->model;
        if (type == NULL || (model != NULL && strcasecmp(model, type) == 0))
            mask |= UINT64_C(1) << i;
    }
    return mask;
}

uint32_t cw_shape_gpus_total(const struct cw_shape *s, const struct cw_node *n)
{
    return (uint32_t)__builtin_popcountll(cw_shape_gpu_mask(s, n));
}

uint32_t cw_shape_gpus_free(const struct cw_shape *s, const struct cw_node *n)
{
    return (uint32_t)__builtin_popcountll(cw_shape_gpu_mask(s, n) & n->gpu_free);
}

void cw_room_now(const struct cw_shape *s, const struct cw_node *n, struct cw_room *ret)
{
    *ret = (struct cw_room){
        .cores = n->n_free,
        .gpus = n->gpus_total != 0 ? cw_shape_gpus_free(s, n) : 0,
        .mem = n->mem_free,
        .unused = n->parts.next == &n->parts,
    };
}

void cw_room_whole(const struct cw_shape *s, const struct cw_node *n, struct cw_room *ret)
{
    *ret = (struct cw_room){
        .cores = n->n_cores,
        .gpus = cw_shape_gpus_total(s, n),
        .mem = n->mem_total,
        .unused = true,
    };
}

static enum cw_term lacks(const struct cw_shape *s, const struct cw_room *r,
                          const struct cw_need *need)
{
    if (need->cores > r->cores)
        return CW_TERM_CORES;
    if (need->mem > r->mem)
        return CW_TERM_MEM;
    if (need->gpus > r->gpus)
        return CW_TERM_GPUS;
    return s->want->exclusive && !r->unused ? CW_TERM_UNUSED : CW_TERM_NONE;
}

bool cw_room_holds(const struct cw_shape *s, const struct cw_room *r, const struct cw_need *need)
{
    return lacks(s, r, need) == CW_TERM_NONE;
}

static uint64_t fewer(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint32_t cw_shape_tasks(const struct cw_shape *s, const struct cw_node *n, const struct cw_room *r)
{
    const struct cw_want *w = s->want;
    uint64_t k = fewer(fewer(w->ntasks, w->per_node), r->cores / w->cpus);
    uint64_t core_mem = w->mem_node == 0 && w->mem_gpu == 0 ? mem_of_core(s, n) : 0;
    if (core_mem != 0)
        k = fewer(k, r->mem / times(core_mem, w->cpus));
    if (w->gpus_task != 0)
        k = fewer(k, r->gpus / w->gpus_task);
    else if (w->gpus_node == 0 && w->gpus != 0)
        k = fewer(k, (uint64_t)r->gpus * w->ntasks / w->gpus);
    if (w->exclusive && core_mem != 0 && k > 0)
        k = r->unused ? fewer(w->ntasks, fewer(w->per_node, n->n_cores / w->cpus)) : 0;
    struct cw_need need = cw_shape_need(s, n, (uint32_t)k);
    /* what does not grow with the tasks, and memory by GPUs */
    while (k > 0 && !cw_room_holds(s, r, &need)) {
        if (w->mem_gpu == 0 || w->gpus_node != 0)
            return 0;
        need = cw_shape_need(s, n, (uint32_t)--k);
    }
    return (uint32_t)k;
}

/* ---- kinds of nodes -------------------------------------------------------------------------- */

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

/* A list in the text of a want is canonical and short; hosts are asked about once a pass. */
static bool listed(const char *list, const char *name)
{
    struct cw_strv hosts = {0};
    bool found = false;
    if (cw_hostlist_parse(list, &hosts, NULL) == 0)
        for (size_t i = 0; i < hosts.n && !found; i++)
            found = strcmp(hosts.v[i], name) == 0;
    cw_strv_fini(&hosts);
    return found;
}

bool cw_shape_lists(const struct cw_shape *s, const struct cw_node *n)
{
    return s->want->nodelist != NULL && listed(s->want->nodelist, n->name);
}

static bool has_labels(const char *rule, const struct cw_node *n)
{
    const Cw__Inventory *inv = n->rec->inventory;
    return inv != NULL && cw_constraint_matches(rule, inv->labels, inv->n_labels);
}

bool cw_shape_prefers(const struct cw_shape *s, const struct cw_node *n)
{
    return s->want->prefer == NULL || has_labels(s->want->prefer, n);
}

enum cw_term cw_shape_kind(const struct cw_shape *s, const struct cw_node *n)
{
    const struct cw_want *w = s->want;
    if (!isolates(s, n))
        return CW_TERM_ISOLATION;
    if (w->constraint != NULL && !has_labels(w->constraint, n))
        return CW_TERM_KIND;
    if (w->exclude != NULL && listed(w->exclude, n->name))
        return CW_TERM_KIND;
    bool must = w->nodelist != NULL && cw_shape_single(s);
    return must && !cw_shape_lists(s, n) ? CW_TERM_KIND : CW_TERM_NONE;
}

bool cw_shape_holds_all(const struct cw_shape *s, const struct cw_node *n)
{
    struct cw_room r;
    if (s->want->nodes_min > 1 || s->want->n_listed > 1 || s->want->per_node < s->want->ntasks)
        return false;
    struct cw_need need = cw_shape_need(s, n, s->want->ntasks);
    cw_room_whole(s, n, &r);
    return cw_room_holds(s, &r, &need) && cw_shape_kind(s, n) == CW_TERM_NONE &&
           (s->want->nodelist == NULL || cw_shape_lists(s, n));
}

enum cw_term cw_shape_lacks(const struct cw_shape *s, const struct cw_node *n)
{
    struct cw_room r;
    struct cw_need need = cw_shape_need(s, n, cw_shape_least(s));
    cw_room_whole(s, n, &r);
    enum cw_term t = lacks(s, &r, &need);
    return t != CW_TERM_NONE ? t : cw_shape_kind(s, n);
}

enum cw_term cw_shape_lacks_now(const struct cw_shape *s, const struct cw_node *n)
{
    struct cw_room r;
    struct cw_need need = cw_shape_need(s, n, cw_shape_least(s));
    cw_room_now(s, n, &r);
    enum cw_term t = lacks(s, &r, &need);
    return t != CW_TERM_NONE ? t : cw_shape_kind(s, n);
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
static int fill_gpus(struct cw_placement *p, const struct cw_shape *s, const struct cw_node *n,
                     uint32_t want)
{
    int numa = -1;
    p->grant.n_gpus = 0;
    p->grant.gpus = p->gpu_list;
    if (want == 0)
        return numa;
    uint64_t mask = near_gpus(n, cw_shape_gpu_mask(s, n) & n->gpu_free, want);
    for (uint32_t i = 0; i < n->gpus_total && p->grant.n_gpus < want; i++) {
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

void cw_placement_fill(struct cw_placement *p, const struct cw_shape *s, struct cw_node *n,
                       uint32_t tasks, uint32_t gpus)
{
    struct cw_need need = cw_shape_need(s, n, tasks);
    cw__grant__init(&p->grant);
    int numa = fill_gpus(p, s, n, gpus);
    bool picked = cw_corepick(coremap(n), n->core_free, need.cores, numa, p->cores);
    assert(picked); /* n_free said so */
    (void)picked;
    fill_texts(p, n);
    p->grant.node = (char *)n->name;
    p->grant.cores = (char *)cw_buf_str(&p->core_text);
    p->grant.cpus = (char *)cw_buf_str(&p->cpu_text);
    p->grant.mem_bytes = need.mem;
    p->grant.has_ntasks = true;
    p->grant.ntasks = tasks;
}

void cw_placement_fini(struct cw_placement *p)
{
    cw_buf_fini(&p->core_text);
    cw_buf_fini(&p->cpu_text);
}
