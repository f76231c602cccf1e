/* Nodes in memory: made from stored rows and from what the node daemon says of itself, up or down,
 * drained or not. The ledger is in ledger.c. Test: node_test.c. */
#include "model/model.h"

#include <string.h>

#include "base/mem.h"

#define NODE_MAX_GPUS 64
#define NODE_MAX_CORES 4096

struct cw_node *cw_model_node(struct cw_model *m, const char *name)
{
    return cw_strtable_find(m->node_names, name);
}

struct cw_node *cw_model_node_at(struct cw_model *m, uint32_t i)
{
    return i < m->n_nodes ? m->nodes[i] : NULL;
}

uint32_t cw_model_n_nodes(const struct cw_model *m) { return m->n_nodes; }

static struct cw_node *node_create(struct cw_model *m, const char *name)
{
    if (m->n_nodes == m->cap_nodes) {
        m->cap_nodes = m->cap_nodes == 0 ? 16 : m->cap_nodes * 2;
        m->nodes = cw_xrealloc(m->nodes, m->cap_nodes, sizeof(struct cw_node *));
    }
    struct cw_node *n = cw_xcalloc(1, sizeof(*n));
    n->name = cw_names_get(m, name);
    n->index = m->n_nodes;
    cw_list_init(&n->parts);
    m->nodes[m->n_nodes++] = n;
    cw_strtable_set(m->node_names, n->name, n);
    return n;
}

static void drop_shape(struct cw_node *n)
{
    if (n->coremap != NULL && n->coremap_free != NULL)
        n->coremap_free(n->coremap);
    n->coremap = NULL;
    free(n->core_free);
    free(n->core_l3);
    free(n->core_numa);
    free(n->core_package);
    n->core_free = NULL;
    n->core_l3 = n->core_numa = n->core_package = NULL;
}

void cw_node_destroy(struct cw_model *m, struct cw_node *n)
{
    drop_shape(n);
    if (n->rec != NULL)
        cw__node_record__free_unpacked(n->rec, NULL);
    cw_names_put(m, n->name);
    free(n);
}

static uint32_t at_most(size_t n, uint32_t most)
{
    return n > most ? most : (uint32_t)n;
}

static void build_shape(struct cw_node *n)
{
    const Cw__Inventory *inv = n->rec->inventory;
    drop_shape(n);
    n->n_cores = inv == NULL ? 0 : at_most(inv->n_cores, NODE_MAX_CORES);
    n->gpus_total = inv == NULL ? 0 : at_most(inv->n_gpus, NODE_MAX_GPUS);
    n->words = (n->n_cores + 63) / 64;
    n->mem_total = inv == NULL ? 0 : inv->mem_bytes;
    size_t k = n->n_cores > 0 ? n->n_cores : 1;
    n->core_free = cw_xcalloc(n->words > 0 ? n->words : 1, sizeof(uint64_t));
    n->core_l3 = cw_xcalloc(k, sizeof(uint32_t));
    n->core_numa = cw_xcalloc(k, sizeof(uint32_t));
    n->core_package = cw_xcalloc(k, sizeof(uint32_t));
    for (uint32_t i = 0; i < n->n_cores; i++) {
        n->core_l3[i] = inv->cores[i]->l3;
        n->core_numa[i] = inv->cores[i]->numa;
        n->core_package[i] = inv->cores[i]->package;
    }
    cw_ledger_recompute(n);
}

static Cw__NodeRecord *copy_record(const Cw__NodeRecord *rec)
{
    size_t n = cw__node_record__get_packed_size(rec);
    cw_autofree uint8_t *p = cw_xmalloc(n + 1);
    return cw__node_record__unpack(NULL, cw__node_record__pack(rec, p), p);
}

#define MOVE(to, from, field)                         \
    do {                                              \
        __typeof__((to)->field) move_v = (to)->field; \
        (to)->field = (from)->field;                  \
        (from)->field = move_v;                       \
    } while (0)

/* What a node says of itself does not touch what the administrator said of it. */
static void keep_from_old(Cw__NodeRecord *now, Cw__NodeRecord *old)
{
    MOVE(now, old, has_drained);
    MOVE(now, old, drained);
    MOVE(now, old, drain_reason);
    MOVE(now, old, has_drain_uid);
    MOVE(now, old, drain_uid);
    MOVE(now, old, has_drain_ns);
    MOVE(now, old, drain_ns);
    MOVE(now, old, has_drain_deadline_ns);
    MOVE(now, old, drain_deadline_ns);
    MOVE(now, old, drain_then);
    if (now->inventory == NULL)
        MOVE(now, old, inventory);
}

struct cw_node *cw_model_node_set(struct cw_model *m, const Cw__NodeRecord *rec, bool store,
                                  int64_t now_ns)
{
    struct cw_node *n = cw_model_node(m, rec->name);
    Cw__NodeRecord *copy = copy_record(rec);
    if (n == NULL)
        n = node_create(m, rec->name);
    if (n->rec != NULL) {
        keep_from_old(copy, n->rec);
        cw__node_record__free_unpacked(n->rec, NULL);
    }
    n->rec = copy;
    build_shape(n);
    cw_drain_note(m, n);
    if (now_ns > n->last_seen_ns)
        n->last_seen_ns = now_ns;
    if (store)
        cw_emit(m, &(struct cw_effect){.kind = CW_EFFECT_PUT_NODE, .node = n});
    if (n->up)
        cw_emit_cycle(m);
    return n;
}

void cw_model_node_up(struct cw_model *m, struct cw_node *n, bool up, int64_t now_ns)
{
    if (up) {
        n->lost = false;
        n->last_seen_ns = now_ns;
    }
    if (n->up == up)
        return;
    n->up = up;
    cw_emit_event(m, NULL, NULL, n, 0, up ? "node-up" : "node-down", "%s", "");
    if (up)
        cw_emit_cycle(m);
}

void cw_model_node_drain(struct cw_model *m, struct cw_node *n, bool drain, const char *reason,
                         uint32_t uid, int64_t now_ns)
{
    Cw__NodeRecord *r = n->rec;
    free(r->drain_reason);
    r->drain_reason = drain ? cw_xstrdup(reason) : NULL;
    r->has_drained = true;
    r->drained = drain;
    r->has_drain_uid = r->has_drain_ns = drain;
    r->drain_uid = uid;
    r->drain_ns = now_ns;
    cw_drain_forget(n);
    cw_emit(m, &(struct cw_effect){.kind = CW_EFFECT_PUT_NODE, .node = n});
    cw_emit_event(m, NULL, NULL, n, uid, drain ? "node-drain" : "node-resume", "%s",
                  reason != NULL ? reason : "");
    n->launch_faults = 0;
    if (!drain)
        cw_emit_cycle(m);
}
