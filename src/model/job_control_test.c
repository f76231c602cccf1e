/* Cancel, signal, hold, release. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "model/model_fixture.h"

static const struct cw_partition main_part = {
    .name = "main", .is_default = true, .all_nodes = true};

static void setup(struct fix *f)
{
    fix_init(f);
    fix_partition(f, &main_part);
    fix_node(f, "n1", 4, 1 << 30, 0, NULL);
}

static void assert_sound(struct fix *f)
{
    struct cw_buf b = {0};
    if (cw_model_selfcheck(f->m, &b) != 0)
        fail_msg("%s", cw_buf_str(&b));
    cw_buf_fini(&b);
}

static void cancel_of_a_waiting_job_ends_it_at_once(void **state)
{
    (void)state;
    struct fix f;
    setup(&f);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.hold = true});
    uint64_t id = j->id;
    fix_trail(&f);
    assert_int_equal(cw_model_cancel(f.m, j, NULL, 7, 9), 1);
    assert_string_equal(fix_trail(&f), "event:cancel put-job final cycle");
    assert_string_equal(f.last_reason, "cancelled by uid 7");
    assert_null(cw_model_job(f.m, id));
    fix_fini(&f);
}

static void cancel_of_a_live_job_asks_the_node_once(void **state)
{
    (void)state;
    struct fix f;
    setup(&f);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){0});
    fix_grant(&f, j, cw_model_node(f.m, "n1"), 5);
    fix_trail(&f);
    assert_int_equal(cw_model_cancel(f.m, j, NULL, 7, 9), 1);
    assert_string_equal(fix_trail(&f), "put-attempt event:cancel send-kill");
    assert_int_equal(cw_model_cancel(f.m, j, NULL, 7, 9), 1);
    assert_string_equal(fix_trail(&f), "");
    assert_int_equal(fix_started(&f, j->id, 1, 10), 0); /* it was faster than the kill */
    assert_int_equal(cw_model_cancel(f.m, j, NULL, 7, 9), 1);
    assert_int_equal(fix_ended(&f, j->id, 1, CW__CAUSE__CAUSE_CANCEL, 0, true, 11), 0);
    assert_int_equal(f.last_final_state, CW__STATE__CANCELLED);
    assert_sound(&f);
    fix_fini(&f);
}

static void cancel_of_an_array_ends_what_waits_and_kills_what_lives(void **state)
{
    (void)state;
    struct fix f;
    setup(&f);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.array = "0-9"});
    uint64_t id = j->id;
    fix_grant(&f, j, cw_model_node(f.m, "n1"), 5);
    fix_grant(&f, j, cw_model_node(f.m, "n1"), 5);
    assert_int_equal(cw_model_cancel(f.m, j, NULL, 7, 9), 10);
    assert_int_equal(f.n_final, 0);
    assert_int_equal(cw_model_cancel(f.m, j, NULL, 7, 9), 2);
    assert_sound(&f);
    fix_ended(&f, id + 1, 1, CW__CAUSE__CAUSE_CANCEL, 0, true, 11);
    fix_ended(&f, id + 2, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 11);
    assert_int_equal(f.n_final, 1);
    assert_int_equal(f.last_final_state, CW__STATE__CANCELLED);
    fix_fini(&f);
}

static void cancel_of_an_element_that_waits_for_its_ledger_ends_it(void **state)
{
    (void)state;
    static const char *const arrays[] = {NULL, "0-0"};
    for (size_t i = 0; i < 2; i++) {
        struct fix f;
        setup(&f);
        struct cw_job *j = fix_submit(&f, &(struct fix_job){.array = arrays[i]});
        uint64_t id = cw_job_element_id(j, 0);
        struct cw_node *n = cw_model_node(f.m, "n1");
        fix_grant(&f, j, n, 5);
        cw_model_lost(f.m, &cw_model_attempt(f.m, id)->parts[0], "silent", false, 6, 2);
        assert_int_equal(cw_model_cancel(f.m, j, NULL, 7, 9), 1);
        assert_int_equal(f.last_final_state, CW__STATE__CANCELLED);
        assert_int_equal(n->n_free, 3); /* still quarantined */
        assert_sound(&f);
        assert_int_equal(fix_emptied(&f, id, 1, 10), 0);
        assert_int_equal(n->n_free, 4);
        assert_sound(&f);
        fix_fini(&f);
    }
}

static void a_signal_goes_to_running_elements_only(void **state)
{
    (void)state;
    struct fix f;
    setup(&f);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.array = "0-3"});
    fix_grant(&f, j, cw_model_node(f.m, "n1"), 5);
    fix_grant(&f, j, cw_model_node(f.m, "n1"), 5);
    assert_int_equal(cw_model_signal(f.m, j, NULL, 10), 0);
    fix_started(&f, j->id + 1, 1, 6);
    fix_trail(&f);
    assert_int_equal(cw_model_signal(f.m, j, NULL, 10), 1);
    assert_string_equal(fix_trail(&f), "send-signal");
    fix_fini(&f);
}

static void hold_keeps_a_job_from_starting_and_release_lets_it_go(void **state)
{
    (void)state;
    struct fix f, g;
    setup(&f);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.array = "0-3"});
    fix_trail(&f);
    cw_model_hold(f.m, j, true, 7, false, 9);
    assert_string_equal(fix_trail(&f), "put-job event:hold cycle");
    cw_model_hold(f.m, j, true, 7, false, 9);
    assert_string_equal(fix_trail(&f), "");
    assert_false(cw_job_eligible(j));
    fix_restore(&f, &g);
    assert_false(cw_job_eligible(cw_model_job(g.m, j->id)));
    fix_fini(&g);
    cw_model_hold(f.m, j, false, 7, false, 9);
    assert_true(cw_job_eligible(j));
    fix_restore(&f, &g);
    assert_true(cw_job_eligible(cw_model_job(g.m, j->id)));
    fix_fini(&g);
    fix_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancel_of_a_waiting_job_ends_it_at_once),
        cmocka_unit_test(cancel_of_a_live_job_asks_the_node_once),
        cmocka_unit_test(cancel_of_an_array_ends_what_waits_and_kills_what_lives),
        cmocka_unit_test(cancel_of_an_element_that_waits_for_its_ledger_ends_it),
        cmocka_unit_test(a_signal_goes_to_running_elements_only),
        cmocka_unit_test(hold_keeps_a_job_from_starting_and_release_lets_it_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
