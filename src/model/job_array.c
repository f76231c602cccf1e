/* The elements of an array as interval sets and counters: what waits, what was cancelled unstarted,
 * how many ended how. A million elements cost as much as one until they start. An element is in
 * exactly one of: pending, live (has an attempt), held back (its old attempt still holds its
 * ledger), or counted as ended. Test: job_array_test.c. */
#include "model/model.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "spec/check.h"

struct cw_jobarray *cw_jobarray_create(const char *indices, struct cw_error *err)
{
    struct cw_jobarray *a = cw_xcalloc(1, sizeof(*a));
    int r = cw_idset_parse(indices, strlen(indices), CW_CHECK_MAX_ARRAY_INDEX, &a->indices, err);
    if (r == 0 && cw_idset_empty(&a->indices))
        r = cw_fail(err, -EINVAL, "array has no elements");
    if (r < 0) {
        cw_wrap(err, r, "array \"%.80s\"", indices);
        cw_jobarray_destroy(a);
        return NULL;
    }
    a->tries = cw_idtable_create();
    cw_idset_add(&a->pending, 0, cw_idset_count(&a->indices) - 1);
    return a;
}

void cw_jobarray_destroy(struct cw_jobarray *a)
{
    if (a == NULL)
        return;
    cw_idset_fini(&a->indices);
    cw_idset_fini(&a->pending);
    cw_idset_fini(&a->cancelled);
    if (a->tries != NULL)
        cw_idtable_destroy(a->tries);
    free(a);
}

/* A set of our own making may have more ranges than the parser takes from people at once. */
static int parse_set(const char *text, struct cw_idset *ret, struct cw_error *err)
{
    while (text != NULL && *text != '\0') {
        const char *end = text;
        for (unsigned n = 0; *end != '\0' && (*end != ',' || ++n < CW_IDSET_MAX_RANGES / 2); end++)
            ;
        struct cw_idset part = {0};
        int r = cw_idset_parse(text, (size_t)(end - text), UINT64_MAX - 1, &part, err);
        if (r < 0)
            return r;
        for (size_t i = 0; i < part.n; i++)
            cw_idset_add(ret, part.r[i].first, part.r[i].last);
        cw_idset_fini(&part);
        text = *end == ',' ? end + 1 : end;
    }
    return 0;
}

/* In the 64 bits of a table's value: 24 of the attempt number, 20 of each counter. */
#define TRIES_MAX 0xfffffu

static uint64_t at_most(uint64_t v, uint64_t most) { return v < most ? v : most; }

static void *pack_tries(const struct cw_tries *t)
{
    return (void *)(uintptr_t)(at_most(t->next, 0xffffff) |
                               at_most(t->node_faults, TRIES_MAX) << 24 |
                               at_most(t->retries_used, TRIES_MAX) << 44);
}

static struct cw_tries unpack_tries(const void *value)
{
    uint64_t v = (uintptr_t)value;
    return (struct cw_tries){.next = (uint32_t)(v & 0xffffff),
                             .node_faults = (uint32_t)(v >> 24) & TRIES_MAX,
                             .retries_used = (uint32_t)(v >> 44) & TRIES_MAX};
}

int cw_jobarray_restore(struct cw_jobarray *a, const Cw__JobRecord *rec, struct cw_error *err)
{
    cw_idset_fini(&a->pending);
    memset(&a->pending, 0, sizeof(a->pending));
    int r = parse_set(rec->pending, &a->pending, err);
    if (r == 0)
        r = parse_set(rec->cancelled, &a->cancelled, err);
    if (r < 0)
        return cw_wrap(err, r, "job %llu", (unsigned long long)rec->id);
    a->n_completed = rec->n_completed;
    a->n_failed = rec->n_failed;
    a->n_cancelled = rec->n_cancelled;
    a->worst_exit = rec->worst_exit;
    for (size_t i = 0; i < rec->n_requeued; i++)
        cw_jobarray_set_tries(a, rec->requeued[i]->ordinal,
                              &(struct cw_tries){.next = rec->requeued[i]->next_attempt,
                                                 .node_faults = rec->requeued[i]->node_faults,
                                                 .retries_used = rec->requeued[i]->retries_used});
    return 0;
}

struct collect {
    Cw__ElementAttempt **v;
    size_t n;
};

static bool collect_one(uint64_t key, void *value, void *arg)
{
    struct collect *c = arg;
    Cw__ElementAttempt *e = cw_xmalloc(sizeof(*e));
    cw__element_attempt__init(e);
    e->ordinal = key;
    struct cw_tries t = unpack_tries(value);
    e->next_attempt = t.next;
    e->has_node_faults = (e->node_faults = t.node_faults) != 0;
    e->has_retries_used = (e->retries_used = t.retries_used) != 0;
    c->v[c->n++] = e;
    return true;
}

