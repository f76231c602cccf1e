/* Tests of paths.c. */
#include "config.h"

#include "base/paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"

static const char *const dirs[] = { "/usr/local/bin", "/usr/local/sbin",
                                    "/usr/local/libexec/crun-wlm", "/usr/local/lib/crun-wlm" };
static const char *const split[] = { "/usr/bin", "/usr/sbin", "/usr/libexec/crun-wlm",
                                     "/usr/lib/x86_64-linux-gnu/crun-wlm" };

static const struct {
    const char *exe;
    const char *const *dirs;
    int target;
    const char *want;
} cases[] = {
    { "/usr/local/bin/crun-submit", dirs, 2, "/usr/local/libexec/crun-wlm" },
    { "/home/a/inst/sbin/crund", dirs, 2, "/home/a/inst/libexec/crun-wlm" },
    { "/home/a/inst/libexec/crun-wlm/crun-shepherd", dirs, 3, "/home/a/inst/lib/crun-wlm" },
    { "/stage/usr/bin/crun-submit", split, 3, "/stage/usr/lib/x86_64-linux-gnu/crun-wlm" },
    { "/stage/usr/bin/crun-submit", split, 1, "/stage/usr/sbin" },
    /* a build tree, a foreign program, nothing known */
    { "/home/a/build/src/cmds/.libs/crun-submit", dirs, 1, "/usr/local/sbin" },
    { "/usr/games/python3", split, 2, "/usr/libexec/crun-wlm" },
    { "", dirs, 0, "/usr/local/bin" },
    { "/crund", dirs, 0, "/usr/local/bin" },
};

static void a_moved_copy_finds_its_own_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        cw_autofree char *got = cw_paths_moved(cases[i].exe, cases[i].dirs[cases[i].target],
                                               cases[i].dirs, 4);
        assert_string_equal(got, cases[i].want);
    }
}

static void the_environment_overrides(void **state)
{
    (void)state;
    setenv("CRUN_PLUGIN_PATH", "/a:/b", 1);
    unsetenv("CRUN_LIBEXECDIR");
    setenv("CRUN_SBINDIR", "", 1);
    assert_string_equal(cw_paths_plugins(), "/a:/b");
    assert_string_equal(cw_paths_libexec(), CW_LIBEXECDIR);
    assert_string_equal(cw_paths_sbin(), CW_SBINDIR);
    assert_ptr_equal(cw_paths_sbin(), cw_paths_sbin());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moved_copy_finds_its_own_parts),
        cmocka_unit_test(the_environment_overrides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
