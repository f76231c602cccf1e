/* Arrays: compact sets, counters, throttle, the outcome of the whole. */
#include "model/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/model.h"
#include "model/model_fixture.h"

static const struct cw_partition main_part = {
    .name = "main", .is_default = true, .all_nodes = true};

static void setup(struct fix *f)
{
    fix_init(f);
    fix_partition(f, &main_part);
    fix_node(f, "n1", 16, 1 << 30, 0, NULL);
}

static void assert_sound(struct fix *f)
{
    struct cw_buf b = {0};
    if (cw_model_selfcheck(f->m, &b) != 0)
        fail_msg("%s", cw_buf_str(&b));
    cw_buf_fini(&b);
}

static void elements_start_in_order_and_the_array_waits_until_the_last_has_started(void **state)
{
    (void)state;
    struct fix f;
    setup(&f);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.array = "10-12"});
    struct cw_node *n = cw_model_node(f.m, "n1");
    for (uint64_t k = 0; k < 3; k++) {
        assert_int_equal(j->state, CW__STATE__PENDING);
        assert_int_equal(fix_grant(&f, j, n, 5)->id, j->id + 1 + k);
        assert_sound(&f);
    }
    assert_int_equal(j->state, CW__STATE__STARTING);
    assert_int_equal(fix_started(&f, j->id + 2, 1, 6), 0);
    assert_int_equal(j->state, CW__STATE__RUNNING);
    fix_fini(&f);
}

static const struct outcome {
    uint32_t codes[3];
    Cw__Cause causes[3];
    Cw__State state;
    uint32_t worst;
} outcomes[] = {
    {{0, 0, 0}, {1, 1, 1}, CW__STATE__COMPLETED, 0},
    {{0, 3, 2}, {1, 1, 1}, CW__STATE__FAILED, 3},
    {{0, 3, 0}, {1, 1, CW__CAUSE__CAUSE_TIME_LIMIT}, CW__STATE__FAILED, 124},
    {{0, 0, 0}, {1, CW__CAUSE__CAUSE_CANCEL, 1}, CW__STATE__CANCELLED, 241},
};

static void the_whole_ends_like_its_worst_element(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(outcomes); i++) {
        struct fix f;
        setup(&f);
        struct cw_job *j = fix_submit(&f, &(struct fix_job){.array = "0-2"});
        uint64_t id = j->id;
        for (uint64_t k = 0; k < 3; k++)
            fix_grant(&f, j, cw_model_node(f.m, "n1"), 5);
        for (uint64_t k = 0; k < 3; k++) {
            assert_int_equal(f.n_final, 0);
            assert_int_equal(
                fix_ended(&f, id + 1 + k, 1, outcomes[i].causes[k], outcomes[i].codes[k], true, 9),
                0);
            assert_sound(&f);
        }
        assert_int_equal(f.n_final, 1);
        assert_int_equal(f.last_final_state, outcomes[i].state);
        assert_null(cw_model_job(f.m, id));
        struct cw_buf *row = cw_idtable_find(f.jobs, id);
        Cw__JobRecord *rec = cw__job_record__unpack(NULL, row->len, (uint8_t *)row->data);
        assert_int_equal(rec->worst_exit, outcomes[i].worst);
        assert_int_equal(rec->n_completed + rec->n_failed + rec->n_cancelled, 3);
        assert_int_equal(rec->end_ns, 9);
        cw__job_record__free_unpacked(rec, NULL);
        fix_fini(&f);
    }
}

static void a_throttled_array_has_no_more_live_elements_than_it_asked_for(void **state)
{
    (void)state;
    struct fix f;
    setup(&f);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.array = "0-9", .throttle = 2});
    struct cw_node *n = cw_model_node(f.m, "n1");
    assert_true(cw_job_eligible(j));
    fix_grant(&f, j, n, 5);
    assert_true(cw_job_eligible(j));
    fix_grant(&f, j, n, 5);
    assert_false(cw_job_eligible(j));
    assert_int_equal(cw_job_reason(j), CW_REASON_ARRAY_LIMIT);
    fix_ended(&f, j->id + 1, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 9);
    assert_true(cw_job_eligible(j));
    assert_int_equal(cw_job_reason(j), CW_REASON_PRIORITY);
    fix_fini(&f);
}

static void cancelled_elements_never_start_and_the_others_do(void **state)
{
    (void)state;
    struct fix f;
    setup(&f);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.array = "0-9"});
    uint64_t id = j->id, ordinal;
    struct cw_idset some = {0};
    cw_idset_add(&some, 0, 1);
    cw_idset_add(&some, 4, 20);
    assert_int_equal(cw_model_cancel(f.m, j, &some, 7, 5), 8);
    assert_int_equal(cw_model_cancel(f.m, j, &some, 7, 5), 0);
    assert_true(cw_job_next(j, &ordinal));
    assert_int_equal(ordinal, 2);
    for (uint64_t k = 2; k <= 3; k++)
        fix_grant(&f, j, cw_model_node(f.m, "n1"), 5);
    assert_sound(&f);
    fix_ended(&f, id + 3, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 9);
    fix_ended(&f, id + 4, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 9);
    assert_int_equal(f.n_final, 1);
    assert_int_equal(f.last_final_state, CW__STATE__CANCELLED);
    cw_idset_fini(&some);
    fix_fini(&f);
}

static void a_row_with_more_ranges_than_a_person_may_type_is_read_back(void **state)
{
    (void)state;
    enum { N = 250000 };
    struct cw_jobarray *a = cw_jobarray_create("0-999999", NULL),
                       *b = cw_jobarray_create("0-999999", NULL);
    cw_idset_fini(&a->pending);
    memset(&a->pending, 0, sizeof(a->pending));
    for (uint64_t i = 0; i < N; i++)
        cw_idset_add(&a->pending, i * 3, i * 3);
    cw_jobarray_set_next_attempt(a, 3, 2);
    Cw__JobRecord rec = CW__JOB_RECORD__INIT;
    cw_jobarray_save(a, &rec);
    assert_int_equal(cw_jobarray_restore(b, &rec, NULL), 0);
    assert_int_equal(cw_idset_count(&b->pending), N);
    assert_true(cw_idset_has(&b->pending, 3 * (N - 1)));
    assert_int_equal(cw_jobarray_next_attempt(b, 3), 2);
    assert_int_equal(cw_jobarray_next_attempt(b, 6), 1);
    free(rec.pending);
    free(rec.requeued[0]);
    free(rec.requeued);
    cw_jobarray_destroy(a);
    cw_jobarray_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_start_in_order_and_the_array_waits_until_the_last_has_started),
        cmocka_unit_test(the_whole_ends_like_its_worst_element),
        cmocka_unit_test(a_throttled_array_has_no_more_live_elements_than_it_asked_for),
        cmocka_unit_test(cancelled_elements_never_start_and_the_others_do),
        cmocka_unit_test(a_row_with_more_ranges_than_a_person_may_type_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
