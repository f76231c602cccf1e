/* Unit test of args.c: what is an option, what an operand, and what each refusal says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cmds/args.h"

static const struct cw_arg table[] = {
    {"user", 'u', "NAME", "whose"}, {"all", 'a', NULL, "all of them"}, {NULL, 0, NULL, NULL}};

struct seen {
    struct cw_buf text;
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct seen *s = arg;
    if (value != NULL && strcmp(value, "bad") == 0)
        return cw_fail(err, -EINVAL, "user 'bad' is not liked");
    cw_buf_addf(&s->text, "%s=%s ", opt->name, value != NULL ? value : "-");
    return 0;
}

static int run(const char *words, struct cw_buf *ret, struct cw_args_common *common,
               struct cw_error *err)
{
    cw_autofree char *copy = cw_xstrdup(words);
    char *argv[16] = {"cmd"};
    int argc = 1;
    for (char *save, *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    struct seen s = {0};
    cw_autostrv struct cw_strv operands = {0};
    int rc = cw_args_parse(table, argc, argv, on_option, &s, common, &operands, err);
    for (size_t i = 0; i < operands.n; i++)
        cw_buf_addf(&s.text, "[%s]", operands.v[i]);
    *ret = s.text;
    return rc;
}

static const struct {
    const char *words, *want;
} good[] = {
    {"", ""},
    {"-u bob 12", "user=bob [12]"},
    {"12 -ubob", "user=bob [12]"},
    {"-au bob", "all=- user=bob "},
    {"--user=bob --all", "user=bob all=- "},
    {"--user bob -- --all", "user=bob [--all]"},
    {"-", "[-]"},
    {"--user= x", "user= [x]"},
};

static void options_and_operands_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(good); i++) {
        cw_autobuf struct cw_buf got = {0};
        struct cw_args_common common;
        struct cw_error err;
        assert_int_equal(run(good[i].words, &got, &common, &err), 0);
        assert_string_equal(cw_buf_str(&got), good[i].want);
    }
}

static const struct {
    const char *words, *want;
} refused[] = {
    {"--use=bob", "unknown option --use"},
    {"--usermore", "unknown option --usermore"},
    {"-x", "unknown option -x"},
    {"--user", "option --user needs a value: NAME"},
    {"-u", "option --user needs a value: NAME"},
    {"--all=yes", "option --all takes no value"},
    {"-u bad", "user 'bad' is not liked"},
};

static void refusals_name_the_option(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(refused); i++) {
        cw_autobuf struct cw_buf got = {0};
        struct cw_args_common common;
        struct cw_error err;
        assert_int_equal(run(refused[i].words, &got, &common, &err), -EINVAL);
        assert_string_equal(err.text, refused[i].want);
    }
}

static void common_options_need_no_row(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf got = {0};
    struct cw_args_common common;
    assert_int_equal(run("--json --conf f.conf --help -V", &got, &common, NULL), 0);
    assert_true(common.json && common.help && common.version);
    assert_non_null(common.conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_operands_are_told_apart),
        cmocka_unit_test(refusals_name_the_option),
        cmocka_unit_test(common_options_need_no_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
