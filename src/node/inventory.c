/* What this node offers; see inventory.h. */
#include "config.h"

#include "node/inventory.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/quantity.h"
#include "node/kernelfeatures.h"

#define GPUS_MAX 256

static Cw__Core *make_core(struct cw_arena *a, const struct cw_topo_core *from)
{
    Cw__Core *c = cw_arena_alloc(a, sizeof *c);
    cw__core__init(c);
    c->logical = from->logical;
    c->n_pus = from->n_pus;
    c->pus = cw_arena_alloc(a, (from->n_pus + 1) * sizeof *c->pus);
    memcpy(c->pus, from->pus, from->n_pus * sizeof *c->pus);
    c->has_numa = c->has_l3 = c->has_package = 1;
    c->numa = from->numa;
    c->l3 = from->l3;
    c->package = from->package;
    return c;
}

/* The first cores are the reserve: there the kernel's own work lies. */
static int add_cores(struct cw_node *n, struct cw_arena *a, Cw__Inventory *inv,
                     struct cw_error *err)
{
    uint32_t count = 0, reserve = n->conf->reserve_cores;
    const struct cw_topo_core *cores = cw_topo_cores(n->topo, &count);
    if (count <= reserve)
        return cw_fail(err, -EINVAL,
                       "reserve_cores = %u leaves none of the %u cores of node %s to jobs", reserve,
                       count, n->name);
    inv->n_cores = count - reserve;
    inv->cores = cw_arena_alloc(a, inv->n_cores * sizeof *inv->cores);
    for (uint32_t i = reserve; i < count; i++)
        inv->cores[i - reserve] = make_core(a, &cores[i]);
    return 0;
}

static int add_memory(struct cw_node *n, Cw__Inventory *inv, struct cw_error *err)
{
    char have[32], want[32];
    uint64_t all = cw_topo_mem_bytes(n->topo), reserve = n->conf->reserve_mem_bytes;
    if (all <= reserve)
        return cw_fail(err, -EINVAL, "reserve_mem = %s leaves nothing of the %s of node %s to jobs",
                       cw_size_format(reserve, want, sizeof want),
                       cw_size_format(all, have, sizeof have), n->name);
    inv->mem_bytes = all - reserve;
    return 0;
}

struct gpus {
    struct cw_arena *arena;
    Cw__Inventory *inv;
    struct cw_error *err;
    int rc;
};

static void add_gpu(struct gpus *g, const struct cw_gpu_info *info)
{
    Cw__Gpu *u = cw_arena_alloc(g->arena, sizeof *u);
    cw__gpu__init(u);
    u->index = info->index;
    u->uuid = cw_arena_strdup(g->arena, info->uuid);
    u->model = cw_arena_strdup(g->arena, info->model);
    u->pci = cw_arena_strdup(g->arena, info->pci);
    u->has_mem_bytes = 1;
    u->mem_bytes = info->mem_bytes;
    u->has_numa = info->numa >= 0;
    u->numa = info->numa >= 0 ? (uint32_t)info->numa : 0;
    g->inv->gpus[g->inv->n_gpus++] = u;
}

static void add_gpus_of(struct cw_plug *p, void *arg)
{
    struct gpus *g = arg;
    struct cw_plugin_err perr = { "" };
    const char *name = cw_plug_desc(p)->name;
    int n = g->rc < 0 ? 0 : CW_PLUG_OPS(gpu, p)->count(cw_plug_ctx(p), &perr);
    if (n < 0)
        cw_log_warn("plugin gpu/%s: %s", name, perr.text[0] != '\0' ? perr.text : strerror(-n));
    if (n > 0 && g->inv->n_gpus > 0) { /* their indices would collide in grants */
        g->rc = cw_fail(g->err, -EINVAL,
                        "plugin gpu/%s: another gpu plugin has GPUs on this node already", name);
        return;
    }
    for (int i = 0; i < n && g->inv->n_gpus < GPUS_MAX; i++) {
        struct cw_gpu_info info;
        memset(&info, 0, sizeof info);
        info.size = sizeof info;
        info.numa = -1;
        int rc = CW_PLUG_OPS(gpu, p)->get(cw_plug_ctx(p), (uint32_t)i, &info, &perr);
        if (rc < 0) {
            g->rc = cw_fail_node(g->err, rc, "plugin gpu/%s: GPU %d: %s", name, i,
                                 perr.text[0] != '\0' ? perr.text : strerror(-rc));
            return;
        }
        add_gpu(g, &info);
    }
}

static char **copy_list(struct cw_arena *a, const struct cw_strv *v)
{
    char **list = cw_arena_alloc(a, (v->n + 1) * sizeof *list);
    for (size_t i = 0; i < v->n; i++)
        list[i] = cw_arena_strdup(a, v->v[i]);
    return list;
}

int cw_inventory_make(struct cw_node *n, const struct cw_strv *isolations, struct cw_arena *a,
                      Cw__Inventory **ret, struct cw_error *err)
{
    Cw__Inventory *inv = cw_arena_alloc(a, sizeof *inv);
    cw_autostrv struct cw_strv features = { 0 };
    char host[256] = "";
    cw__inventory__init(inv);
    int rc = add_cores(n, a, inv, err);
    if (rc < 0 || (rc = add_memory(n, inv, err)) < 0)
        return rc;
    struct gpus g = { .arena = a, .inv = inv, .err = err };
    inv->gpus = cw_arena_alloc(a, GPUS_MAX * sizeof *inv->gpus);
    cw_plug_each(n->plugs, "gpu", add_gpus_of, &g);
    if (g.rc < 0)
        return g.rc;
    cw_kernelfeatures(&features);
    inv->features = copy_list(a, &features);
    inv->n_features = features.n;
    inv->isolations = copy_list(a, isolations);
    inv->n_isolations = isolations->n;
    inv->has_synthetic = 1;
    inv->synthetic = !cw_topo_is_this_system(n->topo);
    inv->topology_hash = cw_arena_strdup(a, cw_topo_hash(n->topo));
    gethostname(host, sizeof host - 1);
    inv->hostname = cw_arena_strdup(a, host);
    inv->version = cw_arena_strdup(a, PACKAGE_VERSION);
    *ret = inv;
    return 0;
}
