/* Tests of idset.c; changes are compared with a plain array of bits. */
#include "config.h"

#include "base/idset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static const struct {
    const char *text;
    uint64_t max;
    const char *want; /* formatted, or the error's sentence */
    int rc;
} cases[] = {
    { "", 10, "", 0 },
    { "0-3,7,10-20:5", 100, "0-3,7,10,15,20", 0 },
    { "5,3,1,4,2", 100, "1-5", 0 },
    { "1-3,2-5,6", 100, "1-6", 0 },
    { "007", 100, "7", 0 },
    { "4-4", 100, "4", 0 },
    { "0-10:1", 100, "0-10", 0 },
    { "1-10:100", 100, "1", 0 },
    { "18446744073709551615", UINT64_MAX, "18446744073709551615", 0 },
    { "0-18446744073709551615", UINT64_MAX, "0-18446744073709551615", 0 },
    { "18446744073709551610-18446744073709551615:4", UINT64_MAX,
      "18446744073709551610,18446744073709551614", 0 },
    { "18446744073709551616", UINT64_MAX, "column 1: the number is above 18446744073709551615",
      -ERANGE },
    { "1,99999999999999999999999", UINT64_MAX, "column 3: the number is above 18446744073709551615",
      -ERANGE },
    { "1-11", 10, "column 3: the number is above 10", -ERANGE },
    { "0-1000000000:2", UINT64_MAX, "column 1: more than 100000 ranges", -ERANGE },
    { "3-1", 10, "column 1: the range goes backwards", -EINVAL },
    { "1,", 10, "column 3: a number is expected", -EINVAL },
    { ",1", 10, "column 1: a number is expected", -EINVAL },
    { "1,,2", 10, "column 3: a number is expected", -EINVAL },
    { "1-", 10, "column 3: a number is expected", -EINVAL },
    { "-1", 10, "column 1: a number is expected", -EINVAL },
    { "1-2-3", 10, "column 4: ',' is expected", -EINVAL },
    { "1:2", 10, "column 2: ',' is expected", -EINVAL },
    { "1-5:0", 10, "column 1: a step of 0", -EINVAL },
    { "1-5:", 10, "column 5: a number is expected", -EINVAL },
    { "1 ", 10, "column 2: ',' is expected", -EINVAL },
    { "1%2", 10, "column 2: ',' is expected", -EINVAL },
    { "a", 10, "column 1: a number is expected", -EINVAL },
    { "+1", 10, "column 1: a number is expected", -EINVAL },
};

static void text_gives_the_set_or_an_error_with_its_column(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        struct cw_idset s = { 0 };
        struct cw_error err = { 0 };
        cw_autobuf struct cw_buf b = { 0 };
        cw_idset_add(&s, 42, 42);
        assert_int_equal(
            cw_idset_parse(cases[i].text, strlen(cases[i].text), cases[i].max, &s, &err),
            cases[i].rc);
        cw_idset_format(&s, &b);
        assert_string_equal(cases[i].rc == 0 ? cw_buf_str(&b) : err.text, cases[i].want);
        if (cases[i].rc != 0)
            assert_string_equal(cw_buf_str(&b), "42");
        cw_idset_fini(&s);
    }
}

static void a_nul_inside_the_length_is_refused(void **state)
{
    struct cw_idset s = { 0 };

    (void)state;
    assert_int_equal(cw_idset_parse("1\0,2", 4, 10, &s, NULL), -EINVAL);
}

static void a_hundred_thousand_descending_numbers_are_parsed_at_once(void **state)
{
    struct cw_idset s = { 0 };
    cw_autobuf struct cw_buf b = { 0 };

    (void)state;
    for (int i = 100000; i > 0; i--)
        cw_buf_addf(&b, "%s%d", i < 100000 ? "," : "", 2 * i);
    assert_int_equal(cw_idset_parse(b.data, b.len, UINT64_MAX, &s, NULL), 0);
    assert_int_equal(s.n, 100000);
    cw_buf_add_str(&b, ",1");
    assert_int_equal(cw_idset_parse(b.data, b.len, UINT64_MAX, &s, NULL), -ERANGE);
    cw_idset_fini(&s);
}

