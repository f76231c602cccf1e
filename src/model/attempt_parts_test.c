/* Attempts on several nodes: all or none, from the order of the launch to the last proof. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/model_fixture.h"

#define S INT64_C(1000000000)
#define EXIT CW__CAUSE__CAUSE_EXIT
#define PEER CW__CAUSE__CAUSE_PEER

static const struct cw_partition main_part = {
    .name = "main", .is_default = true, .all_nodes = true};

struct gang {
    struct fix *f;
    struct cw_node *n[3];
    uint64_t id; /* of the element that was granted */
    struct cw_job *j;
    struct cw_attempt *a;
};

static void make(struct gang *g, const struct fix_job *j)
{
    static const char *const names[] = {"n1", "n2", "n3"};
    g->f = cw_xmalloc(sizeof(*g->f));
    fix_init(g->f);
    fix_partition(g->f, &main_part);
    for (size_t k = 0; k < 3; k++)
        g->n[k] = fix_node(g->f, names[k], 4, 1 << 30, 0, NULL);
    g->j = fix_submit(g->f, j);
    fix_trail(g->f);
    g->a = fix_grant_on(g->f, g->j, g->n, 3, 5);
    g->id = g->a->id;
}

static void sound(struct fix *f)
{
    struct cw_buf b = {0};
    if (cw_model_selfcheck(f->m, &b) != 0)
        fail_msg("%s", cw_buf_str(&b));
    cw_buf_fini(&b);
}

static void done(struct gang *g)
{
    sound(g->f);
    fix_fini(g->f);
    free(g->f);
}

/* A restart: the model goes, the rows stay. */
static void restart(struct gang *g)
{
    struct fix *next = cw_xmalloc(sizeof(*next));
    struct cw_buf b = {0};
    fix_restore(g->f, next);
    if (!fix_same(g->f, next, &b))
        fail_msg("after a restart: %s", cw_buf_str(&b));
    fix_fini(g->f);
    free(g->f);
    g->f = next;
    for (uint32_t k = 0; k < 3; k++)
        g->n[k] = cw_model_node_at(g->f->m, k);
    g->j = cw_model_job(g->f->m, g->id);
    g->a = cw_model_attempt(g->f->m, g->id);
    sound(g->f);
}

static int started(struct gang *g, int k, int64_t at)
{
    return fix_part_started(g->f, g->n[k], g->id, 1, at);
}

static int ended(struct gang *g, int k, Cw__Cause cause, uint32_t code, bool empty)
{
    return fix_part_ended(g->f, g->n[k], g->id, 1, cause, code, empty, 100 * S);
}

static void run(struct gang *g)
{
    started(g, 1, 1 * S);
    started(g, 2, 2 * S);
    assert_int_equal(started(g, 0, 3 * S), 0);
    fix_trail(g->f);
}

static Cw__AttemptRecord *stored(struct gang *g)
{
    struct cw_buf *b = cw_idtable_find(g->f->attempts, g->id << 20 | 1);
    Cw__AttemptRecord *r = cw__attempt_record__unpack(NULL, b->len, (uint8_t *)b->data);
    assert_non_null(r);
    return r;
}

static void expect_row(struct gang *g, Cw__State state, Cw__Cause cause)
{
    Cw__AttemptRecord *r = stored(g);
    assert_int_equal(r->state, state);
    assert_int_equal(r->cause, cause);
    cw__attempt_record__free_unpacked(r, NULL);
}

static void all_free(struct gang *g)
{
    for (int k = 0; k < 3; k++)
        assert_int_equal(g->n[k]->n_free, 4);
}

/* ---- launch ---------------------------------------------------------------------------------- */

