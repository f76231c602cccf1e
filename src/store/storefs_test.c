/* Which file systems are refused. */
#include "config.h"

#include "store/storefs.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    unsigned long type;
    const char *name; /* NULL: local */
} cases[] = {
    { 0x6969, "nfs" },
    { 0xff534d42, "cifs" },
    { 0xfffffffffe534d42UL, "smb2" }, /* sign-extended */
    { 0x01021997, "9p" },
    { 0x65735546, "fuse" },
    { 0x0bd00bd0, "lustre" },
    { 0x00c36400, "ceph" },
    { 0xef53, NULL },
    { 0x58465342, NULL }, /* ext4, xfs */
    { 0x9123683e, NULL },
    { 0x01021994, NULL },
    { 0x794c7630, NULL }, /* btrfs, tmpfs, overlay */
};

static void remote_types_are_named_and_local_ones_are_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        const char *name = cw_storefs_remote(cases[i].type);
        if (cases[i].name == NULL)
            assert_null(name);
        else
            assert_string_equal(name, cases[i].name);
    }
}

static void a_directory_that_is_not_there_is_an_error_that_names_it(void **state)
{
    (void)state;
    struct cw_error err;
    assert_int_equal(cw_storefs_check("no/such/dir", &err), -ENOENT);
    assert_non_null(strstr(err.text, "store no/such/dir"));
}

static void the_environment_overrules(void **state)
{
    (void)state;
    setenv("CRUN_STORE_ANY_FS", "1", 1);
    int rc = cw_storefs_check("no/such/dir", NULL);
    unsetenv("CRUN_STORE_ANY_FS");
    assert_int_equal(rc, 0);
}

int main(void)
{
    unsetenv("CRUN_STORE_ANY_FS");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remote_types_are_named_and_local_ones_are_not),
        cmocka_unit_test(a_directory_that_is_not_there_is_an_error_that_names_it),
        cmocka_unit_test(the_environment_overrules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
