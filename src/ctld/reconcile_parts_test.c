/* reconcile_parts_test.c: an attempt on two nodes: what each node is told, what its HELLO means in
 * each phase, and a controller that starts again in each of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "ctld/ctldworld_test.h"
#include "ctld/reconcile.h"
#include "ctld/taskstart.h"

struct outcome {
    size_t again, killed;
};

static void hold(Cw__JobRecord *rec)
{
    rec->spec->hold = true; /* placed by hand, not by the scheduler */
}

static struct cw_node *node(struct world *w, const char *name)
{
    return cw_model_node(w->c.model, name);
}

static void commit(struct world *w)
{
    world_commit(w);
    cw_autobuf struct cw_buf text = {0};
    if (cw_model_selfcheck(w->c.model, &text) != 0)
        fail_msg("%s", cw_buf_str(&text));
}

static uint64_t granted(struct world *w)
{
    static const uint64_t first = 1;
    struct cw_partgrant parts[2];
    Cw__Grant g[2];
    const char *names[] = {"n1", "n2"};
    struct cw_job *j = world_submit(w, hold);
    for (int k = 0; k < 2; k++) {
        cw__grant__init(&g[k]);
        g[k].node = (char *)names[k];
        g[k].cores = (char *)"0";
        g[k].cpus = (char *)"0,8";
        g[k].mem_bytes = 1u << 20;
        g[k].has_ntasks = true;
        g[k].ntasks = (uint32_t)k + 1;
        parts[k] = (struct cw_partgrant){world_node_named(w, names[k], 1), &first, &g[k]};
    }
    cw_model_grant(w->c.model, j, 0, parts, 2, cw_clock_real_ns());
    commit(w);
    return j->id;
}

static int started(struct world *w, const char *name, uint64_t id)
{
    Cw__TaskStarted s = CW__TASK_STARTED__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    key.id = id;
    key.attempt = 1;
    s.key = &key;
    s.start_ns = cw_clock_real_ns();
    int rc = cw_model_started(w->c.model, node(w, name), &s, s.start_ns);
    commit(w);
    return rc;
}

static int ended(struct world *w, const char *name, uint64_t id, Cw__Cause cause)
{
    Cw__TaskEnd e = CW__TASK_END__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    key.id = id;
    key.attempt = 1;
    e.key = &key;
    e.cause = cause;
    e.has_exit_code = cause == CW__CAUSE__CAUSE_EXIT;
    e.end_ns = cw_clock_real_ns();
    e.empty = true;
    int rc = cw_model_ended(w->c.model, node(w, name), &e, e.end_ns, 3);
    commit(w);
    return rc;
}

static void on_again(const struct cw_part *p, void *arg)
{
    (void)p;
    ((struct outcome *)arg)->again++;
}

/* HELLO of a node that has this task in that state (0: has it not). */
static struct outcome hello(struct world *w, const char *name, uint64_t id, int state)
{
    struct outcome o = {0};
    struct cw_arena *a = cw_arena_create();
    Cw__NodeHello h = CW__NODE_HELLO__INIT;
    Cw__NodeWelcome welcome = CW__NODE_WELCOME__INIT;
    Cw__TaskStatus status = CW__TASK_STATUS__INIT, *list[] = {&status};
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    key.id = id;
    key.attempt = 1;
    status.key = &key;
    status.state = (Cw__State)state;
    h.node = node(w, name)->rec;
    h.n_tasks = state != 0;
    h.tasks = list;
    cw_reconcile_hello(&w->c, node(w, name), &h, a, &welcome, on_again, &o);
    o.killed = welcome.n_kill;
    cw_arena_destroy(a);
    commit(w);
    return o;
}

static uint32_t n_free(struct world *w)
{
    return node(w, "n1")->n_free * 10 + node(w, "n2")->n_free;
}

static int setup(void **state)
{
    *state = world_create();
    cw_log_set_level(CW_LOG_ERROR);
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    commit(w);
    world_destroy(w);
    return 0;
}

static void each_node_is_told_its_number_and_all_nodes(void **state)
{
    struct world *w = *state;
    uint64_t id = granted(w);
    struct cw_arena *a = cw_arena_create();
    Cw__TaskStart *t;
    assert_int_equal(cw_taskstart_build(&w->c, node(w, "n1"), id, 1, a, &t, NULL), -ENOENT);
    assert_int_equal(cw_taskstart_build(&w->c, node(w, "n2"), id, 1, a, &t, NULL), 0);
    assert_int_equal(t->node, 1);
    assert_string_equal(t->grant->node, "n2");
    assert_int_equal(t->n_grants, 2);
    assert_string_equal(t->grants[0]->node, "n1");
    assert_int_equal(t->grants[1]->ntasks, 2);
    assert_int_equal(t->payload->n_argv, 0); /* it runs no leader */
    started(w, "n2", id);
    assert_int_equal(cw_taskstart_build(&w->c, node(w, "n2"), id, 1, a, &t, NULL), -ENOENT);
    assert_int_equal(cw_taskstart_build(&w->c, node(w, "n1"), id, 1, a, &t, NULL), 0);
    assert_int_equal(t->node, 0);
    assert_int_equal(t->payload->n_argv, 2);
    cw_arena_destroy(a);
}

