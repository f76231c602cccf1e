/* Which ends are tried again. */
#include "spec/retryrule.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static Cw__AttemptRecord ended(Cw__Cause cause, int exit_code, int signal)
{
    Cw__AttemptRecord a = CW__ATTEMPT_RECORD__INIT;
    a.has_cause = true;
    a.cause = cause;
    a.has_exit_code = exit_code >= 0;
    a.exit_code = exit_code >= 0 ? (uint32_t)exit_code : 0;
    a.has_signal = signal > 0;
    a.signal = (uint32_t)signal;
    return a;
}

static void a_rule_matches_what_it_names(void **state)
{
    (void)state;
    const struct {
        const char *rule;
        Cw__Cause cause;
        int exit_code, signal;
        bool yes;
    } rows[] = {
        {NULL, CW__CAUSE__CAUSE_EXIT, 1, 0, true},
        {NULL, CW__CAUSE__CAUSE_EXIT, 0, 0, false},
        {NULL, CW__CAUSE__CAUSE_SIGNAL, -1, 11, true},
        {NULL, CW__CAUSE__CAUSE_OOM, 0, 0, true},
        {NULL, CW__CAUSE__CAUSE_CANCEL, -1, 15, false},
        {NULL, CW__CAUSE__CAUSE_DEADLINE, -1, 15, false},
        {"exit:75", CW__CAUSE__CAUSE_EXIT, 75, 0, true},
        {"exit:75", CW__CAUSE__CAUSE_EXIT, 76, 0, false},
        {"exit:70-80,oom", CW__CAUSE__CAUSE_EXIT, 76, 0, true},
        {"exit:70-80,oom", CW__CAUSE__CAUSE_OOM, 0, 0, true},
        {"exit:0-255", CW__CAUSE__CAUSE_EXIT, 0, 0, false},
        {"signal:SEGV", CW__CAUSE__CAUSE_SIGNAL, -1, SIGSEGV, true},
        {"signal:9", CW__CAUSE__CAUSE_SIGNAL, -1, 9, true},
        {"signal:9", CW__CAUSE__CAUSE_CANCEL, -1, 9, false},
        {"timeout", CW__CAUSE__CAUSE_TIME_LIMIT, -1, 15, true},
        {"timeout", CW__CAUSE__CAUSE_EXIT, 1, 0, false},
    };
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        Cw__AttemptRecord a = ended(rows[i].cause, rows[i].exit_code, rows[i].signal);
        if (cw_retryrule_matches(rows[i].rule, &a) != rows[i].yes)
            fail_msg("row %zu: %s", i, rows[i].rule != NULL ? rows[i].rule : "(none)");
    }
}

static void a_bad_rule_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",       "x",        "exit:",    "exit:256", "exit:9-3",
                                      "exit:x", "signal:0", "signal:X", "fail,",    "oom timeout"};
    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++)
        if (cw_retryrule_check(bad[i], NULL) != -EINVAL)
            fail_msg("%s is accepted", bad[i]);
    assert_int_equal(cw_retryrule_check("exit:1,exit:3-9,signal:SIGUSR1,oom,timeout,fail", NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_matches_what_it_names),
        cmocka_unit_test(a_bad_rule_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
