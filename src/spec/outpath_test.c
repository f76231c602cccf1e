/* Tests of outpath.c. */
#include "spec/outpath.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static const struct cw_outpath_vars plain = {7, 0, 0, 2, "al", "na/me", "n1", NULL, 0, 0};
static const struct cw_outpath_vars element = {15, 12, 23, 1, "al", "..", "n1", NULL, 0, 0};

static void test_expand(void **state)
{
    static const struct {
        const char *pattern;
        const struct cw_outpath_vars *v;
        const char *want;
    } rows[] = {
        {"crun-%j.out", &plain, "/w/crun-7.out"},
        {"%A_%a.%b", &plain, "/w/7_0.0"},
        {"%A_%a.%b.%j.%J", &element, "/w/12_23.3.15.15"},
        {"/abs/%u/%x", &plain, "/abs/al/na_me"},
        {"%x/%x.log", &element, "/w/__/__.log"},
        {"%N.%n.%t.%s.%r.%%", &plain, "/w/n1.0.0.batch.2.%"},
        {"%4j-%010a-%0j", &element, "/w/0015-0000000023-15"},
        {"\\%j", &plain, "/w/%j"},
        {"\\/x%q", &plain, "/x%q"},
        {"none", &plain, "/dev/null"},
        {"/dev/null", &plain, "/dev/null"},
        {"a b/../c", &plain, "/w/a b/../c"},
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        cw_autobuf struct cw_buf out = {0};
        struct cw_error err;
        if (cw_outpath_expand(rows[i].pattern, "/w", rows[i].v, &out, &err) != 0)
            fail_msg("%s", err.text);
        assert_string_equal(out.data, rows[i].want);
    }
}

static void test_root_workdir(void **state)
{
    cw_autobuf struct cw_buf out = {0};
    (void)state;
    assert_int_equal(cw_outpath_expand("x", "/", &plain, &out, NULL), 0);
    assert_string_equal(out.data, "/x");
}

static void test_refused(void **state)
{
    static const struct {
        const char *pattern, *refusal;
    } rows[] = {
        {"", "must not be empty"},
        {"-", "'-' is no file: none discards the output"},
        {"\\", "nothing follows the backslash"},
        {"a\nb", "'a?b' has a control character"},
        {"x%q",
         "'x%q': %q is not known (%j %A %a %b %J %r %n %t with a width up to 10, %s %u %x %N %%)"},
        {"x%",
         "'x%': % is not known (%j %A %a %b %J %r %n %t with a width up to 10, %s %u %x %N %%)"},
        {"%11j", "'%11j': %11j is not known (%j %A %a %b %J %r %n %t with a width up to 10, %s %u "
                 "%x %N %%)"},
        {"%4x",
         "'%4x': %4x is not known (%j %A %a %b %J %r %n %t with a width up to 10, %s %u %x %N %%)"},
        {"%4%",
         "'%4%': %4% is not known (%j %A %a %b %J %r %n %t with a width up to 10, %s %u %x %N %%)"},
        {"%{id}", "'%{id}': %{ is not known (%j %A %a %b %J %r %n %t with a width up to 10, %s %u "
                  "%x %N %%)"},
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        struct cw_error err = {0};
        assert_int_equal(cw_outpath_check(rows[i].pattern, &err), -EINVAL);
        assert_string_equal(err.text, rows[i].refusal);
    }
}

static void test_long(void **state)
{
    cw_autobuf struct cw_buf pattern = {0};
    cw_autobuf struct cw_buf out = {0};
    struct cw_error err;
    (void)state;
    for (int i = 0; i < 1000; i++)
        cw_buf_add_str(&pattern, "%9j");
    assert_int_equal(cw_outpath_expand(pattern.data, "/w", &plain, &out, &err), -ENAMETOOLONG);
    assert_int_equal(out.len, 0);
}

static void test_default(void **state)
{
    (void)state;
    assert_string_equal(cw_outpath_default(false, false), "crun-%j.out");
    assert_string_equal(cw_outpath_default(true, false), "crun-%A_%a.out");
    assert_string_equal(cw_outpath_default(false, true), "slurm-%j.out");
    assert_string_equal(cw_outpath_default(true, true), "slurm-%A_%a.out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"every letter expands", test_expand, NULL, NULL, NULL},
        {"the root as folder gives no double slash", test_root_workdir, NULL, NULL, NULL},
        {"unknown letters and bad patterns are refused", test_refused, NULL, NULL, NULL},
        {"a path that grows too long is refused", test_long, NULL, NULL, NULL},
        {"the defaults differ for arrays and #SBATCH", test_default, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
