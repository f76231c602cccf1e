/* reconcile_test.c: every combination of what a node and the controller know of an attempt. */
#include "ctld/reconcile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "ctld/ctldworld_test.h"

struct outcome {
    size_t again, killed;
};

static void on_again(const struct cw_part *p, void *arg)
{
    (void)p;
    ((struct outcome *)arg)->again++;
}

/* HELLO of n1 that lists this task (state 0: no task at all). */
static struct outcome hello(struct world *w, uint64_t id, uint32_t attempt, int state)
{
    struct outcome o = {0};
    struct cw_arena *a = cw_arena_create();
    Cw__NodeHello h = CW__NODE_HELLO__INIT;
    Cw__NodeWelcome welcome = CW__NODE_WELCOME__INIT;
    Cw__TaskStatus status = CW__TASK_STATUS__INIT, *list[] = {&status};
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    struct cw_node *n = cw_model_node(w->c.model, "n1");
    key.id = id;
    key.attempt = attempt;
    status.key = &key;
    status.state = (Cw__State)state;
    h.node = n->rec;
    h.n_tasks = state != 0;
    h.tasks = list;
    cw_reconcile_hello(&w->c, n, &h, a, &welcome, on_again, &o);
    o.killed = welcome.n_kill;
    cw_arena_destroy(a);
    return o;
}

static uint64_t starting(struct world *w)
{
    world_node(w, 1);
    uint64_t id = world_submit(w, NULL)->id;
    world_commit(w);
    assert_non_null(cw_model_attempt(w->c.model, id));
    return id;
}

static uint64_t running(struct world *w)
{
    uint64_t id = starting(w);
    Cw__TaskStarted s = CW__TASK_STARTED__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    key.id = id;
    key.attempt = 1;
    s.key = &key;
    s.pid = 42;
    s.start_ns = cw_clock_real_ns();
    assert_int_equal(cw_model_started(w->c.model, cw_model_node(w->c.model, "n1"), &s, s.start_ns), 0);
    return id;
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
    cw_autobuf struct cw_buf text = {0};
    assert_int_equal(cw_model_selfcheck(w->c.model, &text), 0);
    world_commit(w);
    world_destroy(w);
    return 0;
}

static void starting_here_and_absent_there_is_started_again(void **state)
{
    struct world *w = *state;
    uint64_t id = starting(w);
    struct outcome o = hello(w, 0, 0, 0);
    assert_int_equal(o.again, 1);
    assert_int_equal(cw_model_attempt(w->c.model, id)->attempt, 1);
}

static void starting_here_and_running_there_is_left_alone(void **state)
{
    struct world *w = *state;
    uint64_t id = starting(w);
    struct outcome o = hello(w, id, 1, CW__STATE__RUNNING);
    assert_int_equal(o.again, 0);
    assert_int_equal(o.killed, 0);
}

static void a_cancelled_start_that_never_arrived_ends(void **state)
{
    struct world *w = *state;
    uint64_t id = starting(w);
    cw_model_cancel(w->c.model, cw_model_job(w->c.model, id), NULL, 1000, cw_clock_real_ns());
    struct outcome o = hello(w, 0, 0, 0);
    assert_int_equal(o.again, 0);
    assert_null(cw_model_job(w->c.model, id));
    assert_int_equal(cw_model_node(w->c.model, "n1")->n_free, 1);
}

static void a_kill_that_got_lost_is_sent_again(void **state)
{
    struct world *w = *state;
    uint64_t id = running(w);
    cw_model_cancel(w->c.model, cw_model_job(w->c.model, id), NULL, 1000, cw_clock_real_ns());
    assert_int_equal(hello(w, id, 1, CW__STATE__RUNNING).again, 1);
}

static void running_here_and_absent_there_is_lost_and_its_core_is_free(void **state)
{
    struct world *w = *state;
    uint64_t id = running(w);
    hello(w, 0, 0, 0);
    assert_null(cw_model_attempt(w->c.model, id));
    struct cw_job *j = cw_model_job(w->c.model, id);
    assert_non_null(j); /* requeued by the budget */
    assert_int_equal(j->next_attempt, 2);
    assert_int_equal(cw_model_node(w->c.model, "n1")->n_free, 1);
}

static void what_is_not_known_here_is_killed(void **state)
{
    struct world *w = *state;
    world_node(w, 1);
    assert_int_equal(hello(w, 4711, 1, CW__STATE__RUNNING).killed, 1);
    assert_int_equal(hello(w, 4711, 1, CW__STATE__FAILED).killed, 0);
}

static void an_older_attempt_is_killed_and_the_newer_one_started(void **state)
{
    struct world *w = *state;
    uint64_t id = running(w);
    hello(w, 0, 0, 0);
    world_commit(w); /* attempt 2 is granted */
    assert_int_equal(cw_model_attempt(w->c.model, id)->attempt, 2);
    struct outcome o = hello(w, id, 1, CW__STATE__RUNNING);
    assert_int_equal(o.killed, 1);
    assert_int_equal(o.again, 1);
}

static void what_was_given_up_is_killed_and_its_core_stays_held(void **state)
{
    struct world *w = *state;
    uint64_t id = running(w);
    cw_model_lost(w->c.model, &cw_model_attempt(w->c.model, id)->parts[0], "silent", false,
                  cw_clock_real_ns(), 3);
    assert_int_equal(hello(w, id, 1, CW__STATE__RUNNING).killed, 1);
    assert_int_equal(cw_model_node(w->c.model, "n1")->n_free, 0);
    hello(w, 0, 0, 0); /* the node says that it is gone */
    assert_int_equal(cw_model_node(w->c.model, "n1")->n_free, 1);
}

static void a_fenced_start_names_the_task_to_kill(void **state)
{
    struct world *w = *state;
    const Cw__TaskKey *kill = NULL;
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    Cw__TaskStarted s = CW__TASK_STARTED__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    world_node(w, 1);
    key.id = 99;
    key.attempt = 1;
    s.key = &key;
    m.started = &s;
    assert_int_equal(cw_reconcile_record(&w->c, cw_model_node(w->c.model, "n1"), &m, &kill),
                     -ESTALE);
    assert_int_equal(kill->id, 99);
}

static void an_end_that_comes_twice_changes_nothing(void **state)
{
    struct world *w = *state;
    uint64_t id = running(w);
    assert_int_equal(world_end(w, id, 1, 0), 0);
    world_commit(w);
    assert_int_equal(world_end(w, id, 1, 0), -ESTALE);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(starting_here_and_absent_there_is_started_again),
        T(starting_here_and_running_there_is_left_alone),
        T(a_cancelled_start_that_never_arrived_ends),
        T(a_kill_that_got_lost_is_sent_again),
        T(running_here_and_absent_there_is_lost_and_its_core_is_free),
        T(what_is_not_known_here_is_killed),
        T(an_older_attempt_is_killed_and_the_newer_one_started),
        T(what_was_given_up_is_killed_and_its_core_stays_held),
        T(a_fenced_start_names_the_task_to_kill),
        T(an_end_that_comes_twice_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
