/* Attempts: fence, causes, requeue, quarantine, time limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/model_fixture.h"

#define S INT64_C(1000000000)

static const struct cw_partition main_part = {
    .name = "main", .is_default = true, .all_nodes = true};

static struct cw_job *setup(struct fix *f, const struct fix_job *j)
{
    fix_init(f);
    fix_partition(f, &main_part);
    fix_node(f, "n1", 4, 1 << 30, 0, NULL);
    struct cw_job *ret = fix_submit(f, j);
    fix_grant(f, ret, cw_model_node(f->m, "n1"), 5);
    return ret;
}

static Cw__AttemptRecord *stored(struct fix *f, uint64_t id, uint32_t attempt)
{
    struct cw_buf *b = cw_idtable_find(f->attempts, id << 20 | attempt);
    return b == NULL ? NULL : cw__attempt_record__unpack(NULL, b->len, (uint8_t *)b->data);
}

static void assert_sound(struct fix *f)
{
    struct cw_buf b = {0};
    if (cw_model_selfcheck(f->m, &b) != 0)
        fail_msg("%s", cw_buf_str(&b));
    cw_buf_fini(&b);
}

static void a_grant_is_stored_before_the_start_is_sent(void **state)
{
    (void)state;
    struct fix f;
    struct cw_job *j = setup(&f, &(struct fix_job){.cores = 3});
    const char *t = fix_trail(&f);
    assert_string_equal(strstr(t, "put-attempt"), "put-attempt put-job event:start send-start");
    assert_int_equal(cw_model_node(f.m, "n1")->n_free, 1);
    assert_int_equal(j->state, CW__STATE__STARTING);
    assert_sound(&f);
    fix_fini(&f);
}

/* C is what the node reports; K what we asked for before, 0 nothing. */
static const struct end_row {
    Cw__Cause kill, reported;
    uint32_t code;
    Cw__State state;
    Cw__Cause cause;
} ends[] = {
    {0, CW__CAUSE__CAUSE_EXIT, 0, CW__STATE__COMPLETED, CW__CAUSE__CAUSE_EXIT},
    {0, CW__CAUSE__CAUSE_EXIT, 3, CW__STATE__FAILED, CW__CAUSE__CAUSE_EXIT},
    {0, CW__CAUSE__CAUSE_SIGNAL, 0, CW__STATE__FAILED, CW__CAUSE__CAUSE_SIGNAL},
    {0, CW__CAUSE__CAUSE_OOM, 0, CW__STATE__OUT_OF_MEMORY, CW__CAUSE__CAUSE_OOM},
    {0, CW__CAUSE__CAUSE_TIME_LIMIT, 0, CW__STATE__TIMEOUT, CW__CAUSE__CAUSE_TIME_LIMIT},
    {0, CW__CAUSE__CAUSE_LAUNCH_USER, 0, CW__STATE__LAUNCH_FAILED, CW__CAUSE__CAUSE_LAUNCH_USER},
    {CW__CAUSE__CAUSE_CANCEL, CW__CAUSE__CAUSE_CANCEL, 0, CW__STATE__CANCELLED,
     CW__CAUSE__CAUSE_CANCEL},
    {CW__CAUSE__CAUSE_CANCEL, CW__CAUSE__CAUSE_SIGNAL, 0, CW__STATE__CANCELLED,
     CW__CAUSE__CAUSE_CANCEL},
    {CW__CAUSE__CAUSE_CANCEL, CW__CAUSE__CAUSE_EXIT, 0, CW__STATE__COMPLETED,
     CW__CAUSE__CAUSE_EXIT},
    {CW__CAUSE__CAUSE_CANCEL, CW__CAUSE__CAUSE_OOM, 0, CW__STATE__OUT_OF_MEMORY,
     CW__CAUSE__CAUSE_OOM},
    {CW__CAUSE__CAUSE_CANCEL, CW__CAUSE__CAUSE_NODE_LOST, 0, CW__STATE__CANCELLED,
     CW__CAUSE__CAUSE_CANCEL},
    {CW__CAUSE__CAUSE_CANCEL, CW__CAUSE__CAUSE_LAUNCH_NODE, 0, CW__STATE__CANCELLED,
     CW__CAUSE__CAUSE_CANCEL},
    {CW__CAUSE__CAUSE_TIME_LIMIT, CW__CAUSE__CAUSE_CANCEL, 0, CW__STATE__TIMEOUT,
     CW__CAUSE__CAUSE_TIME_LIMIT},
};

