/* Tests of crashpoint.c; whatever may kill runs in a child. */
#include "config.h"

#include "base/crashpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef CW_FAULTINJECT
#define NEED_CRASHPOINTS() (void)0
#else
#define NEED_CRASHPOINTS() skip()
#endif

static int in_child(const char *fault, void (*fn)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        setenv("CRUN_FAULT", fault, 1);
        close(STDERR_FILENO);
        cw_crashpoint_init();
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void pass_here_twice(void)
{
    cw_crashpoint("turn.before-commit");
    cw_crashpoint("turn.after-commit");
    cw_crashpoint("turn.before-commit");
}

static void pass_then_say(void)
{
    cw_crashpoint("a");
    cw_crashpoint("a");
    _exit(7);
}

static void a_named_point_kills(void **state)
{
    (void)state;
    NEED_CRASHPOINTS();
    int status = in_child("turn.before-commit:kill", pass_here_twice);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = in_child("other:kill;turn.after-commit:kill", pass_here_twice);
    assert_true(WIFSIGNALED(status));
}

static void it_kills_at_the_wanted_time_only(void **state)
{
    (void)state;
    NEED_CRASHPOINTS();
    assert_true(WIFSIGNALED(in_child("a:kill=2", pass_then_say)));
    int status = in_child("a:kill=3", pass_then_say);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void unknown_names_are_harmless(void **state)
{
    (void)state;
    int status = in_child("no.such.point:kill", pass_here_twice);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_misspelt_fault_ends_the_process(void **state)
{
    static const char *const bad[] = { "a",           "a:",          ":kill",           "a:kil",
                                       "a:kill=0",    "a:kill=x",    "a:fail=ENOTHING", "a:fail=",
                                       "a:fail=EIO,", "a:fail=EIO,0" };

    (void)state;
    NEED_CRASHPOINTS();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int status = in_child(bad[i], pass_then_say);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 2);
    }
}

static void a_point_can_pretend_an_error(void **state)
{
    (void)state;
    NEED_CRASHPOINTS();
    setenv("CRUN_FAULT", "store.put:fail=ENOSPC;net.send:fail=5,2", 1);
    cw_crashpoint_init();
    assert_int_equal(cw_crashpoint_fail("store.put"), -ENOSPC);
    assert_int_equal(cw_crashpoint_fail("store.put"), -ENOSPC);
    assert_int_equal(cw_crashpoint_fail("net.send"), 0);
    assert_int_equal(cw_crashpoint_fail("net.send"), -EIO);
    assert_int_equal(cw_crashpoint_fail("net.send"), 0);
    assert_int_equal(cw_crashpoint_fail("else"), 0);
    cw_crashpoint("store.put");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_named_point_kills),
        cmocka_unit_test(it_kills_at_the_wanted_time_only),
        cmocka_unit_test(a_misspelt_fault_ends_the_process),
        cmocka_unit_test(a_point_can_pretend_an_error),
        cmocka_unit_test(unknown_names_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
