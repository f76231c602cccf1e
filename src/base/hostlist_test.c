/* Tests of hostlist.c. */
#include "config.h"

#include "base/hostlist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/mem.h"

static void join(const struct cw_strv *v, struct cw_buf *out)
{
    for (size_t i = 0; i < v->n; i++)
        cw_buf_addf(out, "%s%s", i > 0 ? " " : "", v->v[i]);
}

static const struct {
    const char *text, *want;
} good[] = {
    { "n1", "n1" },
    { "n1,n2", "n1 n2" },
    { "n2,n1,n2", "n2 n1 n2" },
    { "n[1-3]", "n1 n2 n3" },
    { "n[01-03]", "n01 n02 n03" },
    { "n[08-11]", "n08 n09 n10 n11" },
    { "n[8-11]", "n8 n9 n10 n11" },
    { "n[01-10]", "n01 n02 n03 n04 n05 n06 n07 n08 n09 n10" },
    { "n[01,20]", "n01 n20" },
    { "n[01-02,20],gpu[1-2]-r[1-3]",
      "n01 n02 n20 gpu1-r1 gpu1-r2 gpu1-r3 gpu2-r1 gpu2-r2 gpu2-r3" },
    { "a[1-2]b[3-4]", "a1b3 a1b4 a2b3 a2b4" },
    { "[1-2]", "1 2" },
    { "n[1-2].site.example", "n1.site.example n2.site.example" },
    { "n[5-5]", "n5" },
    { "n[0-1]", "n0 n1" },
};

static void lists_expand_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(good); i++) {
        cw_autostrv struct cw_strv v = { 0 };
        cw_autobuf struct cw_buf b = { 0 };
        assert_int_equal(cw_hostlist_parse(good[i].text, &v, NULL), 0);
        join(&v, &b);
        assert_string_equal(cw_buf_str(&b), good[i].want);
    }
}

static const struct {
    const char *text, *want;
    int rc;
} bad[] = {
    { "", "host list '' column 1: a host name is expected", -EINVAL },
    { ",", "host list ',' column 1: a host name is expected", -EINVAL },
    { "n1,", "host list 'n1,' column 4: a host name is expected", -EINVAL },
    { "n1,,n2", "host list 'n1,,n2' column 4: a host name is expected", -EINVAL },
    { "x],y", "host list 'x],y' column 2: ']' without '['", -EINVAL },
    { "n]1", "host list 'n]1' column 2: ']' without '['", -EINVAL },
    { "n[1-", "host list 'n[1-' column 5: a number is expected in the brackets", -EINVAL },
    { "n[1", "host list 'n[1' column 4: the bracket is not closed", -EINVAL },
    { "n[", "host list 'n[' column 3: a number is expected in the brackets", -EINVAL },
    { "n[]", "host list 'n[]' column 3: a number is expected in the brackets", -EINVAL },
    { "n[1,]", "host list 'n[1,]' column 5: a number is expected in the brackets", -EINVAL },
    { "n[3-1]", "host list 'n[3-1]' column 3: the range goes backwards", -EINVAL },
    { "n[1-2-3]", "host list 'n[1-2-3]' column 6: ',' or ']' is expected", -EINVAL },
    { "n[[1]]", "host list 'n[[1]]' column 3: a number is expected in the brackets", -EINVAL },
    { "n[a-b]", "host list 'n[a-b]' column 3: a number is expected in the brackets", -EINVAL },
    { "n[1 -2]", "host list 'n[1 -2]' column 4: ',' or ']' is expected", -EINVAL },
    { "n1 n2", "host list 'n1 n2' column 3: a name may have letters, digits, '-', '.' and '_'",
      -EINVAL },
    { "n/1", "host list 'n/1' column 2: a name may have letters, digits, '-', '.' and '_'",
      -EINVAL },
    { "n[1-010]",
      "host list 'n[1-010]' column 5: zeros in front of the end but not of the start of a range",
      -EINVAL },
    { "n[1-9999999999999999999]",
      "host list 'n[1-9999999999999999999]' column 5: a number of more than 18 digits", -EINVAL },
    { "n[1-999999999999999999]", "host list: more than 100000 hosts", -ERANGE },
    { "n[0-999]x[0-999]", "host list: more than 100000 hosts", -ERANGE },
    { "n[0-99999]x[0-99999]x[0-99999]x[0-99999]", "host list: more than 100000 hosts", -ERANGE },
    { "n[1-60000],m[1-60000]", "host list: more than 100000 hosts", -ERANGE },
    { "a[1]a[1]a[1]a[1]a[1]a[1]a[1]a[1]a[1]",
      "host list 'a[1]a[1]a[1]a[1]a[1]a[1]a[1]a[1]a[1]' column 34: more than 8 brackets in one "
      "name",
      -EINVAL },
};

static void bad_lists_are_refused_with_their_column(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++) {
        cw_autostrv struct cw_strv v = { 0 };
        struct cw_error err = { 0 };
        cw_strv_add(&v, "kept");
        assert_int_equal(cw_hostlist_parse(bad[i].text, &v, &err), bad[i].rc);
        assert_string_equal(err.text, bad[i].want);
        assert_int_equal(v.n, 1);
    }
}

static void a_hundred_thousand_hosts_come_and_go(void **state)
{
    cw_autostrv struct cw_strv v = { 0 };
    cw_autobuf struct cw_buf b = { 0 };

    (void)state;
    assert_int_equal(cw_hostlist_parse("n[00001-100000]", &v, NULL), 0);
    assert_int_equal(v.n, 100000);
    assert_string_equal(v.v[99999], "n100000");
    cw_hostlist_format(v.v, v.n, &b);
    assert_string_equal(cw_buf_str(&b), "n[00001-100000]");
}

