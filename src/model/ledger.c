/* What of a node is charged to whom: cores and GPUs as masks over the node's inventory, memory as a
 * sum. A part of an attempt is charged when it is granted and freed once, when its end is proven. The grant
 * names hardware by its own numbers; masks follow from it and the inventory, so a node that comes
 * back with other cores is recomputed from its attempts. Test: node_test.c; selfcheck.c recomputes
 * it independently. */
#include "model/model.h"

#include <string.h>

#include "base/mem.h"

static void core_mask(const struct cw_node *n, const char *cores, uint64_t *mask)
{
    struct cw_idset set = {0};
    if (n->n_cores == 0 || cw_idset_parse(cores, strlen(cores), UINT32_MAX, &set, NULL) < 0)
        return;
    const Cw__Inventory *inv = n->rec->inventory;
    for (uint32_t i = 0; i < n->n_cores; i++)
        if (cw_idset_has(&set, inv->cores[i]->logical))
            mask[i / 64] |= UINT64_C(1) << (i % 64);
    cw_idset_fini(&set);
}

static uint64_t gpu_mask(const struct cw_node *n, const Cw__Grant *g)
{
    uint64_t mask = 0;
    for (size_t k = 0; k < g->n_gpus; k++)
        for (uint32_t i = 0; i < n->gpus_total; i++)
            if (n->rec->inventory->gpus[i]->index == g->gpus[k]->index)
                mask |= UINT64_C(1) << i;
    return mask;
}

void cw_ledger_resolve(struct cw_part *p)
{
    struct cw_node *n = p->node;
    const Cw__Grant *g = cw_part_grant(p);
    free(p->cores);
    p->cores = cw_xcalloc(n->words > 0 ? n->words : 1, sizeof(*p->cores));
    core_mask(n, g->cores, p->cores);
    p->gpus = gpu_mask(n, g);
    p->mem_bytes = g->mem_bytes;
}

static void settle(struct cw_node *n)
{
    n->n_free = 0;
    for (uint32_t w = 0; w < n->words; w++)
        n->n_free += (uint32_t)__builtin_popcountll(n->core_free[w]);
    n->mem_free = n->mem_total > n->mem_used ? n->mem_total - n->mem_used : 0;
}

static void take(struct cw_node *n, const struct cw_part *p)
{
    for (uint32_t w = 0; w < n->words; w++)
        n->core_free[w] &= ~p->cores[w];
    n->gpu_free &= ~p->gpus;
    n->mem_used += p->mem_bytes;
}

void cw_ledger_charge(struct cw_part *p)
{
    take(p->node, p);
    settle(p->node);
    cw_list_add_tail(&p->node->parts, &p->on_node);
}

void cw_ledger_free(struct cw_part *p)
{
    struct cw_node *n = p->node;
    if (p->on_node.next == NULL)
        return; /* freed before */
    cw_list_remove(&p->on_node);
    for (uint32_t w = 0; w < n->words; w++)
        n->core_free[w] |= p->cores[w];
    n->gpu_free |= p->gpus;
    n->mem_used -= p->mem_bytes;
    settle(n);
}

static void all_free(struct cw_node *n)
{
    memset(n->core_free, 0, n->words * sizeof(*n->core_free));
    for (uint32_t i = 0; i < n->n_cores; i++)
        n->core_free[i / 64] |= UINT64_C(1) << (i % 64);
    n->gpu_free = n->gpus_total >= 64 ? UINT64_MAX : (UINT64_C(1) << n->gpus_total) - 1;
    n->mem_used = 0;
}

void cw_ledger_recompute(struct cw_node *n)
{
    all_free(n);
    cw_list_each(pos, &n->parts) {
        struct cw_part *p = cw_list_entry(pos, struct cw_part, on_node);
        cw_ledger_resolve(p);
        take(n, p);
    }
    settle(n);
}