static void the_leader_is_started_when_every_other_node_stands(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){.cores = 3});
    for (int k = 0; k < 3; k++)
        assert_int_equal(g.n[k]->n_free, 1); /* all or none */
    assert_string_equal(fix_trail(g.f), "put-attempt put-job event:start send-start send-start");
    assert_int_equal(g.f->n_start, 2);
    assert_false(cw_part_startable(&g.a->parts[0]));
    assert_int_equal(started(&g, 2, 1 * S), 0);
    assert_string_equal(fix_trail(g.f), "");
    assert_int_equal(started(&g, 1, 2 * S), 0);
    assert_string_equal(fix_trail(g.f), "put-attempt send-start"); /* stored, then sent */
    assert_true(cw_part_startable(&g.a->parts[0]));
    assert_int_equal(g.j->state, CW__STATE__STARTING);
    assert_int_equal(started(&g, 1, 2 * S), 0); /* twice */
    assert_string_equal(fix_trail(g.f), "");
    assert_int_equal(started(&g, 0, 3 * S), 0);
    assert_string_equal(fix_trail(g.f), "put-attempt event:running");
    assert_int_equal(g.j->state, CW__STATE__RUNNING);
    assert_int_equal(g.a->rec->start_ns, 3 * S);
    done(&g);
}

static void a_restart_in_the_launch_goes_on_where_it_was(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){0});
    started(&g, 1, 1 * S);
    restart(&g);
    assert_true(cw_part_startable(&g.a->parts[1])); /* the node says it again */
    assert_int_equal(started(&g, 1, 1 * S), 0);
    assert_int_equal(started(&g, 2, 1 * S), 0);
    restart(&g);
    assert_true(cw_part_startable(&g.a->parts[0]));
    assert_false(cw_part_startable(&g.a->parts[1]));
    assert_int_equal(started(&g, 0, 4 * S), 0);
    restart(&g);
    assert_int_equal(g.a->state, CW__STATE__RUNNING);
    assert_int_equal(g.a->parts[2].phase, CW_PART_STARTED);
    done(&g);
}

static void each_stage_of_a_launch_has_its_own_patience(void **state)
{
    (void)state;
    struct gang g;
    int64_t patience = CW_MODEL_LAUNCH_PATIENCE_S * S;
    make(&g, &(struct fix_job){0});
    assert_int_equal(cw_model_deadlines(g.f->m, 9 * S), patience + 5);
    started(&g, 1, 10 * S);
    assert_int_equal(cw_model_deadlines(g.f->m, 11 * S), patience + 5);
    started(&g, 2, 20 * S);
    assert_int_equal(cw_model_deadlines(g.f->m, 21 * S), patience + 20 * S);
    restart(&g);
    assert_int_equal(cw_model_deadlines(g.f->m, 21 * S), patience + 20 * S);
    done(&g);
}

static void a_refused_launch_frees_the_head_at_once_and_kills_the_others(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){0});
    started(&g, 2, 1 * S);
    fix_trail(g.f);
    assert_int_equal(ended(&g, 1, CW__CAUSE__CAUSE_LAUNCH_NODE, 0, true), 0);
    assert_string_equal(fix_trail(g.f), "put-attempt event:completing send-kill");
    assert_int_equal(g.n[0]->n_free, 4); /* it never heard of it */
    assert_int_equal(g.n[1]->n_free, 4);
    assert_int_equal(g.n[2]->n_free, 3);
    assert_int_equal(g.n[1]->launch_faults, 1);
    assert_false(cw_job_eligible(g.j)); /* E1: not before the last is proven */
    restart(&g);
    assert_int_equal(started(&g, 0, 2 * S), -ESTALE);
    assert_int_equal(ended(&g, 2, PEER, 0, true), 0);
    all_free(&g);
    assert_int_equal(g.n[2]->launch_faults, 0); /* not its fault */
    assert_true(cw_job_eligible(g.j));
    expect_row(&g, CW__STATE__LAUNCH_FAILED, CW__CAUSE__CAUSE_LAUNCH_NODE);
    assert_int_equal(fix_grant_on(g.f, g.j, g.n, 2, 200 * S)->attempt, 2);
    done(&g);
}