static void the_state_comes_from_the_cause_and_our_own_kill_wins(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(ends); i++) {
        const struct end_row *r = &ends[i];
        struct fix f;
        struct cw_job *j = setup(&f, &(struct fix_job){.time_limit_s = 60});
        uint64_t id = j->id;
        assert_int_equal(fix_started(&f, id, 1, 10), 0);
        if (r->kill == CW__CAUSE__CAUSE_CANCEL)
            assert_int_equal(cw_model_cancel(f.m, j, NULL, 7, 11), 1);
        if (r->kill == CW__CAUSE__CAUSE_TIME_LIMIT)
            cw_model_deadlines(f.m, 61 * S);
        fix_trail(&f);
        assert_int_equal(fix_ended(&f, id, 1, r->reported, r->code, true, 70 * S), 0);
        assert_string_equal(fix_trail(&f), "put-attempt done event:end put-job final cycle");
        if (f.last_final_state != r->state)
            fail_msg("row %zu: state %d", i, f.last_final_state);
        Cw__AttemptRecord *a = stored(&f, id, 1);
        assert_int_equal(a->cause, r->cause);
        assert_int_equal(a->state, r->state);
        assert_true(a->ledger_freed);
        assert_int_equal(a->usage->cpu_user_ns, 5);
        cw__attempt_record__free_unpacked(a, NULL);
        assert_int_equal(cw_model_node(f.m, "n1")->n_free, 4);
        assert_null(cw_model_attempt(f.m, id));
        assert_sound(&f);
        fix_fini(&f);
    }
}

static void reports_of_another_attempt_change_nothing(void **state)
{
    (void)state;
    struct fix f;
    struct cw_job *j = setup(&f, &(struct fix_job){0});
    uint64_t id = j->id, n = f.n_effects;
    assert_int_equal(fix_started(&f, id, 2, 9), -ESTALE);
    assert_int_equal(fix_started(&f, id + 50, 1, 9), -ESTALE);
    assert_int_equal(fix_ended(&f, id, 2, CW__CAUSE__CAUSE_EXIT, 0, true, 9), -ESTALE);
    assert_int_equal(fix_ended(&f, id, 0, CW__CAUSE__CAUSE_EXIT, 0, true, 9), -ESTALE);
    assert_int_equal(fix_emptied(&f, id, 1, 9), -ESTALE);
    assert_int_equal(f.n_effects, n);
    assert_int_equal(fix_started(&f, id, 1, 9), 0);
    n = f.n_effects;
    assert_int_equal(fix_started(&f, id, 1, 9), 0); /* twice: acknowledged, nothing more */
    assert_int_equal(f.n_effects, n);
    assert_int_equal(fix_ended(&f, id, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 9), 0);
    n = f.n_effects;
    assert_int_equal(fix_ended(&f, id, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 9), -ESTALE);
    assert_int_equal(f.n_effects, n);
    fix_fini(&f);
}

