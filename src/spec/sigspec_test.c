/* Early signals as people type them. */
#include "spec/sigspec.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void a_signal_its_time_and_whom_it_reaches_are_understood(void **state)
{
    static const struct {
        const char *text;
        uint32_t signal, before_s;
        bool leader;
    } rows[] = {
        {"USR1", SIGUSR1, 60, false},     {"SIGUSR1@120", SIGUSR1, 120, false},
        {"B:TERM@30", SIGTERM, 30, true}, {"A:hup@0", SIGHUP, 0, false},
        {"10", 10, 60, false},            {"B:64@65535", 64, 65535, true},
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        struct cw_sigspec s;
        struct cw_error err = {0};
        if (cw_sigspec_parse(rows[i].text, &s, &err) != 0)
            fail_msg("%s: %s", rows[i].text, err.text);
        assert_int_equal(s.signal, rows[i].signal);
        assert_int_equal(s.before_s, rows[i].before_s);
        assert_int_equal(s.leader, rows[i].leader);
    }
}

static void nothing_else_is_a_signal(void **state)
{
    static const char *const rows[] = {
        "", "B:", "@60", "USR9", "0", "65", "USR1@", "USR1@65536", "USR1@-1", "R:USR1",
        "USR1@1@2", "10x", "A:B:USR1", "averyveryverylongname", "SIG",
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        struct cw_sigspec s = {.signal = 99};
        if (cw_sigspec_parse(rows[i], &s, NULL) != -EINVAL || s.signal != 99)
            fail_msg("'%s' was taken", rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_its_time_and_whom_it_reaches_are_understood),
        cmocka_unit_test(nothing_else_is_a_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
