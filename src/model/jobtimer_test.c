/* Begin, deadline, back-off, and dependencies that depend on time; all with a clock of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/model.h"
#include "model/model_fixture.h"

#define S INT64_C(1000000000)

static const struct cw_partition main_part = {.name = "main", .is_default = true, .all_nodes = true};

static void begin(struct fix *f)
{
    fix_init(f);
    fix_partition(f, &main_part);
}

static void a_job_is_parked_until_its_begin(void **state)
{
    (void)state;
    struct fix f;
    begin(&f);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.begin_ns = 50 * S});
    assert_true(j->parked);
    assert_int_equal(cw_job_reason(j), CW_REASON_BEGIN);
    assert_int_equal(cw_model_deadlines(f.m, 49 * S), 50 * S);
    assert_true(j->parked);
    assert_int_equal(cw_model_deadlines(f.m, 50 * S), INT64_MAX);
    assert_false(j->parked);
    assert_true(cw_job_eligible(j));
    fix_fini(&f);
}

static void the_earliest_of_many_comes_first(void **state)
{
    (void)state;
    enum { N = 500 };
    struct fix f;
    struct cw_job *j[N];
    begin(&f);
    for (int i = 0; i < N; i++)
        j[i] = fix_submit(&f, &(struct fix_job){.begin_ns = (1 + (i * 7919) % N) * S});
    for (int i = 0; i < N; i += 3) /* some leave out of order */
        cw_model_cancel(f.m, j[i], NULL, 0, 0);
    for (int64_t t = 0; t <= N; t++) {
        int64_t next = cw_model_deadlines(f.m, t * S);
        assert_true(next > t * S);
    }
    assert_int_equal(f.m->n_timers, 0);
    for (int i = 0; i < N; i++)
        if (i % 3 != 0)
            assert_true(cw_job_eligible(j[i]));
    fix_fini(&f);
}

static void at_the_deadline_what_waits_ends_and_what_runs_is_killed(void **state)
{
    (void)state;
    struct fix f;
    begin(&f);
    struct cw_node *n = fix_node(&f, "n1", 4, UINT64_C(1) << 30, 0, NULL);
    fix_submit(&f, &(struct fix_job){.deadline_ns = 10 * S, .hold = true});
    struct cw_job *runs = fix_submit(&f, &(struct fix_job){.deadline_ns = 20 * S});
    struct cw_attempt *a = fix_grant(&f, runs, n, 2 * S);
    assert_int_equal(fix_started(&f, a->id, 1, 3 * S), 0);
    cw_model_deadlines(f.m, 10 * S);
    assert_int_equal(f.n_final, 1);
    assert_int_equal(f.last_final_state, CW__STATE__DEADLINE);
    cw_model_deadlines(f.m, 20 * S);
    assert_int_equal(a->rec->kill_cause, CW__CAUSE__CAUSE_DEADLINE);
    assert_int_equal(fix_ended(&f, a->id, 1, CW__CAUSE__CAUSE_SIGNAL, 15, true, 21 * S), 0);
    assert_int_equal(f.last_final_state, CW__STATE__DEADLINE);
    fix_fini(&f);
}

static void retries_and_node_faults_have_budgets_of_their_own(void **state)
{
    (void)state;
    struct fix f;
    begin(&f);
    struct cw_node *n = fix_node(&f, "n1", 4, UINT64_C(1) << 30, 0, NULL);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.retries = 1});
    uint64_t id = j->id;
    static const Cw__Cause causes[] = {CW__CAUSE__CAUSE_NODE_LOST, CW__CAUSE__CAUSE_EXIT,
                                       CW__CAUSE__CAUSE_NODE_LOST, CW__CAUSE__CAUSE_EXIT};
    for (uint32_t i = 0; i < CW_ARRAY_LEN(causes); i++) {
        assert_int_equal(f.n_final, 0);
        struct cw_attempt *a = fix_grant(&f, j, n, i * S);
        assert_int_equal(a->attempt, i + 1);
        assert_int_equal(fix_started(&f, id, i + 1, i * S), 0);
        assert_int_equal(fix_ended(&f, id, i + 1, causes[i], 1, true, i * S), 0);
    }
    assert_int_equal(f.n_final, 1);
    assert_int_equal(f.last_final_state, CW__STATE__FAILED);
    fix_fini(&f);
}

static void the_delay_before_a_retry_doubles(void **state)
{
    (void)state;
    struct fix f;
    begin(&f);
    struct cw_node *n = fix_node(&f, "n1", 4, UINT64_C(1) << 30, 0, NULL);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.retries = 5, .retry_delay_s = 10});
    int64_t now = 100 * S;
    for (uint32_t i = 1; i <= 3; i++) {
        fix_grant(&f, j, n, now);
        assert_int_equal(fix_started(&f, j->id, i, now), 0);
        assert_int_equal(fix_ended(&f, j->id, i, CW__CAUSE__CAUSE_EXIT, 1, true, now), 0);
        assert_int_equal(j->begin_ns - now, (10 << (i - 1)) * S);
        assert_int_equal(cw_job_reason(j), CW_REASON_BEGIN);
        struct fix restored;
        struct cw_buf text = {0};
        fix_restore(&f, &restored);
        if (!fix_same(&f, &restored, &text))
            fail_msg("%s", cw_buf_str(&text));
        cw_buf_fini(&text);
        fix_fini(&restored);
        now = j->begin_ns;
        cw_model_deadlines(f.m, now);
    }
    fix_fini(&f);
}

