/* What the table keeps of reports that come twice, late, or in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "node/task_table.h"

static Cw__TaskKey key = CW__TASK_KEY__INIT;

static Cw__TaskStarted started(void)
{
    Cw__TaskStarted m = CW__TASK_STARTED__INIT;
    m.key = &key;
    m.stdout_path = (char *)(uintptr_t) "/out";
    return m;
}

static Cw__TaskEnd end(Cw__Cause cause, bool empty)
{
    Cw__TaskEnd m = CW__TASK_END__INIT;
    m.key = &key;
    m.cause = cause;
    m.empty = empty;
    m.has_exit_code = 1;
    return m;
}

static void two_attempts_of_one_task_are_two_entries(void **state)
{
    (void)state;
    struct cw_tasktab *t = cw_tasktab_create();
    struct cw_tasktab_entry *a = cw_tasktab_add(t, 12, 1), *b = cw_tasktab_add(t, 12, 2);
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(cw_tasktab_add(t, 12, 1), a);
    assert_string_equal(b->key, "12.2");
    cw_tasktab_remove(t, a);
    assert_null(cw_tasktab_find(t, 12, 1));
    assert_ptr_equal(cw_tasktab_find(t, 12, 2), b);
    cw_tasktab_destroy(t);
}

static void only_the_first_report_of_a_kind_is_news(void **state)
{
    (void)state;
    struct cw_tasktab *t = cw_tasktab_create();
    struct cw_tasktab_entry *e = cw_tasktab_add(t, 1, 1);
    Cw__TaskStarted s = started();
    Cw__TaskEnd x = end(CW__CAUSE__CAUSE_EXIT, true);
    assert_int_equal(e->state, CW__STATE__STARTING);
    assert_true(cw_tasktab_started(e, &s, "s", 1));
    assert_int_equal(e->state, CW__STATE__RUNNING);
    assert_false(cw_tasktab_started(e, &s, "s", 1));
    assert_true(cw_tasktab_ended(e, &x, "e", 1));
    assert_false(cw_tasktab_ended(e, &x, "e", 1));
    assert_int_equal(e->state, CW__STATE__COMPLETED);
    assert_string_equal(e->stdout_path, "/out");
    cw_tasktab_destroy(t);
}

static void a_started_that_comes_after_the_end_changes_no_state(void **state)
{
    (void)state;
    struct cw_tasktab *t = cw_tasktab_create();
    struct cw_tasktab_entry *e = cw_tasktab_add(t, 1, 1);
    Cw__TaskStarted s = started();
    Cw__TaskEnd x = end(CW__CAUSE__CAUSE_TIME_LIMIT, true);
    cw_tasktab_ended(e, &x, "e", 1);
    cw_tasktab_started(e, &s, "s", 1);
    assert_int_equal(e->state, CW__STATE__TIMEOUT);
    cw_tasktab_destroy(t);
}

static void what_was_not_empty_is_final_only_once_emptied(void **state)
{
    (void)state;
    struct cw_tasktab *t = cw_tasktab_create();
    struct cw_tasktab_entry *e = cw_tasktab_add(t, 1, 1);
    Cw__TaskEnd x = end(CW__CAUSE__CAUSE_CANCEL, false);
    assert_false(cw_tasktab_final(e));
    cw_tasktab_ended(e, &x, "e", 1);
    assert_false(cw_tasktab_final(e));
    e->emptied = true;
    assert_true(cw_tasktab_final(e));
    cw_tasktab_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_attempts_of_one_task_are_two_entries),
        cmocka_unit_test(only_the_first_report_of_a_kind_is_news),
        cmocka_unit_test(a_started_that_comes_after_the_end_changes_no_state),
        cmocka_unit_test(what_was_not_empty_is_final_only_once_emptied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
