/* Buckets of nodes by free cores: doubly linked lists over arrays of node indices. See freenodes.h.
 * Which nodes a partition has is looked up once per pass and partition. */
#include "sched/freenodes.h"

#include "base/mem.h"

#define END UINT32_MAX

struct cw_freenodes {
    struct cw_model *m;
    uint32_t n_buckets;
    uint32_t *head;                 /* by number of free cores */
    uint32_t *next, *prev, *bucket; /* by node index; bucket END: not usable */
    uint64_t n_with_cores;
    uint64_t **members; /* by partition index: bit per node; NULL: not needed yet */
    uint32_t n_members;
};

static void link_node(struct cw_freenodes *f, uint32_t i, uint32_t bucket)
{
    f->bucket[i] = bucket;
    f->prev[i] = END;
    f->next[i] = f->head[bucket];
    if (f->next[i] != END)
        f->prev[f->next[i]] = i;
    f->head[bucket] = i;
    f->n_with_cores += bucket > 0;
}

static void unlink_node(struct cw_freenodes *f, uint32_t i)
{
    if (f->next[i] != END)
        f->prev[f->next[i]] = f->prev[i];
    if (f->prev[i] != END)
        f->next[f->prev[i]] = f->next[i];
    else
        f->head[f->bucket[i]] = f->next[i];
    f->n_with_cores -= f->bucket[i] > 0;
}

struct cw_freenodes *cw_freenodes_create(struct cw_model *m)
{
    struct cw_freenodes *f = cw_xcalloc(1, sizeof(*f));
    uint32_t n = cw_model_n_nodes(m), most = 0;
    f->m = m;
    for (uint32_t i = 0; i < n; i++)
        if (cw_model_node_at(m, i)->n_cores > most)
            most = cw_model_node_at(m, i)->n_cores;
    f->n_buckets = most + 1;
    f->head = cw_xcalloc(f->n_buckets, sizeof(*f->head));
    f->next = cw_xcalloc(n + 1, sizeof(*f->next));
    f->prev = cw_xcalloc(n + 1, sizeof(*f->prev));
    f->bucket = cw_xcalloc(n + 1, sizeof(*f->bucket));
    for (uint32_t b = 0; b < f->n_buckets; b++)
        f->head[b] = END;
    for (uint32_t i = n; i-- > 0;) {
        const struct cw_node *node = cw_model_node_at(m, i);
        f->bucket[i] = END;
        if (cw_node_usable(node))
            link_node(f, i, node->n_free);
    }
    return f;
}

void cw_freenodes_destroy(struct cw_freenodes *f)
{
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < f->n_members; i++)
        free(f->members[i]);
    free(f->members);
    free(f->head);
    free(f->next);
    free(f->prev);
    free(f->bucket);
    free(f);
}

static const uint64_t *members_of(struct cw_freenodes *f, const struct cw_partition *p)
{
    if (p->index >= f->n_members) {
        f->members = cw_xrealloc(f->members, (size_t)p->index + 1, sizeof(*f->members));
        while (f->n_members <= p->index)
            f->members[f->n_members++] = NULL;
    }
    if (f->members[p->index] == NULL) {
        uint32_t n = cw_model_n_nodes(f->m);
        uint64_t *bits = cw_xcalloc(n / 64 + 1, sizeof(*bits));
        for (uint32_t i = 0; i < n; i++)
            if (cw_partition_has(p, cw_model_node_at(f->m, i)))
                bits[i / 64] |= UINT64_C(1) << (i % 64);
        f->members[p->index] = bits;
    }
    return f->members[p->index];
}

struct cw_node *cw_freenodes_find(struct cw_freenodes *f, const struct cw_shape *s)
{
    const uint64_t *member = s->part->all_nodes ? NULL : members_of(f, s->part);
    struct cw_node *last_resort = NULL;
    for (uint32_t b = s->cores; b < f->n_buckets; b++) {
        for (uint32_t i = f->head[b]; i != END; i = f->next[i]) {
            struct cw_node *n = cw_model_node_at(f->m, i);
            bool is_member = member == NULL || ((member[i / 64] >> (i % 64)) & 1) != 0;
            if (!is_member || cw_shape_lacks_now(s, n) != CW_TERM_NONE)
                continue;
            if (n->launch_faults == 0)
                return n;
            if (last_resort == NULL)
                last_resort = n;
        }
    }
    return last_resort;
}

void cw_freenodes_update(struct cw_freenodes *f, const struct cw_node *n)
{
    if (f->bucket[n->index] == n->n_free)
        return;
    unlink_node(f, n->index);
    link_node(f, n->index, n->n_free);
}

bool cw_freenodes_exhausted(const struct cw_freenodes *f) { return f->n_with_cores == 0; }
