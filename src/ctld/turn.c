/* turn.c: the controller's transactions. Owns the open batch, the batch in flight, and the lists of
 * what has to happen after each. A *generation* is a batch with its afters; there are at most two:
 * one open, one in flight. An open generation without rows needs no commit and still waits for the
 * one in flight, so a reply never tells of a change that is not on disk, whoever made it.
 *
 * The worker touches only the batch and the store. Test: turn_test.c. */
#include "ctld/turn.h"

#include <string.h>

#include "base/clock.h"
#include "base/crashpoint.h"
#include "base/log.h"
#include "base/mem.h"

#define BACKOFF_MIN_MS 100u
#define BACKOFF_MAX_MS 5000u

struct after {
    cw_turn_fn fn;
    void *arg;
};
struct after_list {
    struct after *v;
    size_t n, cap;
};
struct generation {
    struct cw_batch *batch;
    struct after_list after[CW_TURN_STAGES];
};

struct cw_turn {
    struct cw_loop *loop;
    struct cw_store *store;
    struct cw_loop_timer *retry;
    struct generation open, flying;
    bool busy;    /* flying holds a generation that is not on disk yet */
    bool running; /* afters are being called */
    uint64_t number;
    uint32_t backoff_ms; /* 0: the last commit went well */
    int64_t began_ns;
    int rc; /* of the worker, with its sentence; the loop reads them in commit_done only */
    struct cw_error err;
    struct cw_error last; /* of the last failed try */
    struct cw_turn_stats stats;
};

static void after_list_add(struct after_list *l, cw_turn_fn fn, void *arg)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->v = cw_xrealloc(l->v, l->cap, sizeof *l->v);
    }
    l->v[l->n++] = (struct after){fn, arg};
}

/* Takes the list away before calling: an after may register new ones. */
static void after_list_run(struct after_list *l, const char *crashpoint, bool committed)
{
    struct after_list mine = *l;
    memset(l, 0, sizeof *l);
    for (size_t i = 0; i < mine.n; i++) {
        if (crashpoint != NULL)
            cw_crashpoint(crashpoint);
        mine.v[i].fn(mine.v[i].arg, committed);
    }
    free(mine.v);
}

static bool generation_empty(const struct generation *g)
{
    return cw_batch_empty(g->batch) && g->after[CW_TURN_EFFECT].n == 0 &&
           g->after[CW_TURN_REPLY].n == 0;
}

static void generation_run(struct cw_turn *t, struct generation *g)
{
    t->running = true;
    t->stats.afters += g->after[CW_TURN_EFFECT].n + g->after[CW_TURN_REPLY].n;
    after_list_run(&g->after[CW_TURN_EFFECT], NULL, true);
    after_list_run(&g->after[CW_TURN_REPLY], "turn.before-reply", true);
    t->running = false;
}

static void commit_work(void *arg)
{
    struct cw_turn *t = arg;
    cw_crashpoint("turn.before-commit");
    t->rc = cw_crashpoint_fail("turn.commit");
    if (t->rc != 0)
        cw_fail_errno(&t->err, t->rc, "state: commit");
    else
        t->rc = cw_store_commit(t->store, t->flying.batch, &t->err);
    if (t->rc == 0)
        cw_crashpoint("turn.after-commit");
}

static void commit_failed(struct cw_turn *t)
{
    t->stats.failures++;
    t->last = t->err;
    t->backoff_ms = t->backoff_ms == 0 ? BACKOFF_MIN_MS : t->backoff_ms * 2;
    if (t->backoff_ms > BACKOFF_MAX_MS)
        t->backoff_ms = BACKOFF_MAX_MS;
    cw_log_error("%s: nothing new is accepted; trying again in %u ms", t->err.text, t->backoff_ms);
    cw_loop_timer_start(t->retry, t->backoff_ms, 0);
}

static void commit_done(void *arg)
{
    struct cw_turn *t = arg;
    if (t->rc != 0) {
        commit_failed(t);
        return;
    }
    if (t->backoff_ms != 0)
        cw_log_info("state: commits succeed again");
    t->backoff_ms = 0;
    int64_t took = cw_clock_mono_ns() - t->began_ns;
    cw_latency_add(&t->stats.latency, took);
    t->stats.last_ns = took;
    t->stats.total_ns += took;
    struct generation g = t->flying;
    memset(&t->flying, 0, sizeof t->flying);
    t->busy = false;
    generation_run(t, &g);
    cw_batch_destroy(g.batch);
}

static void commit_start(void *arg)
{
    struct cw_turn *t = arg;
    cw_loop_work(t->loop, commit_work, commit_done, t);
}

struct cw_turn *cw_turn_create(struct cw_loop *l, struct cw_store *s)
{
    struct cw_turn *t = cw_xcalloc(1, sizeof *t);
    t->loop = l;
    t->store = s;
    t->open.batch = cw_batch_create();
    t->retry = cw_loop_timer_open(l, commit_start, t);
    return t;
}

static void generation_drop(struct generation *g)
{
    for (int i = 0; i < CW_TURN_STAGES; i++)
        after_list_run(&g->after[i], NULL, false);
    cw_batch_destroy(g->batch);
}

void cw_turn_destroy(struct cw_turn *t)
{
    if (t == NULL)
        return;
    cw_loop_timer_close(t->retry);
    generation_drop(&t->flying);
    generation_drop(&t->open);
    free(t);
}

struct cw_batch *cw_turn_batch(struct cw_turn *t)
{
    return t->open.batch;
}

void cw_turn_after(struct cw_turn *t, enum cw_turn_stage stage, cw_turn_fn fn, void *arg)
{
    after_list_add(&t->open.after[stage], fn, arg);
}

uint64_t cw_turn_generation(const struct cw_turn *t)
{
    return t->number;
}

bool cw_turn_flying(const struct cw_turn *t)
{
    return t->busy;
}

bool cw_turn_idle(const struct cw_turn *t)
{
    return !t->busy && generation_empty(&t->open);
}

void cw_turn_end(struct cw_turn *t)
{
    if (t->busy || t->running || generation_empty(&t->open))
        return;
    t->number++;
    if (cw_batch_empty(t->open.batch)) { /* answers to questions: nothing to store */
        generation_run(t, &t->open);
        return;
    }
    t->flying = t->open;
    memset(&t->open, 0, sizeof t->open);
    t->open.batch = cw_batch_create();
    t->busy = true;
    t->began_ns = cw_clock_mono_ns();
    commit_start(t);
}

bool cw_turn_failing(const struct cw_turn *t, struct cw_error *err)
{
    if (t->backoff_ms != 0 && err != NULL)
        *err = t->last;
    return t->backoff_ms != 0;
}

void cw_turn_get_stats(const struct cw_turn *t, struct cw_turn_stats *ret)
{
    *ret = t->stats;
    ret->open_bytes = cw_batch_bytes(t->open.batch);
    ret->flying_bytes = t->busy ? cw_batch_bytes(t->flying.batch) : 0;
}
