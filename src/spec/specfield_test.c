/* Fields of a spec by name. */
#include "spec/specfield.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_field_that_a_key_names_may_change_and_exists(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "TimeLimit", "time",     "job_name",  "JobName", "NumNodes",   "Dependency", "mem",
        "MinMemoryCPU", "gres",  "gpus",      "begin",   "StartTime",  "throttle",   "Features",
        "ExcNodeList", "nodelist", "priority", "Nice",   "deadline",   "retry-on",   "Comment",
    };
    struct cw_arena *a = cw_arena_create();
    for (size_t i = 0; i < CW_ARRAY_LEN(keys); i++) {
        const char *option, *const *fields;
        if (!cw_specfield_key(keys[i], &option, &fields))
            fail_msg("%s is unknown", keys[i]);
        for (; *fields != NULL; fields++) {
            Cw__JobSpec from = CW__JOB_SPEC__INIT, to = CW__JOB_SPEC__INIT;
            Cw__ArraySpec array = CW__ARRAY_SPEC__INIT;
            to.array = &array;
            if (cw_specfield_find(*fields) == NULL)
                fail_msg("%s may not change", *fields);
            assert_int_equal(cw_specfield_copy(*fields, &from, &to, a, NULL), 0);
        }
    }
    const char *option, *const *fields;
    assert_false(cw_specfield_key("JobState", &option, &fields));
    assert_false(cw_specfield_key("tim", &option, &fields));
    assert_null(cw_specfield_find("workdir"));
    cw_arena_destroy(a);
}

static void a_copy_takes_value_and_presence(void **state)
{
    (void)state;
    struct cw_arena *a = cw_arena_create();
    Cw__JobSpec from = CW__JOB_SPEC__INIT, to = CW__JOB_SPEC__INIT;
    Cw__Settings s = CW__SETTINGS__INIT;
    Cw__Dependency d = CW__DEPENDENCY__INIT, *list[] = {&d};
    from.settings = &s;
    s.has_cpus_per_task = true;
    s.cpus_per_task = 3;
    from.has_time_limit_s = true;
    from.time_limit_s = 60;
    from.has_nice = true;
    from.nice = -7;
    from.comment = (char *)"x";
    from.n_dependencies = 1;
    from.dependencies = list;
    static const char *const names[] = {"settings.cpus_per_task", "time_limit_s", "nice", "comment",
                                        "dependencies"};
    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++)
        assert_int_equal(cw_specfield_copy(names[i], &from, &to, a, NULL), 0);
    assert_int_equal(to.settings->cpus_per_task, 3);
    assert_true(to.settings->has_cpus_per_task && to.has_time_limit_s && to.has_nice);
    assert_int_equal(to.time_limit_s, 60);
    assert_int_equal(to.nice, -7);
    assert_string_equal(to.comment, "x");
    assert_int_equal(to.n_dependencies, 1);
    Cw__JobSpec none = CW__JOB_SPEC__INIT;
    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++)
        assert_int_equal(cw_specfield_copy(names[i], &none, &to, a, NULL), 0);
    assert_false(to.settings->has_cpus_per_task || to.has_time_limit_s || to.has_nice);
    assert_null(to.comment);
    assert_int_equal(to.n_dependencies, 0);
    assert_int_equal(cw_specfield_copy("array.throttle", &from, &to, a, NULL), -EINVAL);
    cw_arena_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_that_a_key_names_may_change_and_exists),
        cmocka_unit_test(a_copy_takes_value_and_presence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
