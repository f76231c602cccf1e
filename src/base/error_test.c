/* Tests of error.c and printable.c. */
#include "config.h"

#include "base/error.h"

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void the_code_is_returned_without_a_struct(void **state)
{
    (void)state;
    assert_int_equal(cw_fail(NULL, -EINVAL, "x %d", 1), -EINVAL);
    assert_int_equal(cw_fail_errno(NULL, -EIO, "x"), -EIO);
    assert_int_equal(cw_wrap(NULL, -ENOENT, "x"), -ENOENT);
}

static void a_sentence_names_thing_act_and_cause(void **state)
{
    struct cw_error err = { 0 };

    (void)state;
    assert_int_equal(cw_fail_errno(&err, -EACCES, "mount %s", "/srv"), -EACCES);
    assert_string_equal(err.text, "mount /srv: Permission denied");
    assert_int_equal(cw_wrap(&err, -1, "volume %s", "data"), -EACCES);
    assert_string_equal(err.text, "volume data: mount /srv: Permission denied");
    assert_int_equal(err.fault, CW_FAULT_USER);
    assert_int_equal(cw_fail_node(&err, -EIO, "disk"), -EIO);
    assert_int_equal(err.fault, CW_FAULT_NODE);
}

static void wrapping_keeps_the_fault_class(void **state)
{
    struct cw_error err = { 0 };

    (void)state;
    cw_fail_node(&err, -EIO, "disk");
    cw_wrap(&err, -1, "node n1");
    assert_int_equal(err.fault, CW_FAULT_NODE);
}

static void an_argument_may_be_the_error_itself(void **state)
{
    struct cw_error err = { 0 };

    (void)state;
    cw_fail(&err, -EINVAL, "inner");
    cw_fail(&err, -EINVAL, "f:1: %s", err.text);
    assert_string_equal(err.text, "f:1: inner");
}

static void control_characters_become_question_marks(void **state)
{
    struct cw_error err = { 0 };

    (void)state;
    cw_fail(&err, -EINVAL,
            "a\nb\033[31m\x7f\xc2\x9b"
            "c \xc3\xa9");
    assert_string_equal(err.text, "a?b?[31m???c \xc3\xa9");
}

static void too_long_a_sentence_ends_in_dots(void **state)
{
    struct cw_error err = { 0 };
    char longer[3 * CW_ERROR_MAX];

    (void)state;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    cw_fail(&err, -EINVAL, "%s", longer);
    assert_int_equal(strlen(err.text), CW_ERROR_MAX - 1);
    assert_string_equal(err.text + CW_ERROR_MAX - 4, "...");
    cw_wrap(&err, -1, "%s", longer);
    assert_int_equal(strlen(err.text), CW_ERROR_MAX - 1);
    assert_string_equal(err.text + CW_ERROR_MAX - 4, "...");
    cw_fail_errno(&err, -EIO, "%s", longer);
    assert_int_equal(strlen(err.text), CW_ERROR_MAX - 1);
}

static void a_cut_never_splits_a_character(void **state)
{
    struct cw_error err = { 0 };
    char longer[2 * CW_ERROR_MAX];

    (void)state;
    for (size_t shift = 0; shift < 2; shift++) {
        memset(longer, 'x', sizeof(longer) - 1);
        for (size_t i = shift; i + 1 < sizeof(longer) - 1; i += 2)
            memcpy(longer + i, "\xc3\xa9", 2);
        longer[sizeof(longer) - 1] = '\0';
        cw_fail(&err, -EINVAL, "%s", longer);
        size_t n = strlen(err.text);
        assert_string_equal(err.text + n - 3, "...");
        assert_int_equal((unsigned char)err.text[n - 4], 0xa9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_code_is_returned_without_a_struct),
        cmocka_unit_test(a_sentence_names_thing_act_and_cause),
        cmocka_unit_test(wrapping_keeps_the_fault_class),
        cmocka_unit_test(an_argument_may_be_the_error_itself),
        cmocka_unit_test(control_characters_become_question_marks),
        cmocka_unit_test(too_long_a_sentence_ends_in_dots),
        cmocka_unit_test(a_cut_never_splits_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