static void a_string_of_nine_kilobytes_is_not_cut(void **state)
{
    cw_autostrv struct cw_strv v = { 0 };
    cw_autobuf struct cw_buf text = { 0 }, back = { 0 };

    (void)state;
    for (int i = 0; i < 900; i++)
        cw_buf_addf(&text, "%shost%05d", i > 0 ? "," : "", 2 * i);
    assert_true(text.len > 8900);
    assert_int_equal(cw_hostlist_parse(text.data, &v, NULL), 0);
    assert_int_equal(v.n, 900);
    assert_string_equal(v.v[899], "host01798");
    cw_hostlist_format(v.v, v.n, &back);
    cw_autostrv struct cw_strv again = { 0 };
    assert_int_equal(cw_hostlist_parse(back.data, &again, NULL), 0);
    assert_int_equal(again.n, 900);
}

static void a_name_too_long_for_a_host_is_refused(void **state)
{
    cw_autostrv struct cw_strv v = { 0 };
    char name[300];

    (void)state;
    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    assert_int_equal(cw_hostlist_parse(name, &v, NULL), -EINVAL);
    name[255] = '\0';
    assert_int_equal(cw_hostlist_parse(name, &v, NULL), 0);
}

static const struct {
    const char *names, *want;
} folds[] = {
    { "n1", "n1" },
    { "n10,n9,n2,n1,n10", "n[1-2,9-10]" },
    { "n01,n02,n03,n10", "n[01-03,10]" },
    { "n1,n01", "n[01,1]" },
    { "n9,n10,n11", "n[9-11]" },
    { "n09,n10,n11", "n[09-11]" },
    { "n99,n100", "n[99-100]" },
    { "r1n1,r1n2,r2n1,r2n2", "r1n[1-2],r2n[1-2]" },
    { "gpu1-ib0,gpu2-ib0", "gpu[1-2]-ib0" },
    { "a,b", "a,b" },
    { "a,a1", "a,a1" },
    { "1,2,3", "[1-3]" },
    { "n1.x,n2.x,n2.y", "n[1-2].x,n2.y" },
};

static void formatting_folds_and_expanding_gives_it_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(folds); i++) {
        cw_autostrv struct cw_strv v = { 0 }, back = { 0 };
        cw_autobuf struct cw_buf b = { 0 }, again = { 0 };
        assert_int_equal(cw_hostlist_parse(folds[i].names, &v, NULL), 0);
        cw_hostlist_format(v.v, v.n, &b);
        assert_string_equal(cw_buf_str(&b), folds[i].want);
        assert_int_equal(cw_hostlist_parse(b.data, &back, NULL), 0);
        cw_hostlist_format(back.v, back.n, &again);
        assert_string_equal(again.data, b.data);
    }
}

static void expanding_gives_the_sorted_list_itself(void **state)
{
    unsigned seed = 7;

    (void)state;
    for (int round = 0; round < 300; round++) {
        cw_autostrv struct cw_strv v = { 0 }, sorted = { 0 }, back = { 0 };
        cw_autobuf struct cw_buf b = { 0 }, again = { 0 };
        for (int i = 0; i < 30; i++) {
            static const char *const formats[] = {
                "n%d", "n%03d", "r%d-n1", "r%02d", "%d", "a%db2"
            };
            cw_buf_clear(&b);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            cw_buf_addf(&b, formats[rand_r(&seed) % 6], rand_r(&seed) % 30);
#pragma GCC diagnostic pop
            cw_strv_add(&v, b.data);
        }
        cw_buf_clear(&b);
        cw_hostlist_format(v.v, v.n, &b);
        assert_int_equal(cw_hostlist_parse(b.data, &back, NULL), 0);
        cw_hostlist_format(back.v, back.n, &again);
        assert_string_equal(again.data, b.data);
        /* every name once */
        for (size_t i = 0; i < v.n; i++) {
            int found = 0;
            for (size_t k = 0; k < back.n; k++)
                found += strcmp(v.v[i], back.v[k]) == 0;
            assert_int_equal(found, 1);
        }
    }
}

static void nothing_formats_to_nothing(void **state)
{
    cw_autobuf struct cw_buf b = { 0 };

    (void)state;
    cw_hostlist_format(NULL, 0, &b);
    assert_string_equal(cw_buf_str(&b), "");
}

/* Found by fuzz_hostlist: looking ranges up one by one took 17 s for such a list. */
static void many_ranges_in_one_bracket_cost_little(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf text = { 0 };
    cw_autostrv struct cw_strv v = { 0 };
    for (int i = 0; i < CW_HOSTLIST_MAX; i++)
        cw_buf_addf(&text, "%s%d", i == 0 ? "n[" : ",", 2 * i);
    cw_buf_add_str(&text, "]");
    clock_t start = clock();
    assert_int_equal(cw_hostlist_parse(cw_buf_str(&text), &v, NULL), 0);
    assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
    assert_int_equal(v.n, CW_HOSTLIST_MAX);
    assert_string_equal(v.v[CW_HOSTLIST_MAX - 1], "n199998");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_expand_exactly),
        cmocka_unit_test(bad_lists_are_refused_with_their_column),
        cmocka_unit_test(a_hundred_thousand_hosts_come_and_go),
        cmocka_unit_test(a_string_of_nine_kilobytes_is_not_cut),
        cmocka_unit_test(a_name_too_long_for_a_host_is_refused),
        cmocka_unit_test(formatting_folds_and_expanding_gives_it_back),
        cmocka_unit_test(expanding_gives_the_sorted_list_itself),
        cmocka_unit_test(nothing_formats_to_nothing),
        cmocka_unit_test(many_ranges_in_one_bracket_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
