/* waiter.c: who waits for what. A wait that is over is answered after the commit of what ended it,
 * from the store, where the job then is. */
#include "ctld/waiter.h"

#include "base/mem.h"
#include "ctld/answer.h"
#include "ctld/jobview.h"
#include "ctld/turn.h"
#include "spec/outcome.h"

struct waiter;
struct item {
    struct cw_list on_job;
    struct waiter *waiter;
    struct cw_wait_item what;
    bool open;
};
struct waiter {
    struct cw_list on_all;
    struct cw_waits *owner;
    struct cw_rpc_call *call;
    struct cw_loop_timer *timer;
    size_t n, n_open;
    struct item items[];
};
struct cw_waits {
    struct cw_ctld *c;
    struct cw_list all;
    size_t n;
};

struct cw_waits *cw_waits_create(struct cw_ctld *c)
{
    struct cw_waits *w = cw_xcalloc(1, sizeof *w);
    w->c = c;
    cw_list_init(&w->all);
    return w;
}

static void waiter_unlink(struct waiter *w)
{
    for (size_t i = 0; i < w->n; i++)
        cw_list_remove(&w->items[i].on_job);
    cw_list_remove(&w->on_all);
    w->owner->n--;
    cw_loop_timer_close(w->timer);
    w->timer = NULL;
}

void cw_waits_destroy(struct cw_waits *w)
{
    if (w == NULL)
        return;
    cw_list_each_safe (p, &w->all) {
        struct waiter *one = cw_list_entry(p, struct waiter, on_all);
        waiter_unlink(one);
        cw_rpc_drop(one->call);
        free(one);
    }
    free(w);
}

size_t cw_waits_count(const struct cw_waits *w)
{
    return w->n;
}

/* Ended, and not to be tried again. */
static bool item_over(struct cw_ctld *c, struct cw_job *j, const struct cw_wait_item *what)
{
    if (!what->is_element)
        return cw_state_terminal(j->state);
    uint64_t ordinal;
    if (!cw_job_ordinal(j, what->id, &ordinal))
        return true;
    if (j->is_array && cw_idset_has(&j->array->pending, ordinal))
        return false;
    struct cw_attempt *a = cw_model_attempt(c->model, what->id);
    return a == NULL ? j->is_array : cw_state_terminal(a->rec->state) && !a->requeue;
}

static Cw__JobInfo *item_info(struct cw_ctld *c, const struct cw_wait_item *what,
                              struct cw_arena *a)
{
    struct cw_jobsrc s;
    uint64_t ordinal;
    if (cw_jobview_find(c, what->id, a, &s, NULL, &ordinal, NULL) < 0)
        return NULL;
    Cw__JobInfo *i =
        what->is_element ? cw_jobview_element(c, &s, ordinal, a) : cw_jobview_info(c, &s, a);
    cw_jobsrc_fini(&s);
    return i;
}

static void answer_over(void *arg, bool committed)
{
    struct waiter *w = arg;
    if (!committed) {
        cw_rpc_drop(w->call);
        free(w);
        return;
    }
    struct cw_arena *a = cw_rpc_call_arena(w->call);
    Cw__WaitReply *r = cw_arena_alloc(a, sizeof *r);
    cw__wait_reply__init(r);
    r->done = true;
    r->jobs = cw_arena_alloc(a, w->n * sizeof *r->jobs);
    for (size_t i = 0; i < w->n; i++) {
        Cw__JobInfo *info = item_info(w->owner->c, &w->items[i].what, a);
        if (info != NULL)
            r->jobs[r->n_jobs++] = info;
    }
    cw_rpc_reply(w->call, &r->base);
    free(w);
}

static void waiter_over(struct waiter *w)
{
    struct cw_turn *turn = w->owner->c->turn;
    waiter_unlink(w);
    cw_turn_after(turn, CW_TURN_REPLY, answer_over, w);
}

static void on_timeout(void *arg)
{
    struct waiter *w = arg;
    waiter_unlink(w);
    Cw__WaitReply *r = cw_arena_alloc(cw_rpc_call_arena(w->call), sizeof *r);
    cw__wait_reply__init(r);
    r->done = false;
    cw_answer_now(w->call, &r->base);
    free(w);
}

static void item_close(struct item *it)
{
    cw_list_remove(&it->on_job);
    if (!it->open)
        return;
    it->open = false;
    if (--it->waiter->n_open == 0)
        waiter_over(it->waiter);
}

void cw_waits_job_final(struct cw_waits *w, struct cw_job *j)
{
    (void)w;
    while (!cw_list_empty(&j->waiters))
        item_close(cw_list_entry(j->waiters.next, struct item, on_job));
}

void cw_waits_job_changed(struct cw_waits *w, struct cw_job *j)
{
    struct cw_list over;
    cw_list_init(&over);
    cw_list_each_safe (p, &j->waiters) {
        struct item *it = cw_list_entry(p, struct item, on_job);
        if (it->what.is_element && item_over(w->c, j, &it->what)) {
            cw_list_remove(&it->on_job);
            cw_list_add_tail(&over, &it->on_job);
        }
    }
    while (!cw_list_empty(&over))
        item_close(cw_list_entry(over.next, struct item, on_job));
}

int cw_waits_add(struct cw_waits *w, struct cw_rpc_call *call, const struct cw_wait_item *items,
                 size_t n, uint32_t timeout_ms, struct cw_error *err)
{
    if (w->n >= CW_WAITS_MAX)
        return cw_fail(err, -EAGAIN, "%zu clients wait already, at most %u may", w->n,
                       CW_WAITS_MAX);
    if (n > CW_WAITS_ITEMS_MAX)
        return cw_fail(err, -E2BIG,
                       "asked to wait for %zu jobs, at most %u are allowed in one request", n,
                       CW_WAITS_ITEMS_MAX);
    struct waiter *one = cw_xcalloc(1, sizeof *one + n * sizeof one->items[0]);
    one->owner = w;
    one->call = call;
    one->n = n;
    for (size_t i = 0; i < n; i++) {
        struct item *it = &one->items[i];
        struct cw_job *j = cw_model_job(w->c->model, items[i].id);
        it->waiter = one;
        it->what = items[i];
        if (j == NULL || item_over(w->c, j, &it->what))
            continue;
        it->open = true;
        one->n_open++;
        cw_list_add_tail(&j->waiters, &it->on_job);
    }
    cw_list_add_tail(&w->all, &one->on_all);
    w->n++;
    one->timer = cw_loop_timer_open(w->c->loop, on_timeout, one);
    if (one->n_open == 0) {
        waiter_over(one);
        return 0;
    }
    cw_loop_timer_start(
        one->timer, timeout_ms > CW_WAITS_TIMEOUT_MAX_MS ? CW_WAITS_TIMEOUT_MAX_MS : timeout_ms, 0);
    return 0;
}
