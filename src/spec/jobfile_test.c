/* Tests of jobfile.c: every rule of a job file, and the splitter. */
#include "spec/jobfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct cw_arena *arena;
static struct cw_request req;
static struct cw_error err;

static int setup(void **state)
{
    (void)state;
    arena = cw_arena_create();
    cw_request_init(&req, arena);
    memset(&err, 0, sizeof err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cw_request_fini(&req);
    cw_arena_destroy(arena);
    return 0;
}

static int parse(const char *text)
{
    return cw_jobfile_parse(&req, "dir/job.sh", text, strlen(text), NULL, &err);
}

static void test_directives(void **state)
{
    static const char text[] =
        "#!/bin/sh\n#CRUN -n 2 --mem=4G # two tasks\n\n# a comment\n  # another\n"
        "#SBATCH\t--time 1:00:00 -J 'a b'\n##CRUN --frob\n# CRUN --frob\n#CRUNCH -x\n#CRUN\n"
        "#CRUN --comment=\"it's \\\"ok\\\"\" -o out\\ file\ntrue\n";
    (void)state;
    if (parse(text) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(req.spec->ntasks, 2);
    assert_int_equal(req.spec->settings->mem_bytes, 4ull << 30);
    assert_int_equal(req.spec->time_limit_s, 3600);
    assert_string_equal(req.spec->name, "a b");
    assert_string_equal(req.spec->comment, "it's \"ok\"");
    assert_string_equal(req.spec->stdout_path, "out file");
    assert_true(req.saw_sbatch);
    assert_int_equal(req.warnings.n, 0);
    assert_int_equal(req.payload->script.len, strlen(text));
    assert_memory_equal(req.payload->script.data, text, strlen(text));
}

static void test_slurm_env(void **state)
{
    (void)state;
    assert_int_equal(parse("#!/bin/sh\n#CRUN -n2\n"), 0);
    assert_false(req.saw_sbatch);
    assert_int_equal(cw_request_finish(&req, NULL, "/w", &err), 0);
    assert_false(req.spec->slurm_env);
    assert_string_equal(req.spec->name, "job.sh");
    teardown(NULL);
    setup(NULL);
    assert_int_equal(parse("#!/bin/sh\n#SBATCH -n2\n"), 0);
    assert_int_equal(cw_request_finish(&req, NULL, "/w", &err), 0);
    assert_true(req.spec->slurm_env);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text, *refusal;
    } rows[] = {
        {"", "dir/job.sh:1:1: the first line must be #! and an interpreter, as in #!/bin/sh (or "
             "give --shell=PATH)"},
        {"echo\n", "dir/job.sh:1:1: the first line must be #! and an interpreter, as in #!/bin/sh "
                   "(or give --shell=PATH)"},
        {"#!/bin/sh\r\ntrue\r\n",
         "dir/job.sh:1:10: DOS line breaks (CRLF): convert the file to plain line feeds"},
        {"#!/bin/sh\n#CRUN -n2\r\n", "dir/job.sh:2:10: DOS line break (CR) in a directive"},
        {"#!/bin/sh\n#CRUN --frobnicate\n", "dir/job.sh:2:7: unknown option --frobnicate"},
        {"#!/bin/sh\n\n#SBATCH -n 2 --overcommit\n",
         "dir/job.sh:3:14: option --overcommit: not carried out: a core is never promised twice"},
        {"#!/bin/sh\n#CRUN -n 2 4\n", "dir/job.sh:2:12: '4' is not an option"},
        {"#!/bin/sh\n#CRUN -n 2 -- x\n", "dir/job.sh:2:12: '--' is not an option"},
        {"#!/bin/sh\n#CRUN -n2 -J 'a b\n", "dir/job.sh:2:14: the quote does not end"},
        {"#!/bin/sh\n#CRUN -J a\\\n", "dir/job.sh:2:11: the quote does not end"},
        {"#!/bin/sh\n#CRUN --time\n", "dir/job.sh:2:7: option --time: needs a value"},
        {"#!/bin/sh\n#CRUN --wrap=x\n",
         "dir/job.sh:2:7: option --wrap: is for the command line only"},
        {"#!/bin/sh\n#CRUN   -n0\n",
         "dir/job.sh:2:9: option --ntasks: '0' is not a whole number from 1 to 65536"},
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        teardown(NULL);
        setup(NULL);
        assert_int_equal(parse(rows[i].text), -EINVAL);
        assert_string_equal(err.text, rows[i].refusal);
    }
}

static void test_nul(void **state)
{
    (void)state;
    assert_int_equal(cw_jobfile_parse(&req, "f", "#!/bin/sh\nab\0c\n", 15, NULL, &err), -EINVAL);
    assert_string_equal(err.text, "f:2:3: NUL byte: this is not a text file");
}

static void test_size(void **state)
{
    cw_autofree char *big = cw_xmalloc(CW_JOBFILE_MAX + 1);
    (void)state;
    memset(big, '\n', CW_JOBFILE_MAX + 1);
    memcpy(big, "#!/bin/sh", 9);
    assert_int_equal(cw_jobfile_parse(&req, "f", big, CW_JOBFILE_MAX + 1, NULL, &err), -E2BIG);
    assert_string_equal(err.text, "f: 524289 bytes, a job file has at most 524288 (512 KiB)");
    assert_int_equal(cw_jobfile_parse(&req, "f", big, CW_JOBFILE_MAX, NULL, &err), 0);
}

static void test_warnings(void **state)
{
    static const char *const want[] = {
        "dir/job.sh:2: a blank is missing behind #CRUN: the line is a comment",
        "dir/job.sh:3:7: nothing is expanded in a directive: 'x-$USER' stays as it is",
        "dir/job.sh:4:7: option --mail-type is ignored: no mail is sent; use crun-wait",
        "dir/job.sh:6: directive ignored: it comes after the first command (line 5)",
    };
    (void)state;
    assert_int_equal(parse("#!/bin/sh\n#CRUN--time=5\n#CRUN -J x-$USER\n#CRUN "
                           "--mail-type=END\ntrue\n#SBATCH -n 9\n"),
                     0);
    assert_int_equal(req.warnings.n, CW_ARRAY_LEN(want));
    for (size_t i = 0; i < CW_ARRAY_LEN(want); i++)
        assert_string_equal(req.warnings.v[i], want[i]);
    assert_string_equal(req.spec->name, "x-$USER");
    assert_false(req.spec->has_ntasks);
    assert_false(req.saw_sbatch);
}

static void test_many_late(void **state)
{
    cw_autobuf struct cw_buf b = {0};
    (void)state;
    cw_buf_add_str(&b, "#!/bin/sh\ntrue\n");
    for (int i = 0; i < 1000; i++)
        cw_buf_add_str(&b, "#CRUN -n 1\n");
    assert_int_equal(parse(b.data), 0);
    assert_int_equal(req.warnings.n, 11);
}

static void test_shell(void **state)
{
    (void)state;
    req.shell = "/bin/bash";
    assert_int_equal(parse("echo hi\n"), 0);
    assert_int_equal(req.payload->script.len, strlen("#!/bin/bash\necho hi\n"));
    assert_memory_equal(req.payload->script.data, "#!/bin/bash\necho hi\n",
                        req.payload->script.len);
    assert_int_equal(parse("#!/bin/sh\n"), 0);
    assert_int_equal(req.payload->script.len, strlen("#!/bin/sh\n"));
}

static void test_prefix(void **state)
{
    (void)state;
    req.directive_prefix = "#MY";
    assert_int_equal(parse("#!/bin/sh\n#MY -n 3\n#CRUN --frob\n"), 0);
    assert_int_equal(req.spec->ntasks, 3);
}

static void test_stdin_name(void **state)
{
    (void)state;
    assert_int_equal(cw_jobfile_parse(&req, "-", "x", 1, NULL, &err), -EINVAL);
    assert_true(strncmp(err.text, "stdin:1:1: ", 11) == 0);
    assert_int_equal(cw_jobfile_parse(&req, "-", "#!/bin/sh\n", 10, NULL, &err), 0);
    assert_int_equal(cw_request_finish(&req, NULL, "/", &err), 0);
    assert_string_equal(req.spec->name, "stdin");
}

static void test_no_last_newline(void **state)
{
    (void)state;
    assert_int_equal(parse("#!/bin/sh\n#CRUN -n 3"), 0);
    assert_int_equal(req.spec->ntasks, 3);
}

/* words joined by |, each as COL:WORD */
static void test_split(void **state)
{
    static const struct {
        const char *line, *want;
    } rows[] = {
        {"", ""},
        {"  \t ", ""},
        {"# x", ""},
        {"a b", "1:a|3:b|"},
        {" a#b #c", "2:a#b|"},
        {"'a b'\"c d\"e", "1:a bc de|"},
        {"'' x", "1:|4:x|"},
        {"a\\ b \\#c", "1:a b|6:#c|"},
        {"\"\\$x \\q \\\\\"", "1:$x \\q \\|"},
        {"'\\'", "1:\\|"},
        {"'#' \"#\"", "1:#|5:#|"},
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        cw_autostrv struct cw_strv words = {0};
        cw_autobuf struct cw_buf got = {0};
        cw_autofree size_t *cols = NULL;
        assert_int_equal(cw_jobfile_split(rows[i].line, strlen(rows[i].line), &words, &cols, NULL),
                         0);
        for (size_t k = 0; k < words.n; k++)
            cw_buf_addf(&got, "%zu:%s|", cols[k], words.v[k]);
        assert_string_equal(cw_buf_str(&got), rows[i].want);
    }
}

static void test_split_refused(void **state)
{
    struct cw_strv words = {0};
    size_t *cols = NULL;
    (void)state;
    assert_int_equal(cw_jobfile_split("a \"b", 4, &words, &cols, &err), -EINVAL);
    assert_string_equal(err.text, "column 3: the quote does not end");
    assert_null(cols);
}

#define TEST(f, name)                                                                              \
    {                                                                                              \
        name, f, setup, teardown, NULL                                                             \
    }
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_directives, "directives of both kinds apply in file order, comments do not"),
        TEST(test_slurm_env, "only a used #SBATCH line asks for the SLURM_ twins"),
        TEST(test_refusals, "bad files are refused with file, line and column"),
        TEST(test_nul, "a NUL byte is refused with its place"),
        TEST(test_size, "a file above 512 KiB is refused with size and limit"),
        TEST(test_warnings, "likely mistakes give a warning with their line"),
        TEST(test_many_late, "a thousand late directives give eleven warnings"),
        TEST(test_shell, "--shell stands in for a missing #! and never for a present one"),
        TEST(test_prefix, "another prefix replaces both usual ones"),
        TEST(test_stdin_name, "standard input is called stdin"),
        TEST(test_no_last_newline, "a directive on a last line without a line feed counts"),
        TEST(test_split, "words follow POSIX quoting with their columns"),
        TEST(test_split_refused, "an open quote is refused with its column"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