static void a_cancel_before_the_leader_starts_needs_no_word_of_the_head(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){0});
    started(&g, 1, 1 * S);
    fix_trail(g.f);
    assert_int_equal(cw_model_cancel(g.f->m, g.j, NULL, 7, 2 * S), 1);
    assert_string_equal(fix_trail(g.f), "put-attempt event:cancel send-kill send-kill");
    assert_int_equal(g.n[0]->n_free, 4);
    assert_int_equal(started(&g, 2, 2 * S), 0); /* crossed the kill */
    assert_string_equal(fix_trail(g.f), "");   /* no start of the leader */
    restart(&g);
    ended(&g, 1, CW__CAUSE__CAUSE_CANCEL, 0, true);
    ended(&g, 2, CW__CAUSE__CAUSE_CANCEL, 0, true);
    assert_int_equal(g.f->last_final_state, CW__STATE__CANCELLED);
    all_free(&g);
    done(&g);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void the_leaders_end_ends_the_attempt_when_all_nodes_are_empty(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){.cores = 2});
    run(&g);
    assert_int_equal(ended(&g, 0, EXIT, 3, true), 0);
    assert_string_equal(fix_trail(g.f), "put-attempt event:completing send-kill send-kill");
    assert_int_equal(g.j->state, CW__STATE__COMPLETING);
    assert_int_equal(g.n[0]->n_free, 4);
    assert_int_equal(g.n[1]->n_free, 2);
    assert_int_equal(g.f->n_done, 0);
    restart(&g);
    assert_int_equal(g.a->state, CW__STATE__COMPLETING);
    ended(&g, 2, PEER, 0, true);
    assert_int_equal(g.n[2]->n_free, 4);
    assert_int_equal(ended(&g, 2, PEER, 0, true), -ESTALE);
    fix_trail(g.f);
    ended(&g, 1, PEER, 0, true);
    assert_string_equal(fix_trail(g.f), "put-attempt done event:end put-job final cycle");
    assert_int_equal(g.f->last_final_state, CW__STATE__FAILED);
    all_free(&g);
    Cw__AttemptRecord *r = stored(&g);
    assert_int_equal(r->exit_code, 3);
    assert_int_equal(r->cause, EXIT);
    assert_int_equal(r->usage->cpu_user_ns, 15); /* five of each */
    assert_true(r->ledger_freed);
    cw__attempt_record__free_unpacked(r, NULL);
    done(&g);
}

/* What the nodes report in this order, and what the attempt is then. 0 ends. */
static const struct order_row {
    bool cancelled;
    struct {
        int node;
        Cw__Cause cause;
    } end[3];
    Cw__State state;
    Cw__Cause cause;
} orders[] = {
    {false, {{1, CW__CAUSE__CAUSE_OOM}, {0, PEER}, {2, PEER}}, CW__STATE__OUT_OF_MEMORY,
     CW__CAUSE__CAUSE_OOM},
    {false, {{0, EXIT}, {1, CW__CAUSE__CAUSE_OOM}, {2, PEER}}, CW__STATE__COMPLETED, EXIT},
    /* a box has no leader that could exit: what held it is gone */
    {false, {{2, EXIT}, {0, PEER}, {1, PEER}}, CW__STATE__NODE_FAIL, CW__CAUSE__CAUSE_NODE_LOST},
    {true, {{1, CW__CAUSE__CAUSE_CANCEL}, {2, PEER}, {0, CW__CAUSE__CAUSE_CANCEL}},
     CW__STATE__CANCELLED, CW__CAUSE__CAUSE_CANCEL},
    /* the leader was faster than our kill, although its word came last */
    {true, {{1, CW__CAUSE__CAUSE_CANCEL}, {2, CW__CAUSE__CAUSE_CANCEL}, {0, EXIT}},
     CW__STATE__COMPLETED, EXIT},
};

static void the_first_end_decides_the_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(orders); i++) {
        const struct order_row *r = &orders[i];
        struct gang g;
        make(&g, &(struct fix_job){.no_requeue = true});
        run(&g);
        if (r->cancelled)
            cw_model_cancel(g.f->m, g.j, NULL, 7, 50 * S);
        for (int k = 0; k < 3; k++)
            assert_int_equal(ended(&g, r->end[k].node, r->end[k].cause, 0, true), 0);
        if (g.f->last_final_state != r->state)
            fail_msg("row %zu: state %d", i, g.f->last_final_state);
        expect_row(&g, r->state, r->cause);
        all_free(&g);
        done(&g);
    }
}

