/* The real crunctld with a scripted node and clients: what is acknowledged survives SIGKILL at
 * every named point, and nothing runs twice. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ctld/ctldrig_test.h"

struct client {
    struct rig *rig;
    size_t n;
    uint64_t ids[1000];
    atomic_bool done;
};

static void *submit_all(void *arg)
{
    struct client *c = arg;
    for (size_t i = 0; i < c->n; i++) {
        uint8_t key[16];
        randombytes_buf(key, sizeof key);
        c->ids[i] = rig_submit(c->rig, key);
    }
    c->done = true;
    return NULL;
}

static int ask_ids(struct rig *r, enum cw_kind kind, const ProtobufCMessage *m, uint32_t ms,
                   struct cw_arena *a, ProtobufCMessage **ret)
{
    struct cw_error err;
    int rc;
    for (int i = 0; i < 200; i++) {
        rc = rig_call(r, kind, m, ms, a, ret, &err);
        if (rc == 0)
            return 0;
        poll(NULL, 0, 20);
    }
    return rc;
}

struct waiting {
    struct rig *rig;
    const uint64_t *ids;
    size_t n;
    atomic_bool done;
    bool all_completed;
};

static void *wait_all(void *arg)
{
    struct waiting *w = arg;
    struct cw_arena *a = cw_arena_create();
    Cw__WaitRequest req = CW__WAIT_REQUEST__INIT;
    req.ids = cw_arena_alloc(a, w->n * sizeof *req.ids);
    for (; req.n_ids < w->n; req.n_ids++)
        req.ids[req.n_ids] = cw_arena_printf(a, "%llu", (unsigned long long)w->ids[req.n_ids]);
    req.has_timeout_ms = true;
    req.timeout_ms = 20000;
    ProtobufCMessage *m;
    if (ask_ids(w->rig, CW_KIND_WAIT, &req.base, 25000, a, &m) == 0) {
        const Cw__WaitReply *r = (const Cw__WaitReply *)m;
        w->all_completed = r->done && r->n_jobs == w->n;
        for (size_t i = 0; i < r->n_jobs; i++)
            w->all_completed = w->all_completed && r->jobs[i]->state == CW__STATE__COMPLETED;
    }
    cw_arena_destroy(a);
    w->done = true;
    return NULL;
}

static bool all_end_well(struct rig *r, const uint64_t *ids, size_t n)
{
    struct waiting w = {.rig = r, .ids = ids, .n = n};
    pthread_t t;
    pthread_create(&t, NULL, wait_all, &w);
    rig_node(r, 30000, &w.done);
    pthread_join(t, NULL);
    return w.all_completed;
}

static bool ledger_agrees(struct rig *r)
{
    struct cw_arena *a = cw_arena_create();
    Cw__CtlRequest req = CW__CTL_REQUEST__INIT;
    ProtobufCMessage *m;
    req.verb = (char *)"selfcheck";
    int rc = ask_ids(r, CW_KIND_CTL, &req.base, 3000, a, &m);
    cw_arena_destroy(a);
    return rc == 0;
}

/* Submits go on while the controller dies of this fault and comes back. */
static void die_at(const char *fault)
{
    struct rig *r = rig_create();
    struct client c = {.rig = r, .n = 4};
    pthread_t t;
    bool died = false;
    rig_start(r, NULL);
    rig_node_join(r, "n1");
    rig_node(r, 200, NULL);
    rig_kill(r);
    rig_start(r, fault);
    pthread_create(&t, NULL, submit_all, &c);
    while (!c.done || !died) {
        rig_node(r, 20, NULL);
        if (!rig_alive(r)) {
            died = true;
            rig_start(r, NULL);
        } else if (c.done && rig_ran_all(r) >= c.n) {
            rig_node(r, 300, NULL);
            if (rig_alive(r))
                break;
        }
    }
    pthread_join(t, NULL);
    assert_true(died);
    assert_true(all_end_well(r, c.ids, c.n));
    for (size_t i = 0; i < c.n; i++) {
        assert_int_equal(rig_ran(r, c.ids[i]), 1);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(c.ids[i], c.ids[k]);
    }
    assert_int_equal(rig_ran_all(r), c.n);
    assert_true(ledger_agrees(r));
    assert_int_equal(rig_stop(r), 0);
    rig_destroy(r);
}

#define POINT_TEST(name, fault)                                                                    \
    static void a_kill_at_##name##_loses_nothing_and_runs_nothing_twice(void **state)              \
    {                                                                                              \
        (void)state;                                                                               \
        die_at(fault);                                                                             \
    }
POINT_TEST(before_commit, "turn.before-commit:kill=2")
POINT_TEST(after_commit, "turn.after-commit:kill=2")
POINT_TEST(before_reply, "turn.before-reply:kill=2")
POINT_TEST(before_send_start, "effect.before-send-start:kill")
POINT_TEST(after_send_start, "effect.after-send-start:kill")
POINT_TEST(before_ack, "nodelink.before-ack:kill")

