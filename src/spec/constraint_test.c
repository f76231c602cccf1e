/* Expressions over node labels. */
#include "spec/constraint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void an_expression_means_what_people_read(void **state)
{
    (void)state;
    char *const labels[] = {"a100", "fast", "rack=3"};
    const struct {
        const char *text;
        bool holds;
    } rows[] = {
        {"a100", true},          {"a10", false},
        {"!a10", true},          {"!a100", false},
        {"a100&fast", true},     {"a100&slow", false},
        {"slow|fast", true},     {"slow|a10", false},
        {"slow&x|fast", true},   {"fast|slow&x", true},
        {"(fast|slow)&x", false}, {"(fast|slow)&rack=3", true},
        {"!(slow|x)", true},     {"!!fast", true},
        {"a100&!debug|(x&y)", true},
    };
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        assert_int_equal(cw_constraint_check(rows[i].text, NULL), 0);
        if (cw_constraint_matches(rows[i].text, labels, 3) != rows[i].holds)
            fail_msg("%s", rows[i].text);
    }
}

static void a_bad_expression_is_refused_with_its_column(void **state)
{
    (void)state;
    const struct {
        const char *text, *want;
    } rows[] = {
        {"", "at byte 1: a label, ! or ( is expected"},
        {"a&", "at byte 3: a label, ! or ( is expected"},
        {"a b", "at byte 2: &, | or the end is expected"},
        {"(a", "at byte 3: &, | or ) is expected"},
        {"a)", "at byte 2: &, | or the end is expected"},
        {"a&&b", "at byte 3: a label, ! or ( is expected"},
        {"[a|b]", "at byte 1: a label, ! or ( is expected"},
        {"a*2", "at byte 2: &, | or the end is expected"},
    };
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        struct cw_error err = {0};
        assert_int_equal(cw_constraint_check(rows[i].text, &err), -EINVAL);
        if (strstr(err.text, rows[i].want) == NULL)
            fail_msg("%s: %s", rows[i].text, err.text);
        assert_false(cw_constraint_matches(rows[i].text, NULL, 0));
    }
    char deep[300];
    memset(deep, '(', sizeof(deep));
    deep[299] = '\0';
    assert_int_equal(cw_constraint_check(deep, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expression_means_what_people_read),
        cmocka_unit_test(a_bad_expression_is_refused_with_its_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