/* X17: a node of several dies in the middle of a run. */
static void a_lost_node_ends_the_attempt_and_only_its_own_part_stays_charged(void **state)
{
    (void)state;
    static const char *const arrays[] = {NULL, "0-2"};
    for (size_t i = 0; i < 2; i++) {
        struct gang g;
        make(&g, &(struct fix_job){.array = arrays[i]});
        run(&g);
        cw_model_lost(g.f->m, &g.a->parts[1], "silent", false, 50 * S, 2);
        assert_string_equal(fix_trail(g.f), "put-attempt event:completing send-kill send-kill");
        ended(&g, 0, PEER, 0, true);
        restart(&g);
        assert_int_equal(cw_job_n_waiting(g.j), i == 0 ? 0 : 2);
        ended(&g, 2, PEER, 0, true);
        assert_int_equal(cw_job_n_waiting(g.j), i == 0 ? 1 : 3); /* it goes on without that node */
        assert_true(cw_job_eligible(g.j));
        assert_int_equal(g.n[1]->n_free, 3);
        assert_null(cw_model_attempt(g.f->m, g.id));
        restart(&g);
        assert_true(cw_job_eligible(g.j));
        assert_int_equal(g.n[1]->n_free, 3);
        struct cw_node *alive[] = {g.n[0], g.n[2]};
        assert_int_equal(fix_grant_on(g.f, g.j, alive, 2, 200 * S)->n_parts, 2);
        sound(g.f);
        assert_int_equal(cw_model_emptied(g.f->m, g.n[1], g.id, 1, 300 * S), 0);
        assert_int_equal(g.n[1]->n_free, 4);
        done(&g);
    }
}

static void no_new_try_while_a_living_node_holds_the_old_one(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){0});
    run(&g);
    cw_model_lost(g.f->m, &g.a->parts[0], "silent", false, 50 * S, 2);
    ended(&g, 1, PEER, 0, false); /* leftovers */
    ended(&g, 2, PEER, 0, true);
    assert_false(cw_job_eligible(g.j));
    restart(&g);
    assert_false(cw_job_eligible(g.j));
    assert_int_equal(g.n[1]->n_free, 3);
    assert_int_equal(cw_model_emptied(g.f->m, g.n[1], g.id, 1, 60 * S), 0);
    assert_true(cw_job_eligible(g.j));
    assert_int_equal(g.n[0]->n_free, 3);
    restart(&g);
    assert_true(cw_job_eligible(g.j));
    done(&g);
}

static void a_leftover_on_a_node_that_is_lost_later_is_not_waited_for(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){0});
    run(&g);
    cw_model_lost(g.f->m, &g.a->parts[0], "silent", true, 50 * S, 2);
    ended(&g, 1, PEER, 0, false);
    ended(&g, 2, PEER, 0, true);
    assert_false(cw_job_eligible(g.j));
    cw_model_lost(g.f->m, &g.a->parts[1], "silent", false, 60 * S, 2);
    assert_true(cw_job_eligible(g.j));
    assert_int_equal(g.n[1]->n_free, 3);
    restart(&g);
    assert_true(cw_job_eligible(g.j));
    done(&g);
}

static void a_cancel_while_it_goes_down_leaves_no_next_try(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){0});
    run(&g);
    cw_model_lost(g.f->m, &g.a->parts[2], "silent", false, 50 * S, 2);
    assert_int_equal(cw_model_cancel(g.f->m, g.j, NULL, 7, 51 * S), 1);
    restart(&g);
    ended(&g, 0, PEER, 0, true);
    ended(&g, 1, PEER, 0, true);
    assert_int_equal(g.f->n_final, 1);
    assert_int_equal(g.f->last_final_state, CW__STATE__CANCELLED);
    assert_int_equal(g.n[2]->n_free, 3);
    assert_int_equal(cw_model_emptied(g.f->m, g.n[2], g.id, 1, 60 * S), 0);
    done(&g);
}