static void in_the_launch_each_node_is_told_again_what_is_its_turn(void **state)
{
    struct world *w = *state;
    uint64_t id = granted(w);
    world_reopen(w);
    assert_int_equal(hello(w, "n1", id, 0).again, 0); /* not the head's turn */
    assert_int_equal(hello(w, "n2", id, 0).again, 1);
    assert_int_equal(started(w, "n2", id), 0);
    assert_int_equal(hello(w, "n1", id, 0).again, 1);
    world_reopen(w);
    assert_int_equal(hello(w, "n2", id, CW__STATE__RUNNING).again, 0);
    assert_int_equal(hello(w, "n1", id, 0).again, 1);
    assert_int_equal(started(w, "n1", id), 0);
    world_reopen(w);
    assert_int_equal(cw_model_attempt(w->c.model, id)->state, CW__STATE__RUNNING);
}

static void a_node_that_comes_back_without_its_part_ends_the_attempt(void **state)
{
    struct world *w = *state;
    uint64_t id = granted(w);
    started(w, "n2", id);
    started(w, "n1", id);
    world_reopen(w);
    hello(w, "n2", id, 0);
    struct cw_attempt *a = cw_model_attempt(w->c.model, id);
    assert_int_equal(a->state, CW__STATE__COMPLETING);
    assert_int_equal(n_free(w), 1); /* its own is free, the head's is not */
    assert_int_equal(hello(w, "n1", id, CW__STATE__RUNNING).again, 1); /* the kill */
    assert_int_equal(ended(w, "n1", id, CW__CAUSE__CAUSE_PEER), 0);
    assert_int_equal(n_free(w), 11);
    assert_non_null(cw_model_job(w->c.model, id)); /* requeued by the budget */
}

static void a_tear_down_goes_on_after_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t id = granted(w);
    started(w, "n2", id);
    started(w, "n1", id);
    ended(w, "n1", id, CW__CAUSE__CAUSE_EXIT);
    world_reopen(w);
    assert_int_equal(cw_model_attempt(w->c.model, id)->state, CW__STATE__COMPLETING);
    assert_int_equal(n_free(w), 10);
    assert_int_equal(hello(w, "n1", id, 0).again, 0);
    assert_int_equal(hello(w, "n2", id, CW__STATE__RUNNING).again, 1);
    hello(w, "n2", id, 0); /* it ended, and its word was lost with the node's journal */
    assert_null(cw_model_job(w->c.model, id));
    assert_int_equal(n_free(w), 11);
}

static void a_cancelled_launch_ends_on_nodes_that_never_heard_of_it(void **state)
{
    struct world *w = *state;
    uint64_t id = granted(w);
    cw_model_cancel(w->c.model, cw_model_job(w->c.model, id), NULL, 1000, cw_clock_real_ns());
    commit(w);
    world_reopen(w);
    assert_int_equal(n_free(w), 10);
    hello(w, "n1", id, 0);
    hello(w, "n2", id, 0);
    assert_null(cw_model_job(w->c.model, id));
    assert_int_equal(n_free(w), 11);
}

static void what_is_left_on_a_lost_node_is_killed_there_when_it_returns(void **state)
{
    struct world *w = *state;
    uint64_t id = granted(w);
    started(w, "n2", id);
    started(w, "n1", id);
    struct cw_attempt *a = cw_model_attempt(w->c.model, id);
    cw_model_lost(w->c.model, &a->parts[1], "silent", false, cw_clock_real_ns(), 3);
    commit(w);
    world_reopen(w);
    assert_int_equal(hello(w, "n2", id, CW__STATE__RUNNING).killed, 1); /* still going down */
    ended(w, "n1", id, CW__CAUSE__CAUSE_PEER);
    assert_int_equal(n_free(w), 10);
    world_reopen(w);
    assert_int_equal(hello(w, "n2", id, CW__STATE__RUNNING).killed, 1); /* a ghost by now */
    assert_int_equal(n_free(w), 10);
    hello(w, "n2", id, 0);
    assert_int_equal(n_free(w), 11);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(each_node_is_told_its_number_and_all_nodes),
        T(in_the_launch_each_node_is_told_again_what_is_its_turn),
        T(a_node_that_comes_back_without_its_part_ends_the_attempt),
        T(a_tear_down_goes_on_after_a_restart),
        T(a_cancelled_launch_ends_on_nodes_that_never_heard_of_it),
        T(what_is_left_on_a_lost_node_is_killed_there_when_it_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
