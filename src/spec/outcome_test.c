/* Tests of outcome.c: one line per cause and state. */
#include "spec/outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

#define NONE (-1)

static void test_causes(void **state)
{
    static const struct {
        Cw__Cause cause;
        int code, sig;
        Cw__State state;
        int exit_status;
    } rows[] = {
        {CW__CAUSE__CAUSE_EXIT, 0, NONE, CW__STATE__COMPLETED, 0},
        {CW__CAUSE__CAUSE_EXIT, 3, NONE, CW__STATE__FAILED, 3},
        {CW__CAUSE__CAUSE_EXIT, 255, NONE, CW__STATE__FAILED, 255},
        {CW__CAUSE__CAUSE_EXIT, NONE, NONE, CW__STATE__FAILED, 1},
        {CW__CAUSE__CAUSE_SIGNAL, NONE, 9, CW__STATE__FAILED, 137},
        {CW__CAUSE__CAUSE_SIGNAL, NONE, 11, CW__STATE__FAILED, 139},
        {CW__CAUSE__CAUSE_CANCEL, 0, NONE, CW__STATE__CANCELLED, 241},
        {CW__CAUSE__CAUSE_CANCEL, NONE, 15, CW__STATE__CANCELLED, 241},
        {CW__CAUSE__CAUSE_TIME_LIMIT, 0, NONE, CW__STATE__TIMEOUT, 124},
        {CW__CAUSE__CAUSE_OOM, 0, NONE, CW__STATE__OUT_OF_MEMORY, 253},
        {CW__CAUSE__CAUSE_LAUNCH_USER, 127, NONE, CW__STATE__LAUNCH_FAILED, 127},
        {CW__CAUSE__CAUSE_LAUNCH_USER, 126, NONE, CW__STATE__LAUNCH_FAILED, 126},
        {CW__CAUSE__CAUSE_LAUNCH_USER, NONE, NONE, CW__STATE__LAUNCH_FAILED, 246},
        {CW__CAUSE__CAUSE_LAUNCH_NODE, NONE, NONE, CW__STATE__LAUNCH_FAILED, 246},
        {CW__CAUSE__CAUSE_DEADLINE, NONE, 15, CW__STATE__DEADLINE, 243},
        {CW__CAUSE__CAUSE_PREEMPTED, NONE, 15, CW__STATE__PREEMPTED, 244},
        {CW__CAUSE__CAUSE_RELEASED, 0, NONE, CW__STATE__COMPLETED, 0},
        {CW__CAUSE__CAUSE_RELEASED, 7, NONE, CW__STATE__FAILED, 7},
        {CW__CAUSE__CAUSE_OWNER_GONE, NONE, NONE, CW__STATE__CANCELLED, 241},
        {CW__CAUSE__CAUSE_NODE_LOST, NONE, NONE, CW__STATE__NODE_FAIL, 245},
        {CW__CAUSE__CAUSE_DEPENDENCY, NONE, NONE, CW__STATE__CANCELLED, 242},
        {(Cw__Cause)99, 0, NONE, CW__STATE__FAILED, NONE},
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        Cw__TaskEnd e = CW__TASK_END__INIT;
        Cw__AttemptRecord a = CW__ATTEMPT_RECORD__INIT;
        a.has_cause = 1;
        a.cause = e.cause = rows[i].cause;
        a.has_exit_code = e.has_exit_code = rows[i].code != NONE;
        a.exit_code = e.exit_code = (uint32_t)rows[i].code;
        a.has_signal = e.has_signal = rows[i].sig != NONE;
        a.signal = e.signal = (uint32_t)rows[i].sig;
        assert_int_equal(cw_outcome_state(&e), rows[i].state);
        assert_int_equal(cw_outcome_exit_status(&a), rows[i].exit_status);
    }
}

static void test_never_ran(void **state)
{
    static const struct {
        Cw__State state;
        int exit_status;
    } rows[] = {
        {CW__STATE__PENDING, -1},        {CW__STATE__RUNNING, -1},
        {CW__STATE__COMPLETED, 0},       {CW__STATE__FAILED, 1},
        {CW__STATE__CANCELLED, 241},     {CW__STATE__NODE_FAIL, 245},
        {CW__STATE__LAUNCH_FAILED, 246}, {CW__STATE__TIMEOUT, 124},
        {CW__STATE__OUT_OF_MEMORY, 253}, {(Cw__State)99, -1},
    };
    Cw__AttemptRecord a = CW__ATTEMPT_RECORD__INIT;
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        assert_int_equal(cw_outcome_exit_status_job(rows[i].state, NULL), rows[i].exit_status);
        assert_int_equal(cw_outcome_exit_status_job(rows[i].state, &a), rows[i].exit_status);
    }
    a.has_cause = 1;
    a.cause = CW__CAUSE__CAUSE_DEPENDENCY;
    assert_int_equal(cw_outcome_exit_status_job(CW__STATE__CANCELLED, &a), 242);
    assert_int_equal(cw_outcome_exit_status_job(CW__STATE__PENDING, &a), -1);
}

static void test_names(void **state)
{
    const ProtobufCEnumDescriptor *d = &cw__state__descriptor;
    (void)state;
    for (unsigned i = 0; i < d->n_values; i++) { /* no state of the schema is without a row */
        Cw__State s = (Cw__State)d->values[i].value, back;
        assert_string_equal(cw_state_name(s), d->values[i].name);
        assert_true(cw_state_parse(cw_state_name(s), &back) && back == s);
        assert_true(cw_state_parse(cw_state_letters(s), &back) && back == s);
        assert_int_equal(cw_state_terminal(s), s >= CW__STATE__COMPLETED);
    }
    Cw__State s;
    assert_true(cw_state_parse("out_of_memory", &s) && s == CW__STATE__OUT_OF_MEMORY);
    assert_false(cw_state_parse("X", &s));
    assert_string_equal(cw_state_name((Cw__State)99), "UNKNOWN");
    assert_string_equal(cw_state_letters((Cw__State)99), "??");
}

static void test_cause_names(void **state)
{
    const ProtobufCEnumDescriptor *d = &cw__cause__descriptor;
    (void)state;
    for (unsigned i = 0; i < d->n_values; i++)
        assert_string_not_equal(cw_cause_name((Cw__Cause)d->values[i].value), "unknown");
    assert_string_equal(cw_cause_name(CW__CAUSE__CAUSE_TIME_LIMIT), "time limit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"state and exit status follow from the cause, not from the exit code", test_causes, NULL,
         NULL, NULL},
        {"a job that never ran has the exit status of its state", test_never_ran, NULL, NULL, NULL},
        {"every state has a name and letters that parse back", test_names, NULL, NULL, NULL},
        {"every cause has a name", test_cause_names, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