static void a_kill_right_after_recovery_loses_nothing(void **state)
{
    (void)state;
    struct rig *r = rig_create();
    uint8_t key[16] = {7};
    rig_start(r, NULL);
    uint64_t id = rig_submit(r, key);
    rig_kill(r);
    rig_start(r, "recover.done:kill");
    while (rig_alive(r))
        poll(NULL, 0, 5);
    rig_start(r, NULL);
    assert_int_equal(rig_submit(r, key), id);
    rig_node_join(r, "n1");
    assert_true(all_end_well(r, &id, 1));
    assert_int_equal(rig_ran(r, id), 1);
    assert_int_equal(rig_stop(r), 0);
    rig_destroy(r);
}

static void every_acknowledged_id_of_a_storm_exists_once(void **state)
{
    (void)state;
    enum { CLIENTS = 4, EACH = 60 };
    struct rig *r = rig_create();
    struct client *c = cw_xcalloc(CLIENTS, sizeof *c);
    pthread_t t[CLIENTS];
    rig_start(r, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        c[i].rig = r;
        c[i].n = EACH;
        pthread_create(&t[i], NULL, submit_all, &c[i]);
    }
    for (int kills = 0; kills < 5 && !(c[0].done && c[1].done && c[2].done && c[3].done); kills++) {
        poll(NULL, 0, 30 + (int)randombytes_uniform(100));
        rig_kill(r);
        rig_start(r, NULL);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(t[i], NULL);
    /* The queue holds exactly the acknowledged ids. */
    struct cw_arena *a = cw_arena_create();
    Cw__JobsRequest req = CW__JOBS_REQUEST__INIT;
    Cw__JobFilter filter = CW__JOB_FILTER__INIT;
    ProtobufCMessage *m;
    filter.has_include_finished = true;
    filter.include_finished = true;
    req.filter = &filter;
    assert_int_equal(ask_ids(r, CW_KIND_JOBS, &req.base, 5000, a, &m), 0);
    const Cw__JobsReply *reply = (const Cw__JobsReply *)m;
    assert_int_equal(reply->n_jobs, CLIENTS * EACH);
    for (int i = 0; i < CLIENTS; i++)
        for (int k = 0; k < EACH; k++) {
            size_t seen = 0;
            for (size_t j = 0; j < reply->n_jobs; j++)
                seen += reply->jobs[j]->id == c[i].ids[k];
            assert_int_equal(seen, 1);
        }
    cw_arena_destroy(a);
    assert_int_equal(rig_stop(r), 0);
    rig_destroy(r);
    free(c);
}

static Cw__State state_of(struct rig *r, uint64_t id)
{
    struct cw_arena *a = cw_arena_create();
    Cw__WhyRequest req = CW__WHY_REQUEST__INIT;
    ProtobufCMessage *m;
    req.id = cw_arena_printf(a, "%llu", (unsigned long long)id);
    assert_int_equal(ask_ids(r, CW_KIND_WHY, &req.base, 3000, a, &m), 0);
    Cw__State s = ((const Cw__WhyReply *)m)->job->state;
    cw_arena_destroy(a);
    return s;
}

static void a_node_that_was_lost_and_returns_kills_what_was_given_up(void **state)
{
    (void)state;
    struct rig *r = rig_create();
    uint8_t key[16] = {9};
    rig_start(r, NULL);
    rig_node_join(r, "n1");
    rig_node_slow(r);
    uint64_t id = rig_submit(r, key);
    while (rig_ran(r, id) == 0)
        rig_node(r, 20, NULL);
    rig_node(r, 200, NULL);
    assert_int_equal(state_of(r, id), CW__STATE__RUNNING);
    /* The node says nothing until it is given up (node_lost is 3 s); its job waits for another try.
     */
    int64_t end = cw_clock_mono_ns() + 15 * CW_NS_PER_S;
    while (state_of(r, id) == CW__STATE__RUNNING && cw_clock_mono_ns() < end)
        poll(NULL, 0, 50);
    assert_int_equal(state_of(r, id), CW__STATE__PENDING);
    assert_int_equal(rig_killed(r), 0);
    while (rig_killed(r) == 0 && cw_clock_mono_ns() < end)
        rig_node(r, 20, NULL);
    assert_int_equal(rig_killed(r), 1);
    while (rig_ran(r, id) < 2 && cw_clock_mono_ns() < end)
        rig_node(r, 20, NULL);
    assert_int_equal(rig_ran(r, id), 2); /* attempt 2, after the proof that attempt 1 is gone */
    assert_true(ledger_agrees(r));
    assert_int_equal(rig_stop(r), 0);
    rig_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_at_before_commit_loses_nothing_and_runs_nothing_twice),
        cmocka_unit_test(a_kill_at_after_commit_loses_nothing_and_runs_nothing_twice),
        cmocka_unit_test(a_kill_at_before_reply_loses_nothing_and_runs_nothing_twice),
        cmocka_unit_test(a_kill_at_before_send_start_loses_nothing_and_runs_nothing_twice),
        cmocka_unit_test(a_kill_at_after_send_start_loses_nothing_and_runs_nothing_twice),
        cmocka_unit_test(a_kill_at_before_ack_loses_nothing_and_runs_nothing_twice),
        cmocka_unit_test(a_kill_right_after_recovery_loses_nothing),
        cmocka_unit_test(a_node_that_was_lost_and_returns_kills_what_was_given_up),
        cmocka_unit_test(every_acknowledged_id_of_a_storm_exists_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
