/* lease.c: one entry per allocation that asked for a lease; see lease.h. Entries of jobs that have
 * ended go when their time is up. */
#include "ctld/lease.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "ctld/deadline.h"

struct lease {
    uint64_t id;
    int64_t until_ns;
};
struct cw_leases {
    struct cw_ctld *c;
    struct cw_idtable *by_job;
    int64_t next_ns;
};
struct looking {
    struct cw_leases *l;
    int64_t now_ns, next_ns;
    uint64_t *over;
    size_t n, cap;
};

struct cw_leases *cw_leases_create(struct cw_ctld *c)
{
    struct cw_leases *l = cw_xcalloc(1, sizeof *l);
    l->c = c;
    l->by_job = cw_idtable_create();
    l->next_ns = INT64_MAX;
    return l;
}

static bool each_free(uint64_t key, void *value, void *arg)
{
    (void)key, (void)arg;
    free(value);
    return true;
}

void cw_leases_destroy(struct cw_leases *l)
{
    if (l == NULL)
        return;
    cw_idtable_each(l->by_job, each_free, NULL);
    cw_idtable_destroy(l->by_job);
    free(l);
}

void cw_leases_renew(struct cw_leases *l, uint64_t id, const Cw__JobSpec *spec)
{
    if (!spec->has_allocation || !spec->allocation || !spec->has_alloc_lease_s)
        return;
    struct lease *e = cw_idtable_find(l->by_job, id);
    if (e == NULL) {
        e = cw_xcalloc(1, sizeof *e);
        e->id = id;
        cw_idtable_set(l->by_job, id, e);
    }
    e->until_ns = cw_clock_real_ns() + (int64_t)spec->alloc_lease_s * CW_NS_PER_S;
    if (e->until_ns < l->next_ns) {
        l->next_ns = e->until_ns;
        cw_deadline_touch(l->c->deadline, e->until_ns);
    }
}

static bool look(uint64_t key, void *value, void *arg)
{
    struct looking *w = arg;
    struct lease *e = value;
    if (e->until_ns > w->now_ns) {
        w->next_ns = e->until_ns < w->next_ns ? e->until_ns : w->next_ns;
        return true;
    }
    if (w->n == w->cap) {
        w->cap = w->cap > 0 ? w->cap * 2 : 16;
        w->over = cw_xrealloc(w->over, w->cap, sizeof *w->over);
    }
    w->over[w->n++] = key;
    cw_idtable_remove(w->l->by_job, key);
    free(e);
    return true;
}

int64_t cw_leases_due(struct cw_leases *l, int64_t now_ns)
{
    if (now_ns < l->next_ns)
        return l->next_ns;
    struct looking w = {.l = l, .now_ns = now_ns, .next_ns = INT64_MAX};
    cw_idtable_each(l->by_job, look, &w);
    l->next_ns = w.next_ns;
    for (size_t i = 0; i < w.n; i++) {
        struct cw_job *j = cw_model_job(l->c->model, w.over[i]);
        if (j == NULL)
            continue;
        cw_log_info("job %llu: its command does not renew it any more",
                    (unsigned long long)w.over[i]);
        cw_model_owner_gone(l->c->model, j, now_ns);
    }
    free(w.over);
    return l->next_ns;
}