/* E1: an element must not start again before its old attempt's cores are free. */
static void a_requeued_element_waits_for_its_old_ledger(void **state)
{
    (void)state;
    static const char *const arrays[] = {NULL, "0-2"};
    for (size_t i = 0; i < 2; i++) {
        struct fix f;
        struct cw_job *j = setup(&f, &(struct fix_job){.array = arrays[i], .cores = 1});
        struct cw_node *n = cw_model_node(f.m, "n1");
        while (fix_grant(&f, j, n, 5) != NULL)
            ;
        uint64_t id = cw_job_element_id(j, j->count - 1);
        uint32_t free_cores = n->n_free;
        assert_int_equal(fix_ended(&f, id, 1, CW__CAUSE__CAUSE_LAUNCH_NODE, 0, false, 9), 0);
        assert_false(cw_job_eligible(j));
        assert_int_equal(n->n_free, free_cores);
        assert_sound(&f);
        assert_int_equal(fix_ended(&f, id, 1, CW__CAUSE__CAUSE_LAUNCH_NODE, 0, false, 9), -ESTALE);
        struct fix g;
        struct cw_buf b = {0};
        fix_restore(&f, &g);
        if (!fix_same(&f, &g, &b))
            fail_msg("%s", cw_buf_str(&b));
        assert_false(cw_job_eligible(cw_model_job(g.m, id)));
        assert_sound(&g);
        fix_fini(&g);
        assert_int_equal(fix_emptied(&f, id, 1, 9), 0);
        assert_true(cw_job_eligible(j));
        assert_int_equal(n->n_free, free_cores + 1);
        assert_sound(&f);
        assert_int_equal(fix_grant(&f, j, n, 10)->attempt, 2);
        assert_int_equal(fix_started(&f, id, 1, 11), -ESTALE);
        assert_int_equal(fix_started(&f, id, 2, 11), 0);
        fix_fini(&f);
    }
}

static void a_nodes_fault_is_retried_until_the_budget_is_spent(void **state)
{
    (void)state;
    struct fix f;
    struct cw_job *j = setup(&f, &(struct fix_job){0});
    uint64_t id = j->id;
    for (uint32_t k = 1; k <= 2; k++) {
        fix_trail(&f);
        assert_int_equal(fix_ended(&f, id, k, CW__CAUSE__CAUSE_LAUNCH_NODE, 0, true, 9), 0);
        assert_string_equal(fix_trail(&f),
                            "put-attempt done event:end event:requeue put-job cycle");
        assert_int_equal(fix_grant(&f, j, cw_model_node(f.m, "n1"), 10)->attempt, k + 1);
    }
    cw_model_lost(f.m, &cw_model_attempt(f.m, id)->parts[0], "silent for 30 s", true, 12, 2);
    assert_int_equal(f.n_final, 1);
    assert_int_equal(f.last_final_state, CW__STATE__NODE_FAIL);
    fix_fini(&f);
}

static void no_requeue_fails_at_the_first_nodes_fault(void **state)
{
    (void)state;
    struct fix f;
    struct cw_job *j = setup(&f, &(struct fix_job){.no_requeue = true});
    fix_ended(&f, j->id, 1, CW__CAUSE__CAUSE_LAUNCH_NODE, 0, true, 9);
    assert_int_equal(f.last_final_state, CW__STATE__LAUNCH_FAILED);
    fix_fini(&f);
}

static void a_leftover_keeps_its_cores_while_the_job_ends(void **state)
{
    (void)state;
    struct fix f, g;
    struct cw_job *j = setup(&f, &(struct fix_job){.cores = 2});
    uint64_t id = j->id;
    struct cw_node *n = cw_model_node(f.m, "n1");
    assert_int_equal(fix_ended(&f, id, 1, CW__CAUSE__CAUSE_EXIT, 0, false, 9), 0);
    assert_int_equal(f.n_final, 1);
    assert_null(cw_model_job(f.m, id));
    assert_int_equal(n->n_free, 2);
    assert_null(cw_model_attempt(f.m, id)->job);
    assert_sound(&f);
    fix_restore(&f, &g);
    assert_int_equal(cw_model_node(g.m, "n1")->n_free, 2);
    assert_int_equal(fix_emptied(&g, id, 1, 10), 0);
    assert_int_equal(cw_model_node(g.m, "n1")->n_free, 4);
    fix_fini(&g);
    fix_trail(&f);
    assert_int_equal(fix_ended(&f, id, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 9), 0);
    assert_string_equal(fix_trail(&f), "put-attempt event:emptied cycle");
    assert_int_equal(n->n_free, 4);
    assert_int_equal(fix_emptied(&f, id, 1, 10), -ESTALE);
    assert_int_equal(f.n_done, 1);
    assert_sound(&f);
    fix_fini(&f);
}