static void a_million_elements_are_one_interval(void **state)
{
    struct cw_idset s = { 0 };

    (void)state;
    assert_int_equal(cw_idset_parse("0-999999", 8, UINT64_MAX, &s, NULL), 0);
    assert_int_equal(s.n, 1);
    assert_int_equal(cw_idset_count(&s), 1000000);
    cw_idset_fini(&s);
}

#define BITS 200

static void compare(const struct cw_idset *s, const bool *bits)
{
    uint64_t count = 0, nth;

    for (uint64_t i = 0; i < BITS; i++) {
        assert_int_equal(cw_idset_has(s, i), bits[i]);
        assert_int_equal(cw_idset_rank(s, i), count);
        if (bits[i]) {
            assert_true(cw_idset_nth(s, count, &nth));
            assert_int_equal(nth, i);
            if (count == 0)
                assert_int_equal(cw_idset_first(s), i);
            count++;
        }
    }
    assert_int_equal(cw_idset_count(s), count);
    assert_int_equal(cw_idset_empty(s), count == 0);
    assert_false(cw_idset_nth(s, count, &nth));
    for (size_t i = 0; i < s->n; i++) {
        assert_true(s->r[i].first <= s->r[i].last);
        assert_true(i == 0 || s->r[i].first > s->r[i - 1].last + 1);
    }
}

static void adding_and_removing_agree_with_plain_bits(void **state)
{
    struct cw_idset s = { 0 }, copy = { 0 };
    bool bits[BITS] = { false };
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < 5000; round++) {
        uint64_t first = (uint64_t)rand_r(&seed) % BITS,
                 last = first + (uint64_t)rand_r(&seed) % 20;
        bool add = rand_r(&seed) % 2 == 0;
        if (last >= BITS)
            last = BITS - 1;
        if (add)
            cw_idset_add(&s, first, last);
        else
            cw_idset_remove(&s, first, last);
        for (uint64_t i = first; i <= last; i++)
            bits[i] = add;
        compare(&s, bits);
    }
    cw_idset_copy(&copy, &s);
    cw_idset_copy(&copy, &copy);
    compare(&copy, bits);
    cw_idset_fini(&s);
    cw_idset_fini(&copy);
}

static void the_ends_of_the_number_range_do_not_wrap(void **state)
{
    struct cw_idset s = { 0 };

    (void)state;
    cw_idset_add(&s, UINT64_MAX, UINT64_MAX);
    cw_idset_add(&s, 0, 0);
    assert_int_equal(s.n, 2);
    cw_idset_add(&s, UINT64_MAX - 1, UINT64_MAX - 1);
    assert_int_equal(s.n, 2);
    assert_int_equal(cw_idset_rank(&s, UINT64_MAX), 2);
    assert_int_equal(cw_idset_rank(&s, 0), 0);
    cw_idset_remove(&s, 0, UINT64_MAX);
    assert_true(cw_idset_empty(&s));
    cw_idset_add(&s, 5, 4);
    assert_true(cw_idset_empty(&s));
    cw_idset_add(&s, 0, UINT64_MAX);
    assert_true(cw_idset_count(&s) == UINT64_MAX);
    cw_idset_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_gives_the_set_or_an_error_with_its_column),
        cmocka_unit_test(a_nul_inside_the_length_is_refused),
        cmocka_unit_test(a_hundred_thousand_descending_numbers_are_parsed_at_once),
        cmocka_unit_test(a_million_elements_are_one_interval),
        cmocka_unit_test(adding_and_removing_agree_with_plain_bits),
        cmocka_unit_test(the_ends_of_the_number_range_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
