/* Buckets of nodes by free cores: doubly linked lists over arrays of node indices. See freenodes.h.
 * Which nodes a partition has is looked up once per pass and partition. */
#include "sched/freenodes.h"

#include "base/mem.h"

#define END UINT32_MAX

struct kind {
    uint64_t want;  /* cw_want.number */
    uint64_t *bits; /* by node index, and behind them those that are preferred too */
};

struct cw_freenodes {
    struct cw_model *m;
    int64_t now_ns;
    struct kind *kinds;
    uint32_t n_kinds;
    struct cw_candidate *candidates; /* room for all nodes */
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

struct cw_freenodes *cw_freenodes_create(struct cw_model *m, int64_t now_ns)
{
    struct cw_freenodes *f = cw_xcalloc(1, sizeof(*f));
    uint32_t n = cw_model_n_nodes(m), most = 0;
    f->m = m;
    f->now_ns = now_ns;
    f->candidates = cw_xcalloc(n + 1, sizeof(*f->candidates));
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
    for (uint32_t i = 0; i < f->n_kinds; i++)
        free(f->kinds[i].bits);
    free(f->kinds);
    free(f->candidates);
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

/* Nodes of the kind that a want asks for; NULL: any. Looked up once a pass and want. */
static const uint64_t *kind_of(struct cw_freenodes *f, const struct cw_shape *s)
{
    const struct cw_want *w = s->want;
    if (w->constraint == NULL && w->exclude == NULL && w->nodelist == NULL && w->prefer == NULL)
        return NULL;
    for (uint32_t i = 0; i < f->n_kinds; i++)
        if (f->kinds[i].want == w->number)
            return f->kinds[i].bits;
    uint32_t n = cw_model_n_nodes(f->m), words = n / 64 + 1;
    uint64_t *bits = cw_xcalloc(2 * (size_t)words, sizeof(*bits)); /* kind, then preferred */
    for (uint32_t i = 0; i < n; i++) {
        const struct cw_node *node = cw_model_node_at(f->m, i);
        if (f->bucket[i] == END || cw_shape_kind(s, node) != CW_TERM_NONE)
            continue;
        bits[i / 64] |= UINT64_C(1) << (i % 64);
        if (cw_shape_prefers(s, node))
            bits[words + i / 64] |= UINT64_C(1) << (i % 64);
    }
    f->kinds = cw_xrealloc(f->kinds, f->n_kinds + 1, sizeof(*f->kinds));
    f->kinds[f->n_kinds++] = (struct kind){w->number, bits};
    return bits;
}

static bool has_bit(const uint64_t *bits, uint32_t i)
{
    return bits == NULL || ((bits[i / 64] >> (i % 64)) & 1) != 0;
}

/* Room now, and no reservation touched. */
static bool room_for(const struct cw_shape *s, struct cw_node *n, struct cw_timeline *t,
                     int64_t now_ns, int64_t len_ns, struct cw_room *ret)
{
    if (t != NULL && cw_timeline_reserved(t, n))
        cw_timeline_room(t, s, n, now_ns, len_ns, ret);
    else
        cw_room_now(s, n, ret);
    return ret->cores >= s->want->cpus;
}

struct search {
    const uint64_t *member, *kind;
    const struct cw_shape *s;
    struct cw_timeline *t;
    int64_t now_ns, len_ns;
};

static bool suits(const struct search *q, struct cw_node *n)
{
    struct cw_room r;
    if (!has_bit(q->member, n->index) || !has_bit(q->kind, n->index))
        return false;
    if (!room_for(q->s, n, q->t, q->now_ns, q->len_ns, &r))
        return false;
    struct cw_need need = cw_shape_need(q->s, n, q->s->want->ntasks);
    if (!cw_room_holds(q->s, &r, &need))
        return false;
    if (q->s->want->nodelist != NULL && !cw_shape_lists(q->s, n))
        return false;
    return q->kind != NULL || cw_shape_kind(q->s, n) == CW_TERM_NONE;
}

static struct cw_node *tightest(struct cw_freenodes *f, const struct search *q)
{
    struct cw_node *last_resort = NULL;
    for (uint32_t b = cw_want_cores(q->s->want); b < f->n_buckets; b++) {
        for (uint32_t i = f->head[b]; i != END; i = f->next[i]) {
            struct cw_node *n = cw_model_node_at(f->m, i);
            if (!suits(q, n))
                continue;
            if (n->launch_faults == 0)
                return n;
            if (last_resort == NULL)
                last_resort = n;
        }
    }
    return last_resort;
}

struct cw_node *cw_freenodes_find(struct cw_freenodes *f, const struct cw_shape *s,
                                  struct cw_timeline *t, int64_t len_ns)
{
    const struct cw_want *w = s->want;
    if (w->nodes_min > 1 || w->n_listed > 1 || w->per_node < w->ntasks)
        return NULL;
    struct search q = {
        .member = s->part->all_nodes ? NULL : members_of(f, s->part),
        .kind = kind_of(f, s),
        .s = s,
        .t = t,
        .now_ns = f->now_ns,
        .len_ns = len_ns,
    };
    if (w->prefer != NULL) {
        struct search best = q;
        best.kind = q.kind + cw_model_n_nodes(f->m) / 64 + 1;
        struct cw_node *n = tightest(f, &best);
        if (n != NULL)
            return n;
    }
    return tightest(f, &q);
}

bool cw_freenodes_needs_several(struct cw_freenodes *f, const struct cw_shape *s)
{
    if (cw_shape_single(s))
        return false;
    const uint64_t *member = s->part->all_nodes ? NULL : members_of(f, s->part);
    for (uint32_t i = 0; i < cw_model_n_nodes(f->m); i++)
        if (f->bucket[i] != END && has_bit(member, i) &&
            cw_shape_holds_all(s, cw_model_node_at(f->m, i)))
            return false;
    return true;
}

bool cw_freenodes_find_several(struct cw_freenodes *f, const struct cw_shape *s,
                               struct cw_timeline *t, int64_t len_ns, struct cw_picks *ret)
{
    const uint64_t *member = s->part->all_nodes ? NULL : members_of(f, s->part);
    const uint64_t *kind = kind_of(f, s);
    uint32_t k = 0;
    for (uint32_t i = 0; i < cw_model_n_nodes(f->m); i++) {
        struct cw_node *n = cw_model_node_at(f->m, i);
        struct cw_room r;
        if (f->bucket[i] == END || !has_bit(member, i) || !has_bit(kind, i) ||
            !room_for(s, n, t, f->now_ns, len_ns, &r))
            continue;
        uint32_t tasks = cw_shape_tasks(s, n, &r);
        if (tasks == 0 || (kind == NULL && cw_shape_kind(s, n) != CW_TERM_NONE))
            continue;
        f->candidates[k++] = (struct cw_candidate){
            .node = n,
            .tasks = tasks,
            .free = r.cores,
            .listed = s->want->n_listed > 0 && cw_shape_lists(s, n),
            .preferred = cw_shape_prefers(s, n),
        };
    }
    return cw_gangpick(s->want, f->candidates, k, ret);
}

void cw_freenodes_update(struct cw_freenodes *f, const struct cw_node *n)
{
    if (f->bucket[n->index] == n->n_free)
        return;
    unlink_node(f, n->index);
    link_node(f, n->index, n->n_free);
}

bool cw_freenodes_exhausted(const struct cw_freenodes *f) { return f->n_with_cores == 0; }