static void a_lost_node_keeps_the_charge_and_lets_the_element_go_on(void **state)
{
    (void)state;
    struct fix f;
    struct cw_job *j = setup(&f, &(struct fix_job){0});
    struct cw_node *n = cw_model_node(f.m, "n1");
    struct cw_attempt *a = cw_model_attempt(f.m, j->id);
    cw_model_lost(f.m, &a->parts[0], "silent", false, 9, 2);
    assert_int_equal(n->n_free, 3);
    assert_true(cw_job_eligible(j));
    assert_int_equal(j->state, CW__STATE__PENDING);
    assert_null(cw_model_attempt(f.m, j->id));
    assert_ptr_equal(cw_model_attempt_numbered(f.m, j->id, 1), a);
    uint64_t e = f.n_effects;
    cw_model_lost(f.m, &a->parts[0], "silent", false, 9, 2);
    assert_int_equal(f.n_effects, e);
    struct fix g;
    fix_restore(&f, &g);
    assert_int_equal(cw_model_node(g.m, "n1")->n_free, 3);
    assert_true(cw_job_eligible(cw_model_job(g.m, j->id)));
    fix_fini(&g);
    assert_int_equal(fix_emptied(&f, j->id, 1, 10), 0);
    assert_int_equal(fix_emptied(&f, j->id, 1, 10), -ESTALE);
    assert_int_equal(n->n_free, 4);
    assert_sound(&f);
    fix_fini(&f);
}

static void a_time_limit_kills_once_and_patience_ends_in_quarantine(void **state)
{
    (void)state;
    struct fix f;
    struct cw_job *j = setup(&f, &(struct fix_job){.time_limit_s = 60});
    uint64_t id = j->id;
    assert_true(cw_model_deadlines(f.m, 500 * S) >
                3000 * S); /* counted from the start of the task */
    fix_started(&f, id, 1, 600 * S);
    assert_int_equal(cw_model_deadlines(f.m, 601 * S), 660 * S);
    fix_trail(&f);
    int64_t next = cw_model_deadlines(f.m, 660 * S);
    assert_int_equal(next, (660 + CW_MODEL_KILL_PATIENCE_S) * S);
    assert_string_equal(fix_trail(&f), "put-attempt event:time-limit send-kill");
    assert_int_equal(cw_model_deadlines(f.m, 661 * S), next);
    assert_string_equal(fix_trail(&f), "");
    struct fix g;
    fix_restore(&f, &g);
    assert_int_equal(cw_model_deadlines(g.m, 700 * S), (700 + CW_MODEL_KILL_PATIENCE_S) * S);
    fix_fini(&g);
    assert_int_equal(cw_model_deadlines(f.m, next), INT64_MAX);
    assert_int_equal(f.last_final_state, CW__STATE__TIMEOUT);
    assert_int_equal(cw_model_node(f.m, "n1")->n_free, 3);
    assert_int_equal(fix_ended(&f, id, 1, CW__CAUSE__CAUSE_TIME_LIMIT, 0, true, 2000 * S), 0);
    assert_int_equal(cw_model_node(f.m, "n1")->n_free, 4);
    assert_sound(&f);
    fix_fini(&f);
}

static void a_launch_that_takes_for_ever_is_the_nodes_fault(void **state)
{
    (void)state;
    struct fix f, g;
    struct cw_job *j = setup(&f, &(struct fix_job){.time_limit_s = 60});
    int64_t end = CW_MODEL_LAUNCH_PATIENCE_S * S + 5;
    assert_int_equal(cw_model_deadlines(f.m, 100 * S), end);
    fix_restore(&f, &g);
    assert_int_equal(cw_model_deadlines(g.m, 100 * S), end);
    fix_fini(&g);
    fix_trail(&f);
    cw_model_deadlines(f.m, end);
    assert_string_equal(fix_trail(&f), "put-attempt event:launch-limit send-kill");
    assert_int_equal(fix_ended(&f, j->id, 1, CW__CAUSE__CAUSE_CANCEL, 0, true, end), 0);
    assert_true(cw_job_eligible(j)); /* requeued */
    assert_int_equal(fix_grant(&f, j, cw_model_node(f.m, "n1"), end)->attempt, 2);
    fix_fini(&f);
}

