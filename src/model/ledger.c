/* What of a node is charged to whom: cores and GPUs as masks over the node's inventory, memory as a
 * sum. An attempt is charged when it is made and freed once, when its end is proven. The grant
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

void cw_ledger_resolve(struct cw_attempt *a)
{
    struct cw_node *n = a->node;
    free(a->cores);
    a->cores = cw_xcalloc(n->words > 0 ? n->words : 1, sizeof(*a->cores));
    core_mask(n, a->rec->grant->cores, a->cores);
    a->gpus = gpu_mask(n, a->rec->grant);
    a->mem_bytes = a->rec->grant->mem_bytes;
}

static void settle(struct cw_node *n)
{
    n->n_free = 0;
    for (uint32_t w = 0; w < n->words; w++)
        n->n_free += (uint32_t)__builtin_popcountll(n->core_free[w]);
    n->mem_free = n->mem_total > n->mem_used ? n->mem_total - n->mem_used : 0;
}

static void take(struct cw_node *n, const struct cw_attempt *a)
{
    for (uint32_t w = 0; w < n->words; w++)
        n->core_free[w] &= ~a->cores[w];
    n->gpu_free &= ~a->gpus;
    n->mem_used += a->mem_bytes;
}

void cw_ledger_charge(struct cw_model *m, struct cw_attempt *a)
{
    (void)m;
    take(a->node, a);
    settle(a->node);
    cw_list_add_tail(&a->node->attempts, &a->on_node);
}

void cw_ledger_free(struct cw_attempt *a)
{
    struct cw_node *n = a->node;
    if (a->on_node.next == NULL)
        return; /* freed before */
    cw_list_remove(&a->on_node);
    for (uint32_t w = 0; w < n->words; w++)
        n->core_free[w] |= a->cores[w];
    n->gpu_free |= a->gpus;
    n->mem_used -= a->mem_bytes;
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
    cw_list_each(pos, &n->attempts) {
        struct cw_attempt *a = cw_list_entry(pos, struct cw_attempt, on_node);
        cw_ledger_resolve(a);
        take(n, a);
    }
    settle(n);
}