static void a_requeued_attempt_begins_again_and_a_cancel_undoes_that(void **state)
{
    (void)state;
    struct fix f;
    begin(&f);
    struct cw_node *n = fix_node(&f, "n1", 4, UINT64_C(1) << 30, 0, NULL);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){0});
    uint64_t id = j->id;
    fix_grant(&f, j, n, S);
    assert_int_equal(fix_started(&f, id, 1, S), 0);
    assert_int_equal(cw_model_requeue(f.m, j, NULL, false, 7, 2 * S), 1);
    assert_int_equal(fix_ended(&f, id, 1, CW__CAUSE__CAUSE_SIGNAL, 15, true, 3 * S), 0);
    assert_true(cw_job_eligible(j));
    fix_grant(&f, j, n, 4 * S);
    assert_int_equal(fix_started(&f, id, 2, 4 * S), 0);
    assert_int_equal(cw_model_requeue(f.m, j, NULL, true, 7, 5 * S), 1);
    assert_int_equal(cw_model_cancel(f.m, j, NULL, 7, 5 * S), 1);
    assert_int_equal(fix_ended(&f, id, 2, CW__CAUSE__CAUSE_SIGNAL, 15, true, 6 * S), 0);
    assert_int_equal(f.n_final, 1);
    assert_int_equal(f.last_final_state, CW__STATE__CANCELLED);
    fix_fini(&f);
}

static void after_counts_its_delay_from_the_start(void **state)
{
    (void)state;
    struct fix f;
    begin(&f);
    struct cw_node *n = fix_node(&f, "n1", 4, UINT64_C(1) << 30, 0, NULL);
    struct cw_job *a = fix_submit(&f, &(struct fix_job){0});
    struct fix_job w = {.deps = {{CW__DEPENDENCY_KIND__AFTER, a->id, false}}};
    struct cw_job *plain = fix_submit(&f, &w);
    w.delay_s = 60;
    struct cw_job *late = fix_submit(&f, &w);
    assert_int_equal(cw_job_reason(plain), CW_REASON_DEPENDENCY);
    fix_grant(&f, a, n, 10 * S);
    assert_int_equal(cw_job_reason(plain), CW_REASON_DEPENDENCY); /* granted is not started */
    assert_int_equal(fix_started(&f, a->id, 1, 12 * S), 0);
    assert_true(cw_job_eligible(plain));
    assert_int_equal(cw_job_reason(late), CW_REASON_BEGIN);
    assert_int_equal(cw_model_deadlines(f.m, 71 * S), 72 * S);
    cw_model_deadlines(f.m, 72 * S);
    assert_true(cw_job_eligible(late));
    fix_fini(&f);
}

static void a_singleton_waits_for_the_latest_of_its_name(void **state)
{
    (void)state;
    struct fix f;
    begin(&f);
    struct fix_job w = {.name = "x"};
    struct cw_job *a = fix_submit(&f, &w), *b = fix_submit(&f, &w);
    w.uid = 7;
    fix_submit(&f, &w); /* of somebody else */
    w.uid = 0;
    w.deps[0].kind = CW__DEPENDENCY_KIND__SINGLETON;
    struct cw_job *c = fix_submit(&f, &w);
    assert_int_equal(cw_job_reason(c), CW_REASON_DEPENDENCY);
    cw_model_cancel(f.m, b, NULL, 0, S);
    assert_int_equal(cw_job_reason(c), CW_REASON_DEPENDENCY);
    cw_model_cancel(f.m, a, NULL, 0, S);
    assert_true(cw_job_eligible(c));
    fix_fini(&f);
}

static void one_alternative_is_enough_and_the_last_failure_ends(void **state)
{
    (void)state;
    struct fix f;
    begin(&f);
    struct cw_job *a = fix_submit(&f, &(struct fix_job){0});
    struct cw_job *b = fix_submit(&f, &(struct fix_job){0});
    struct fix_job w = {.any = true,
                        .deps = {{CW__DEPENDENCY_KIND__AFTEROK, a->id, false},
                                 {CW__DEPENDENCY_KIND__AFTERANY, b->id, false}}};
    struct cw_job *one = fix_submit(&f, &w);
    w.deps[1].kind = CW__DEPENDENCY_KIND__AFTEROK;
    fix_submit(&f, &w);
    cw_model_cancel(f.m, a, NULL, 0, S);
    assert_int_equal(f.n_final, 1); /* a alone */
    assert_int_equal(cw_job_reason(one), CW_REASON_DEPENDENCY);
    struct fix restored;
    struct cw_buf text = {0};
    fix_restore(&f, &restored);
    if (!fix_same(&f, &restored, &text))
        fail_msg("%s", cw_buf_str(&text));
    cw_buf_fini(&text);
    fix_fini(&restored);
    cw_model_cancel(f.m, b, NULL, 0, S);
    assert_int_equal(f.n_final, 3); /* b, and the one that lost both */
    assert_true(cw_job_eligible(one));
    fix_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_parked_until_its_begin),
        cmocka_unit_test(the_earliest_of_many_comes_first),
        cmocka_unit_test(at_the_deadline_what_waits_ends_and_what_runs_is_killed),
        cmocka_unit_test(retries_and_node_faults_have_budgets_of_their_own),
        cmocka_unit_test(the_delay_before_a_retry_doubles),
        cmocka_unit_test(a_requeued_attempt_begins_again_and_a_cancel_undoes_that),
        cmocka_unit_test(after_counts_its_delay_from_the_start),
        cmocka_unit_test(a_singleton_waits_for_the_latest_of_its_name),
        cmocka_unit_test(one_alternative_is_enough_and_the_last_failure_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