static void launches_of_several_jobs_that_fail_in_a_row_drain_the_node(void **state)
{
    (void)state;
    struct fix f;
    struct cw_job *j = setup(&f, &(struct fix_job){.array = "0-9"});
    struct cw_node *n = cw_model_node(f.m, "n1");
    for (uint64_t k = 0; k < 5; k++) { /* of one job only: it may be the job */
        struct cw_attempt *t = cw_list_entry(n->parts.next, struct cw_part, on_node)->attempt;
        assert_int_equal(fix_ended(&f, t->id, t->attempt, CW__CAUSE__CAUSE_LAUNCH_NODE, 0, true, 9),
                         0);
        fix_grant(&f, j, n, 9);
    }
    assert_false(n->rec->drained);
    assert_int_equal(n->launch_faults, 5);
    cw_model_cancel(f.m, j, NULL, 0, 9);
    struct cw_attempt *a = cw_list_entry(n->parts.next, struct cw_part, on_node)->attempt;
    fix_ended(&f, a->id, a->attempt, CW__CAUSE__CAUSE_CANCEL, 0, true, 9);
    struct cw_job *other = fix_submit(&f, &(struct fix_job){0});
    fix_grant(&f, other, n, 9);
    fix_ended(&f, other->id, 1, CW__CAUSE__CAUSE_LAUNCH_NODE, 0, true, 9);
    assert_true(n->rec->drained);
    assert_non_null(strstr(n->rec->drain_reason, "launches in a row failed"));
    fix_fini(&f);
}

static void the_earliest_of_many_deadlines_comes_first(void **state)
{
    (void)state;
    enum { N = 200 };
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    struct cw_node *n = fix_node(&f, "n1", N, 1 << 30, 0, NULL);
    for (uint32_t i = 0; i < N; i++) {
        struct cw_job *j = fix_submit(&f, &(struct fix_job){.time_limit_s = 1 + (i * 37) % N});
        fix_grant(&f, j, n, 1);
        fix_started(&f, j->id, 1, 0);
    }
    for (uint32_t i = 0; i < N; i += 3)
        fix_ended(&f, 1 + i, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 1);
    int64_t last = 0, next = cw_model_deadlines(f.m, 0);
    while (next != INT64_MAX && next < CW_MODEL_KILL_PATIENCE_S * S) {
        assert_true(next > last);
        last = next;
        next = cw_model_deadlines(f.m, next);
    }
    assert_sound(&f);
    fix_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_is_stored_before_the_start_is_sent),
        cmocka_unit_test(the_state_comes_from_the_cause_and_our_own_kill_wins),
        cmocka_unit_test(reports_of_another_attempt_change_nothing),
        cmocka_unit_test(a_requeued_element_waits_for_its_old_ledger),
        cmocka_unit_test(a_nodes_fault_is_retried_until_the_budget_is_spent),
        cmocka_unit_test(no_requeue_fails_at_the_first_nodes_fault),
        cmocka_unit_test(a_leftover_keeps_its_cores_while_the_job_ends),
        cmocka_unit_test(a_lost_node_keeps_the_charge_and_lets_the_element_go_on),
        cmocka_unit_test(a_time_limit_kills_once_and_patience_ends_in_quarantine),
        cmocka_unit_test(a_launch_that_takes_for_ever_is_the_nodes_fault),
        cmocka_unit_test(launches_of_several_jobs_that_fail_in_a_row_drain_the_node),
        cmocka_unit_test(the_earliest_of_many_deadlines_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
