/* dispatch_test.c: the role table is closed, and who counts as what. */
#include "ctld/dispatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ctld/users.h"

static uint32_t admins[] = {77};
static const struct cw_ctld ctld = {.owner_uid = 500, .admin_uids = admins, .n_admin_uids = 1};

static struct cw_identity user(uint32_t uid)
{
    return (struct cw_identity){.size = sizeof(struct cw_identity), .uid = uid, .gid = uid};
}

static struct cw_identity node(const char *name)
{
    struct cw_identity i = user(0);
    snprintf(i.node, sizeof i.node, "%s", name);
    return i;
}

static int check(enum cw_kind kind, struct cw_identity who, struct cw_error *err)
{
    return cw_dispatch_check(&ctld, kind, &who, err);
}

static void a_user_may_submit_but_not_drain(void **state)
{
    struct cw_error err;
    (void)state;
    assert_int_equal(check(CW_KIND_SUBMIT, user(1000), &err), 0);
    assert_int_equal(check(CW_KIND_NODE_SET, user(1000), &err), -EACCES);
    assert_string_equal(err.text, "request node_set: only administrators may do this");
}

static void root_the_owner_and_named_users_are_administrators(void **state)
{
    (void)state;
    assert_int_equal(check(CW_KIND_NODE_SET, user(0), NULL), 0);
    assert_int_equal(check(CW_KIND_NODE_SET, user(500), NULL), 0);
    assert_int_equal(check(CW_KIND_NODE_SET, user(77), NULL), 0);
    assert_int_equal(check(CW_KIND_NODE_SET, user(78), NULL), -EACCES);
}

static void a_node_is_no_user_and_no_administrator(void **state)
{
    struct cw_error err;
    (void)state;
    assert_int_equal(check(CW_KIND_SUBMIT, node("n1"), &err), -EACCES);
    assert_non_null(strstr(err.text, "node n1 is no user"));
    assert_int_equal(check(CW_KIND_NODE_SET, node("n1"), NULL), -EACCES);
}

static void what_has_no_handler_is_refused_whoever_asks(void **state)
{
    (void)state;
    assert_int_equal(check(CW_KIND_LOG, user(0), NULL), -ENOTSUP);
    for (int kind = 0; kind < 1000; kind++) {
        const struct cw_kind_row *row = cw_kind_find((unsigned)kind);
        int rc = check((enum cw_kind)kind, user(0), NULL);
        assert_true(row == NULL ? rc == -ENOTSUP : rc == 0 || rc == -ENOTSUP);
    }
}

static void nobody_may_touch_the_jobs_of_others_but_administrators(void **state)
{
    (void)state;
    struct cw_identity anna = user(1000), admin = user(77), n1 = node("n1");
    assert_true(cw_users_may(&ctld, &anna, 1000));
    assert_false(cw_users_may(&ctld, &anna, 1001));
    assert_true(cw_users_may(&ctld, &admin, 1000));
    assert_false(cw_users_may(&ctld, &n1, 0));
}

static void a_name_is_in_a_list_as_a_whole(void **state)
{
    (void)state;
    assert_true(cw_users_in_list("anna, bob", "bob"));
    assert_true(cw_users_in_list("anna,bob", "anna"));
    assert_false(cw_users_in_list("anna,bob", "ann"));
    assert_false(cw_users_in_list("", "anna"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_may_submit_but_not_drain),
        cmocka_unit_test(root_the_owner_and_named_users_are_administrators),
        cmocka_unit_test(a_node_is_no_user_and_no_administrator),
        cmocka_unit_test(what_has_no_handler_is_refused_whoever_asks),
        cmocka_unit_test(nobody_may_touch_the_jobs_of_others_but_administrators),
        cmocka_unit_test(a_name_is_in_a_list_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
