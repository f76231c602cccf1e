/* Tests of selector.c. */
#include "spec/selector.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* text -> "first-last [indices] :attempt" */
static void test_accepted(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"12", "12-12 :0"},
        {"12_3", "12-12 [3] :0"},
        {"12_[0-3,7]", "12-12 [0-3,7] :0"},
        {"12_*", "12-12 :0"},
        {"5-9", "5-9 :0"},
        {"12:2", "12-12 :2"},
        {"12_3:2", "12-12 [3] :2"},
        {"9223372036854775807", "9223372036854775807-9223372036854775807 :0"},
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        struct cw_selector s;
        struct cw_error err = {0};
        cw_autobuf struct cw_buf got = {0};
        if (cw_selector_parse(rows[i].text, &s, &err) != 0)
            fail_msg("%s", err.text);
        cw_buf_addf(&got, "%" PRIu64 "-%" PRIu64 " ", s.first, s.last);
        if (s.has_indices) {
            cw_buf_add_str(&got, "[");
            cw_idset_format(&s.indices, &got);
            cw_buf_add_str(&got, "] ");
        }
        cw_buf_addf(&got, ":%u", s.attempt);
        assert_string_equal(got.data, rows[i].want);
        cw_selector_fini(&s);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *refusal;
    } rows[] = {
        {"", "job '' is not a job id (12, 12_3, 12_[0-3], 5-9, 12:2)"},
        {"0", "job '0' is not a job id (12, 12_3, 12_[0-3], 5-9, 12:2)"},
        {"x", "job 'x' is not a job id (12, 12_3, 12_[0-3], 5-9, 12:2)"},
        {"-5", "job '-5' is not a job id (12, 12_3, 12_[0-3], 5-9, 12:2)"},
        {"9223372036854775808",
         "job '9223372036854775808' is not a job id (12, 12_3, 12_[0-3], 5-9, 12:2)"},
        {"77_", "job '77_': an array index is missing behind _"},
        {"77_[]", "job '77_[]': an array index is missing behind _"},
        {"77_[1", "job '77_[1': the [ has no ]"},
        {"77_[1]x", "job '77_[1]x': 'x' is too much (12, 12_3, 12_[0-3], 5-9, 12:2)"},
        {"9-5", "job '9-5': a range is LOW-HIGH"},
        {"5-", "job '5-': a range is LOW-HIGH"},
        {"5-9:1", "job '5-9:1': ':1' is too much (12, 12_3, 12_[0-3], 5-9, 12:2)"},
        {"5:0", "job '5:0': an attempt is a number from 1"},
        {"5:", "job '5:': an attempt is a number from 1"},
        {"12,13", "job '12,13': ',13' is too much (12, 12_3, 12_[0-3], 5-9, 12:2)"},
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        struct cw_selector s;
        struct cw_error err = {0};
        assert_int_equal(cw_selector_parse(rows[i].text, &s, &err), -EINVAL);
        assert_string_equal(err.text, rows[i].refusal);
    }
}

static void test_split(void **state)
{
    cw_autostrv struct cw_strv list = {0};
    struct cw_error err = {0};
    (void)state;
    assert_int_equal(cw_selector_split("12,13_[1,2],5-9", &list, NULL), 0);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.v[1], "13_[1,2]");
    assert_int_equal(cw_selector_split("12,,13", &list, &err), -EINVAL);
    assert_string_equal(err.text, "job list '12,,13' has an empty item");
}

static void test_format(void **state)
{
    char buf[48];
    (void)state;
    assert_string_equal(cw_selector_format(12, 0, 9, buf, sizeof buf), "12");
    assert_string_equal(cw_selector_format(15, 12, 2, buf, sizeof buf), "12_2");
}

static void test_dependencies(void **state)
{
    struct cw_arena *a = cw_arena_create();
    Cw__Dependency **d;
    bool any;
    size_t n;
    (void)state;
    assert_int_equal(
        cw_dependency_parse("afterok:12:13,afterany:14_*,singleton,afterok:15_3", a, &n, &d, &any, NULL),
        0);
    assert_int_equal(n, 5);
    assert_false(d[2]->has_index);
    assert_true(d[4]->has_index && d[4]->index == 3 && d[4]->job_id == 15);
    assert_int_equal(d[1]->job_id, 13);
    assert_int_equal(d[1]->kind, CW__DEPENDENCY_KIND__AFTEROK);
    assert_int_equal(d[2]->job_id, 14);
    assert_int_equal(d[2]->kind, CW__DEPENDENCY_KIND__AFTERANY);
    assert_false(d[3]->has_job_id);
    cw_arena_destroy(a);
}

static void test_dependency_refusals(void **state)
{
    static const struct {
        const char *text, *refusal;
    } rows[] = {
        {"", "'' is not a kind of dependency (after, afterany, afterok, afternotok, singleton)"},
        {"12", "'12' is not a kind of dependency (after, afterany, afterok, afternotok, singleton)"},
        {"afterok", "afterok needs a job id: afterok:ID"},
        {"afterok:", "job '' is not a job id (12, 12_3, 12_[0-3], 5-9, 12:2)"},
        {"afterok:77_", "job '77_': an array index is missing behind _"},
        {"afterok:77_[1-2]", "job '77_[1-2]': a dependency names one job or one element"},
        {"afterok:5-9", "job '5-9': a dependency names one job or one element"},
        {"afterok:1,", "'' is not a kind of dependency (after, afterany, afterok, afternotok, singleton)"},
        {"afterok:1?afterok:2,singleton",
         "'afterok:1?afterok:2,singleton': either commas (all of them) or ? (one is enough)"},
        {"afterok:1+5", "'1+5': only after knows a delay"},
        {"singleton:1", "singleton takes no job id"},
        {"after:1+x", "minutes behind 1+: 'x' is not a whole number from 0 to 525600"},
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        struct cw_arena *a = cw_arena_create();
        struct cw_error err = {0};
        Cw__Dependency **d;
    bool any;
        size_t n;
        assert_int_equal(cw_dependency_parse(rows[i].text, a, &n, &d, &any, &err), -EINVAL);
        assert_string_equal(err.text, rows[i].refusal);
        cw_arena_destroy(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"every form of a selector is read", test_accepted, NULL, NULL, NULL},
        {"malformed selectors are refused with their text", test_refused, NULL, NULL, NULL},
        {"a list splits at commas outside brackets", test_split, NULL, NULL, NULL},
        {"an element prints as ID_INDEX", test_format, NULL, NULL, NULL},
        {"dependencies of several kinds are read", test_dependencies, NULL, NULL, NULL},
        {"malformed dependencies are refused with their text", test_dependency_refusals, NULL, NULL,
         NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
