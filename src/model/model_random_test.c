/* Random steps, also stale, doubled and senseless ones. After each the ledger is recomputed; now
 * and then a second model is made from the rows that a store would hold and must be the same, and
 * takes over. Every (element, attempt) starts once; at the end everything is drained and every core
 * is free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/model_fixture.h"
#include "spec/outcome.h"

#define NS INT64_C(1000000000)

struct walk {
    struct fix *f;
    uint64_t seed;
    int64_t now;
    struct cw_idtable *started; /* id << 20 | attempt: sent to a node once */
    uint64_t n_started;
};

static uint64_t rnd(struct walk *w, uint64_t below)
{
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    w->seed ^= w->seed << 17;
    return (w->seed >> 11) % below;
}

struct pick {
    uint64_t at;
    struct cw_job *job;
};

static bool pick_one(struct cw_job *j, void *arg)
{
    struct pick *p = arg;
    p->job = j;
    return p->at-- > 0;
}

static struct cw_job *any_job(struct walk *w)
{
    size_t n = cw_model_n_jobs(w->f->m);
    if (n == 0)
        return NULL;
    struct pick p = {.at = rnd(w, n)};
    cw_model_each_job(w->f->m, pick_one, &p);
    return p.job;
}

/* What is charged somewhere; NULL when nothing is. */
static struct cw_part *any_part(struct walk *w)
{
    struct cw_node *n = cw_model_node_at(w->f->m, (uint32_t)rnd(w, cw_model_n_nodes(w->f->m)));
    uint64_t at = rnd(w, 4);
    struct cw_part *p = NULL;
    cw_list_each(pos, &n->parts) {
        p = cw_list_entry(pos, struct cw_part, on_node);
        if (at-- == 0)
            break;
    }
    return p;
}

static void step_submit(struct walk *w)
{
    static const char *const arrays[] = {NULL, NULL, "0-5", "1-3,7,9-20:3", "0-999999"};
    struct cw_job *pred = any_job(w), *ret;
    uint64_t pred_id = pred == NULL ? 0
                       : rnd(w, 2)  ? pred->id
                                    : cw_job_element_id(pred, rnd(w, pred->count));
    struct fix_job j = {
        .array = arrays[rnd(w, rnd(w, 20) == 0 ? 5 : 4)],
        .cores = 1 + (uint32_t)rnd(w, 3),
        .mem_bytes = rnd(w, 2) ? 100 : 0,
        .throttle = (uint32_t)rnd(w, 3),
        .time_limit_s = rnd(w, 3) == 0 ? 0 : 20 + rnd(w, 100),
        .hold = rnd(w, 10) == 0,
        .no_requeue = rnd(w, 5) == 0,
    };
    if (pred_id != 0 && rnd(w, 4) == 0) {
        j.deps[0].kind = 1 + (Cw__DependencyKind)rnd(w, 3);
        j.deps[0].id = pred_id;
    }
    fix_try_submit(w->f, &j, &ret, NULL);
}

static void step_grant(struct walk *w)
{
    struct cw_list *q = cw_model_queue(w->f->m);
    cw_list_each(pos, q) {
        struct cw_job *j = cw_list_entry(pos, struct cw_job, in_queue);
        if (!cw_job_eligible(j) || rnd(w, 3) == 0)
            continue;
        uint32_t all = cw_model_n_nodes(w->f->m), first = (uint32_t)rnd(w, all);
        size_t n_parts = rnd(w, 2) ? 1 : 1 + rnd(w, all);
        struct cw_node *nodes[4];
        for (size_t k = 0; k < n_parts; k++)
            nodes[k] = cw_model_node_at(w->f->m, (first + (uint32_t)k) % all);
        struct cw_attempt *a = fix_grant_on(w->f, j, nodes, n_parts, w->now);
        if (a == NULL)
            return;
        uint64_t key = a->id << 20 | a->attempt;
        assert_null(cw_idtable_set(w->started, key, w)); /* nothing starts twice */
        w->n_started++;
        return;
    }
}

static void step_report(struct walk *w)
{
    static const Cw__Cause causes[] = {1, 1, 1, 2, 3, 4, 5, 6, 7, 8};
    struct cw_part *p = any_part(w);
    if (p == NULL)
        return;
    const struct cw_attempt *a = p->attempt;
    const struct cw_node *n = p->node;
    if (rnd(w, 20) == 0)
        n = cw_model_node_at(w->f->m, (uint32_t)rnd(w, cw_model_n_nodes(w->f->m)));
    uint64_t id = a->id + (rnd(w, 20) == 0 ? rnd(w, 3) : 0);
    uint32_t attempt = a->attempt + (rnd(w, 10) == 0 ? 1 : 0) - (rnd(w, 10) == 0 ? 1 : 0);
    struct cw_attempt *named = cw_model_attempt(w->f->m, id);
    bool fenced = named == NULL || named->attempt != attempt;
    bool ghost = fenced && cw_model_attempt_numbered(w->f->m, id, attempt) != NULL;
    uint64_t before = w->f->n_effects;
    int r = 0;
    uint64_t what = rnd(w, 4);
    switch (what) {
    case 0: r = fix_part_started(w->f, n, id, attempt, w->now - (int64_t)rnd(w, 5 * NS)); break;
    case 1:
        r = fix_part_ended(w->f, n, id, attempt, causes[rnd(w, 10)], (uint32_t)rnd(w, 3),
                           rnd(w, 3) != 0, w->now);
        break;
    case 2: r = cw_model_emptied(w->f->m, n, id, attempt, w->now); break;
    default: cw_model_lost(w->f->m, p, "lost", rnd(w, 2), w->now, 2); return;
    }
    if (fenced && !(ghost && what != 0)) /* a ghost may prove itself gone, nothing else */
        assert_int_equal(r, -ESTALE);
    if (r != 0)
        assert_int_equal(w->f->n_effects, before);
}