static void patience_with_a_silent_node_ends_the_job_and_keeps_its_charge(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){.time_limit_s = 60});
    run(&g);
    assert_int_equal(cw_model_deadlines(g.f->m, 4 * S), 63 * S);
    cw_model_deadlines(g.f->m, 63 * S);
    assert_string_equal(fix_trail(g.f),
                        "put-attempt event:time-limit send-kill send-kill send-kill");
    ended(&g, 0, CW__CAUSE__CAUSE_TIME_LIMIT, 0, true);
    ended(&g, 2, CW__CAUSE__CAUSE_TIME_LIMIT, 0, true);
    assert_int_equal(g.f->n_final, 0);
    restart(&g);
    int64_t next = cw_model_deadlines(g.f->m, 200 * S);
    assert_int_equal(next, (200 + CW_MODEL_KILL_PATIENCE_S) * S);
    assert_int_equal(cw_model_deadlines(g.f->m, next), INT64_MAX);
    assert_int_equal(g.f->last_final_state, CW__STATE__TIMEOUT);
    assert_int_equal(g.n[0]->n_free, 4);
    assert_int_equal(g.n[1]->n_free, 3);
    restart(&g);
    assert_int_equal(ended(&g, 1, CW__CAUSE__CAUSE_TIME_LIMIT, 0, true), 0);
    all_free(&g);
    done(&g);
}

static void a_row_that_names_a_node_twice_is_refused(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){0});
    Cw__AttemptRecord *r = stored(&g);
    struct cw_attempt *a;
    struct cw_error err;
    fix_ended(g.f, g.id, 1, CW__CAUSE__CAUSE_LAUNCH_NODE, 0, true, 9);
    ended(&g, 1, PEER, 0, true);
    ended(&g, 2, PEER, 0, true);
    r->attempt = 2;
    free(r->more_grants[1]->node);
    r->more_grants[1]->node = cw_xstrdup("n1");
    assert_int_equal(cw_model_restore_attempt(g.f->m, r, &a, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "node n1 is in it twice"));
    cw__attempt_record__free_unpacked(r, NULL);
    all_free(&g);
    done(&g);
}

static void a_node_speaks_for_its_own_part_only(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){0});
    struct cw_node *other = fix_node(g.f, "n4", 4, 1 << 30, 0, NULL);
    uint64_t n = g.f->n_effects;
    assert_int_equal(fix_part_started(g.f, other, g.id, 1, 1 * S), -ESTALE);
    assert_int_equal(fix_part_ended(g.f, other, g.id, 1, EXIT, 0, true, 1 * S), -ESTALE);
    assert_int_equal(cw_model_emptied(g.f->m, other, g.id, 1, 1 * S), -ESTALE);
    assert_int_equal(cw_model_emptied(g.f->m, g.n[1], g.id, 1, 1 * S), -ESTALE);
    assert_int_equal(g.f->n_effects, n);
    done(&g);
}

static void a_signal_goes_to_every_node(void **state)
{
    (void)state;
    struct gang g;
    make(&g, &(struct fix_job){0});
    run(&g);
    assert_int_equal(cw_model_signal(g.f->m, g.j, NULL, 10), 1);
    assert_string_equal(fix_trail(g.f), "send-signal send-signal send-signal");
    done(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_leader_is_started_when_every_other_node_stands),
        cmocka_unit_test(a_restart_in_the_launch_goes_on_where_it_was),
        cmocka_unit_test(each_stage_of_a_launch_has_its_own_patience),
        cmocka_unit_test(a_refused_launch_frees_the_head_at_once_and_kills_the_others),
        cmocka_unit_test(a_cancel_before_the_leader_starts_needs_no_word_of_the_head),
        cmocka_unit_test(the_leaders_end_ends_the_attempt_when_all_nodes_are_empty),
        cmocka_unit_test(the_first_end_decides_the_state),
        cmocka_unit_test(a_lost_node_ends_the_attempt_and_only_its_own_part_stays_charged),
        cmocka_unit_test(no_new_try_while_a_living_node_holds_the_old_one),
        cmocka_unit_test(a_leftover_on_a_node_that_is_lost_later_is_not_waited_for),
        cmocka_unit_test(a_cancel_while_it_goes_down_leaves_no_next_try),
        cmocka_unit_test(patience_with_a_silent_node_ends_the_job_and_keeps_its_charge),
        cmocka_unit_test(a_row_that_names_a_node_twice_is_refused),
        cmocka_unit_test(a_node_speaks_for_its_own_part_only),
        cmocka_unit_test(a_signal_goes_to_every_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