static int by_ordinal(const void *pa, const void *pb)
{
    const Cw__ElementAttempt *a = *(Cw__ElementAttempt *const *)pa,
                             *b = *(Cw__ElementAttempt *const *)pb;
    return a->ordinal < b->ordinal ? -1 : a->ordinal > b->ordinal;
}

static char *set_text(const struct cw_idset *s)
{
    struct cw_buf b = {0};
    cw_idset_format(s, &b);
    return cw_buf_steal(&b);
}

void cw_jobarray_save(const struct cw_jobarray *a, Cw__JobRecord *rec)
{
    rec->has_count = true;
    rec->count = cw_idset_count(&a->indices);
    if (!cw_idset_empty(&a->pending))
        rec->pending = set_text(&a->pending);
    if (!cw_idset_empty(&a->cancelled))
        rec->cancelled = set_text(&a->cancelled);
    rec->has_n_completed = rec->has_n_failed = rec->has_n_cancelled = rec->has_worst_exit = true;
    rec->n_completed = a->n_completed;
    rec->n_failed = a->n_failed;
    rec->n_cancelled = a->n_cancelled;
    rec->worst_exit = a->worst_exit;
    size_t n = cw_idtable_count(a->tries);
    if (n == 0)
        return;
    struct collect c = {.v = cw_xcalloc(n, sizeof(*c.v))};
    cw_idtable_each(a->tries, collect_one, &c);
    qsort(c.v, c.n, sizeof(*c.v), by_ordinal);
    rec->requeued = c.v;
    rec->n_requeued = c.n;
}

struct cw_tries cw_jobarray_tries(const struct cw_jobarray *a, uint64_t ordinal)
{
    void *v = cw_idtable_find(a->tries, ordinal);
    return v != NULL ? unpack_tries(v) : (struct cw_tries){.next = 1};
}

uint32_t cw_jobarray_next_attempt(const struct cw_jobarray *a, uint64_t ordinal)
{
    return cw_jobarray_tries(a, ordinal).next;
}

void cw_jobarray_set_tries(struct cw_jobarray *a, uint64_t ordinal, const struct cw_tries *t)
{
    if (t->next <= 1)
        cw_idtable_remove(a->tries, ordinal);
    else
        cw_idtable_set(a->tries, ordinal, pack_tries(t));
}

void cw_jobarray_set_next_attempt(struct cw_jobarray *a, uint64_t ordinal, uint32_t n)
{
    struct cw_tries t = cw_jobarray_tries(a, ordinal);
    t.next = n;
    cw_jobarray_set_tries(a, ordinal, &t);
}

bool cw_jobarray_took(struct cw_jobarray *a, uint64_t ordinal)
{
    if (!cw_idset_has(&a->pending, ordinal))
        return false;
    cw_idset_remove(&a->pending, ordinal, ordinal);
    cw_jobarray_set_next_attempt(a, ordinal, 1);
    return true;
}

void cw_jobarray_count(struct cw_jobarray *a, Cw__State s, uint32_t exit_status)
{
    if (s == CW__STATE__COMPLETED)
        a->n_completed++;
    else if (s == CW__STATE__CANCELLED)
        a->n_cancelled++;
    else
        a->n_failed++;
    if (exit_status > a->worst_exit)
        a->worst_exit = exit_status;
}

/* The common part of two sets, by walking both once. */
static void intersect(const struct cw_idset *a, const struct cw_idset *b, struct cw_idset *ret)
{
    for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
        uint64_t first = a->r[i].first > b->r[k].first ? a->r[i].first : b->r[k].first;
        uint64_t last = a->r[i].last < b->r[k].last ? a->r[i].last : b->r[k].last;
        if (first <= last)
            cw_idset_add(ret, first, last);
        if (a->r[i].last < b->r[k].last)
            i++;
        else
            k++;
    }
}

uint64_t cw_jobarray_cancel_pending(struct cw_jobarray *a, const struct cw_idset *ordinals,
                                    uint32_t exit_status, struct cw_idset *ret_hit)
{
    if (ordinals == NULL)
        cw_idset_copy(ret_hit, &a->pending);
    else
        intersect(&a->pending, ordinals, ret_hit);
    uint64_t n = cw_idset_count(ret_hit);
    if (n == 0)
        return 0;
    for (size_t i = 0; i < ret_hit->n; i++) {
        cw_idset_remove(&a->pending, ret_hit->r[i].first, ret_hit->r[i].last);
        cw_idset_add(&a->cancelled, ret_hit->r[i].first, ret_hit->r[i].last);
    }
    for (uint64_t k = 0; cw_idtable_count(a->tries) > 0 && k < ret_hit->n; k++)
        for (uint64_t o = ret_hit->r[k].first; o <= ret_hit->r[k].last; o++)
            cw_jobarray_set_next_attempt(a, o, 1);
    a->n_cancelled += n;
    if (exit_status > a->worst_exit)
        a->worst_exit = exit_status;
    return n;
}