static void step_control(struct walk *w)
{
    struct cw_job *j = any_job(w);
    if (j == NULL)
        return;
    struct cw_idset some = {0};
    cw_idset_add(&some, rnd(w, 8), 8 + rnd(w, 8));
    switch (rnd(w, 6)) {
    case 0: cw_model_cancel(w->f->m, j, NULL, 7, w->now); break;
    case 1:
    case 2: cw_model_cancel(w->f->m, j, &some, 7, w->now); break;
    case 3: cw_model_signal(w->f->m, j, NULL, 10); break;
    default: cw_model_hold(w->f->m, j, rnd(w, 3) == 0, 7, false, w->now); break;
    }
    cw_idset_fini(&some);
}

static void step_node(struct walk *w)
{
    struct cw_node *n = cw_model_node_at(w->f->m, (uint32_t)rnd(w, cw_model_n_nodes(w->f->m)));
    if (rnd(w, 2))
        cw_model_node_up(w->f->m, n, rnd(w, 2), w->now);
    else
        cw_model_node_drain(w->f->m, n, rnd(w, 2), "why", 7, w->now);
}

/* The daemon dies and comes back: the second model goes on in place of the first, over the same
 * rows. */
static void step_restart(struct walk *w)
{
    struct fix *g = cw_xmalloc(sizeof(*g));
    cw_autobuf struct cw_buf b = {0};
    fix_restore(w->f, g);
    if (!fix_same(w->f, g, &b) || cw_model_selfcheck(g->m, &b) != 0)
        fail_msg("after restart: %s", cw_buf_str(&b));
    fix_fini(w->f);
    free(w->f);
    w->f = g;
}

static void check(struct walk *w, uint64_t i)
{
    cw_autobuf struct cw_buf b = {0};
    if (cw_model_selfcheck(w->f->m, &b) != 0)
        fail_msg("step %llu: %s", (unsigned long long)i, cw_buf_str(&b));
}

static bool free_all(struct cw_job *j, void *arg)
{
    struct cw_job **ret = arg;
    *ret = j;
    return false;
}

static void drain(struct walk *w)
{
    for (struct cw_job *j; cw_model_n_jobs(w->f->m) > 0;) {
        cw_model_each_job(w->f->m, free_all, &j);
        uint64_t id = j->id;
        cw_model_cancel(w->f->m, j, NULL, 7, w->now);
        while ((j = cw_model_job(w->f->m, id)) != NULL) {
            struct cw_attempt *a = NULL;
            cw_list_each(pos, &j->attempts) {
                a = cw_list_entry(pos, struct cw_attempt, on_job);
                if (!cw_state_terminal(a->state))
                    break;
            }
            struct cw_part *p = a->parts;
            while (p->phase >= CW_PART_ENDED)
                p++;
            assert_int_equal(fix_part_ended(w->f, p->node, a->id, a->attempt,
                                            CW__CAUSE__CAUSE_CANCEL, 0, true, w->now),
                             0);
        }
    }
    for (uint32_t i = 0; i < cw_model_n_nodes(w->f->m); i++) {
        struct cw_node *n = cw_model_node_at(w->f->m, i);
        while (!cw_list_empty(&n->parts)) {
            const struct cw_attempt *a =
                cw_list_entry(n->parts.next, struct cw_part, on_node)->attempt;
            assert_int_equal(cw_model_emptied(w->f->m, n, a->id, a->attempt, w->now), 0);
        }
        assert_int_equal(n->n_free, n->n_cores);
        assert_int_equal(n->mem_free, n->mem_total);
    }
}

static void walk(uint64_t seed, uint64_t steps)
{
    struct walk w = {.seed = seed * 2654435761u + 1, .now = 1000 * NS};
    w.f = cw_xmalloc(sizeof(*w.f));
    fix_init(w.f);
    w.started = cw_idtable_create();
    fix_partition(w.f,
                  &(struct cw_partition){.name = "main", .is_default = true, .all_nodes = true});
    fix_node(w.f, "n1", 4, 1000, 0, NULL);
    fix_node(w.f, "n2", 8, 1000, 0, NULL);
    fix_node(w.f, "n3", 70, 1000, 0, NULL);
    for (uint64_t i = 0; i < steps; i++) {
        w.now += (int64_t)rnd(&w, 3 * NS);
        uint64_t k = rnd(&w, 100);
        if (k < 20 && cw_model_n_jobs(w.f->m) < 60)
            step_submit(&w);
        else if (k < 55)
            step_grant(&w);
        else if (k < 85)
            step_report(&w);
        else if (k < 90)
            step_control(&w);
        else if (k < 92)
            step_node(&w);
        else if (k < 93)
            step_restart(&w);
        else
            cw_model_deadlines(w.f->m, w.now);
        check(&w, i);
        fix_trail(w.f);
    }
    drain(&w);
    check(&w, steps);
    print_message("# seed %llu: %llu starts\n", (unsigned long long)seed,
                  (unsigned long long)w.n_started);
    assert_true(w.n_started > steps / 20);
    cw_idtable_destroy(w.started);
    fix_fini(w.f);
    free(w.f);
}

static void random_steps_keep_the_ledger_and_start_nothing_twice(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        walk(seed, 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps_keep_the_ledger_and_start_nothing_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
