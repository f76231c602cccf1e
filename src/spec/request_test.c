/* Tests of request.c, optwords.c, optlist.c and requestenv.c: words, precedence, merging,
 * completion. */
#include "spec/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "spec/check.h"

static struct cw_arena *arena;
static struct cw_request req;
static struct cw_error err;
static char *const env0[] = {(char *)"PATH=/bin", NULL};

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

#define ARGS(...) args((char *const[]){(char *)"crun-submit", __VA_ARGS__, NULL})
#define W (char *)
static int args(char *const *argv)
{
    int argc = 0, used = -1;
    while (argv[argc] != NULL)
        argc++;
    int rc = cw_request_args(&req, argc, argv, &used, &err);
    if (rc == 0 && used < argc)
        cw_request_set_argv(&req, argc - used, argv + used);
    return rc < 0 ? rc : used;
}

static int set(const char *name, const char *value, enum cw_origin origin, const char *where)
{
    return cw_request_set(&req, name, value, origin, where, &err);
}

static void finish(char *const *envp)
{
    if (cw_request_finish(&req, envp, "/home/u", &err) != 0)
        fail_msg("%s", err.text);
}

static void test_spellings(void **state)
{
    (void)state;
    assert_int_equal(ARGS(W "--ntasks=3", W "-c", W "2", W "-Jname", W "--time", W "10", W "-HQ",
                          W "-G", W "a100:2", W "--nice", W "--", W "cmd"),
                     12);
    assert_int_equal(req.spec->settings->gpus, 2);
    assert_int_equal(req.spec->ntasks, 3);
    assert_int_equal(req.spec->settings->cpus_per_task, 2);
    assert_string_equal(req.spec->name, "name");
    assert_int_equal(req.spec->time_limit_s, 600);
    assert_true(req.spec->hold && req.quiet && req.saw_dashes);
}

static void test_operands(void **state)
{
    (void)state;
    assert_int_equal(ARGS(W "-n4", W "job.sh", W "--verbose", W "-n", W "9"), 2);
    assert_int_equal(req.spec->ntasks, 4);
    assert_false(req.saw_dashes);
    assert_int_equal(req.payload->n_argv, 4);
    assert_int_equal(ARGS(W "-"), 1);
}

static void test_word_refusals(void **state)
{
    (void)state;
    assert_int_equal(ARGS(W "--tim=1"), -EINVAL);
    assert_string_equal(err.text, "unknown option --tim (--time?)");
    assert_int_equal(ARGS(W "--time"), -EINVAL);
    assert_string_equal(err.text, "option --time: needs a value");
    assert_int_equal(ARGS(W "-n"), -EINVAL);
    assert_string_equal(err.text, "option -n: needs a value");
    assert_int_equal(ARGS(W "--t=1"), -EINVAL);
    assert_string_equal(err.text, "unknown option --t (-t?)");
    assert_int_equal(ARGS(W "--=1"), -EINVAL);
    assert_int_equal(ARGS(W "-Hy"), -EINVAL);
    assert_string_equal(err.text, "unknown option -y");
}

static void test_argv_untouched(void **state)
{
    static const char *const odd[] = {
        "sh", "-c", "echo a > /x; echo \"b c\"", "a b", "'", "l1\nl2", "-x", "", "*"};
    (void)state;
    char *argv[CW_ARRAY_LEN(odd) + 3] = {W "crun-submit", W "--"};
    for (size_t i = 0; i < CW_ARRAY_LEN(odd); i++)
        argv[i + 2] = W odd[i];
    assert_int_equal(args(argv), 2);
    finish(env0);
    assert_int_equal(req.payload->n_argv, CW_ARRAY_LEN(odd));
    for (size_t i = 0; i < CW_ARRAY_LEN(odd); i++)
        assert_string_equal(req.payload->argv[i], odd[i]);
    assert_false(req.payload->has_script);
    assert_string_equal(req.spec->name, "sh");
}

static void test_precedence(void **state)
{
    (void)state;
    assert_int_equal(set("time", "1", CW_ORIGIN_COMMAND, NULL), 0);
    assert_int_equal(set("time", "2", CW_ORIGIN_DIRECTIVE, "a:b.sh:4:9"), 0);
    assert_int_equal(set("ntasks", "2", CW_ORIGIN_DIRECTIVE, "a:b.sh:5:9"), 0);
    assert_int_equal(set("n", "3", CW_ORIGIN_DIRECTIVE, "a:b.sh:6:9"), 0);
    assert_int_equal(set("J", "x", CW_ORIGIN_ENVIRONMENT, "CRUN_OPT_JOB_NAME"), 0);
    assert_int_equal(ARGS(W "--", W "true"), 2);
    finish(env0);
    assert_int_equal(req.spec->time_limit_s, 60);
    assert_int_equal(req.spec->ntasks, 3);
    assert_int_equal(req.origins.n, 3);
    assert_string_equal(req.origins.v[0], "time=00:01:00 (command line)");
    assert_string_equal(req.origins.v[1], "ntasks=3 (line 6)");
    assert_string_equal(req.origins.v[2], "job-name=x (CRUN_OPT_JOB_NAME)");
}

static void test_overridden_is_checked(void **state)
{
    (void)state;
    assert_int_equal(set("ntasks", "1", CW_ORIGIN_COMMAND, NULL), 0);
    assert_int_equal(set("ntasks", "x", CW_ORIGIN_DIRECTIVE, "f:2:7"), -EINVAL);
    assert_string_equal(err.text,
                        "f:2:7: option --ntasks: 'x' is not a whole number from 1 to 65536");
    assert_int_equal(req.spec->ntasks, 1);
}

static void test_mem_spellings(void **state)
{
    (void)state;
    assert_int_equal(set("mem", "1G", CW_ORIGIN_DIRECTIVE, "f:2:7"), 0);
    assert_int_equal(set("mem-per-cpu", "1G", CW_ORIGIN_DIRECTIVE, "f:3:7"), -EINVAL);
    assert_string_equal(err.text,
                        "f:3:7: option --mem-per-cpu: excludes --mem, which was given too");
    assert_int_equal(set("mem-per-cpu", "100", CW_ORIGIN_COMMAND, NULL), 0);
    assert_int_equal(ARGS(W "-n2", W "-c3", W "--", W "true"), 4);
    finish(env0);
    assert_int_equal(req.spec->settings->mem_bytes, 0);
    assert_int_equal(req.spec->settings->mem_per_cpu_bytes, 100 << 20);
    assert_string_equal(req.origins.v[0], "mem-per-cpu=100M (command line)");
}

static void test_lists_merge(void **state)
{
    (void)state;
    assert_int_equal(set("env", "A=1", CW_ORIGIN_COMMAND, NULL), 0);
    assert_int_equal(set("env", "A=2", CW_ORIGIN_DIRECTIVE, "f:2:7"), 0);
    assert_int_equal(set("env", "B=2", CW_ORIGIN_DIRECTIVE, "f:2:7"), 0);
    assert_int_equal(set("label", "k=1", CW_ORIGIN_DIRECTIVE, "f:2:7"), 0);
    assert_int_equal(set("label", "k=2", CW_ORIGIN_COMMAND, NULL), 0);
    assert_int_equal(set("volume", "/a:/m:ro", CW_ORIGIN_DIRECTIVE, "f:2:7"), 0);
    assert_int_equal(set("vol", "/b:/m", CW_ORIGIN_DIRECTIVE, "f:2:7"), 0);
    assert_int_equal(ARGS(W "--", W "true"), 2);
    finish((char *const[]){W "B=0", W "C=3", NULL});
    assert_int_equal(req.payload->n_env, 3);
    assert_string_equal(req.payload->env[0], "B=2");
    assert_string_equal(req.payload->env[1], "C=3");
    assert_string_equal(req.payload->env[2], "A=1");
    assert_int_equal(req.spec->n_labels, 1);
    assert_string_equal(req.spec->labels[0]->value, "2");
    assert_int_equal(req.spec->settings->n_volumes, 1);
    assert_string_equal(req.spec->settings->volumes[0]->source, "/b");
    assert_false(req.spec->settings->volumes[0]->has_read_only);
}

static void test_environment(void **state)
{
    (void)state;
    char *const envp[] = {W "CRUN_OPT_TIME=5",
                          W "CRUN_OPT_HOLD=1",
                          W "CRUN_OPT_NO_REQUEUE=no",
                          W "SBATCH_TIMELIMIT=9",
                          W "SBATCH_PARTITION=p",
                          W "SBATCH_WHATEVER=1",
                          NULL};
    assert_int_equal(cw_request_environ(&req, envp, false, &err), 0);
    assert_int_equal(req.spec->time_limit_s, 300);
    assert_true(req.spec->hold);
    assert_false(req.spec->no_requeue);
    assert_null(req.spec->partition);
    assert_int_equal(cw_request_environ(&req, envp, true, &err), 0);
    assert_string_equal(req.spec->partition, "p");
    assert_int_equal(req.spec->time_limit_s, 540);
}

static void test_environment_refusals(void **state)
{
    (void)state;
    assert_int_equal(
        cw_request_environ(&req, (char *const[]){W "CRUN_OPT_TIEM=5", NULL}, false, &err), -EINVAL);
    assert_string_equal(err.text, "CRUN_OPT_TIEM: there is no such option");
    assert_int_equal(cw_request_environ(&req, (char *const[]){W "CRUN_OPT_N=0", NULL}, false, &err),
                     -EINVAL);
    assert_int_equal(
        cw_request_environ(&req, (char *const[]){W "CRUN_OPT_NTASKS=0", NULL}, false, &err),
        -EINVAL);
    assert_string_equal(
        err.text, "CRUN_OPT_NTASKS: option --ntasks: '0' is not a whole number from 1 to 65536");
    assert_int_equal(
        cw_request_environ(&req, (char *const[]){W "SBATCH_EXCLUSIVE=user", NULL}, true, &err),
        -EINVAL);
    assert_int_equal(
        cw_request_environ(&req, (char *const[]){W "CRUN_OPT_SHELL=/bin/sh", NULL}, true, &err),
        -EINVAL);
    assert_string_equal(err.text, "CRUN_OPT_SHELL: option --shell: is for the command line only");
}

/* The environment that a job gets for each --export rule. */
static void test_export(void **state)
{
    static const struct {
        const char *rule, *want;
    } rows[] = {
        {NULL, "PATH=/bin|A=1|CRUN_CONF=/c|"},
        {"ALL", "PATH=/bin|A=1|CRUN_CONF=/c|"},
        {"NONE", "CRUN_CONF=/c|"},
        {"NIL", "CRUN_CONF=/c|"},
        {"A", "A=1|CRUN_CONF=/c|"},
        {"A,MISSING,B=2", "A=1|B=2|CRUN_CONF=/c|"},
        {"ALL,A=9,Q='x,y'", "PATH=/bin|A=9|CRUN_CONF=/c|Q=x,y|"},
    };
    char *const envp[] = {W "PATH=/bin",
                          W "A=1",
                          W "CRUN_JOB_ID=4",
                          W "SLURM_NTASKS=99",
                          W "SLURMD_NODENAME=n",
                          W "SBATCH_PARTITION=p",
                          W "CRUN_OPT_TIME=1",
                          W "CRUN_CONF=/c",
                          W "junk",
                          NULL};
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        cw_autobuf struct cw_buf got = {0};
        teardown(NULL);
        setup(NULL);
        if (rows[i].rule != NULL)
            assert_int_equal(set("export", rows[i].rule, CW_ORIGIN_COMMAND, NULL), 0);
        set("chdir", "/home/u", CW_ORIGIN_COMMAND, NULL);
        assert_int_equal(ARGS(W "--", W "true"), 2);
        finish(envp);
        for (size_t k = 0; k < req.payload->n_env; k++)
            cw_buf_addf(&got, "%s|", req.payload->env[k]);
        assert_string_equal(cw_buf_str(&got) + 0, rows[i].want);
        assert_int_equal(req.warnings.n, 0);
    }
}

static void test_export_of_job_variable(void **state)
{
    (void)state;
    assert_int_equal(set("export", "SLURM_NTASKS", CW_ORIGIN_COMMAND, NULL), 0);
    assert_int_equal(ARGS(W "--", W "true"), 2);
    finish((char *const[]){W "SLURM_NTASKS=9", NULL});
    assert_string_equal(
        req.warnings.v[0],
        "option --export: SLURM_NTASKS belongs to the surrounding job and is left out");
    assert_int_equal(req.payload->n_env, 0);
}

static void test_wrap(void **state)
{
    (void)state;
    assert_int_equal(ARGS(W "--wrap", W "echo a; echo b"), 3);
    finish(env0);
    assert_int_equal(req.payload->script.len, strlen("#!/bin/sh\necho a; echo b\n"));
    assert_memory_equal(req.payload->script.data, "#!/bin/sh\necho a; echo b\n",
                        req.payload->script.len);
    assert_string_equal(req.spec->name, "wrap");
    assert_int_equal(req.spec->shape, CW__SHAPE__SHAPE_BATCH);
    assert_string_equal(req.spec->workdir, "/home/u");
}

static void test_nothing_to_run(void **state)
{
    (void)state;
    assert_int_equal(cw_request_finish(&req, env0, "/", &err), -EINVAL);
    assert_string_equal(err.text, "nothing to run: give a job file, -- COMMAND or --wrap=TEXT");
    assert_int_equal(ARGS(W "--wrap=x", W "--", W "cmd"), 3);
    assert_int_equal(cw_request_finish(&req, env0, "/", &err), -EINVAL);
    assert_string_equal(err.text, "option --wrap: excludes a job file and a command");
}

static void test_defaults(void **state)
{
    (void)state;
    assert_int_equal(ARGS(W "-D", W "sub", W "--ntasks-per-node=2", W "--", W "/usr/bin/env"), 5);
    finish(env0);
    assert_string_equal(req.spec->name, "env");
    assert_string_equal(req.spec->workdir, "/home/u/sub");
    assert_int_equal(cw_spec_ntasks(req.spec), 2);
    assert_string_equal(req.payload->env[1], "CRUN_SUBMIT_DIR=/home/u");
}

static void test_tasks_per_node(void **state)
{
    (void)state;
    assert_int_equal(ARGS(W "-N1", W "-n4", W "--ntasks-per-node=2", W "--", W "true"), 5);
    assert_int_equal(cw_request_finish(&req, env0, "/", &err), -EINVAL);
    assert_string_equal(err.text,
                        "tasks: 4 do not fit on 1 nodes at 2 each");
}

#define TEST(f, name)                                                                              \
    {                                                                                              \
        name, f, setup, teardown, NULL                                                             \
    }
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_spellings, "options are read in every spelling"),
        TEST(test_operands, "options stop at the first operand"),
        TEST(test_word_refusals, "abbreviated, unknown and incomplete options are refused"),
        TEST(test_argv_untouched, "a command's words stay byte-identical"),
        TEST(test_precedence, "the stronger source wins whatever the order of the calls"),
        TEST(test_overridden_is_checked,
             "a bad value is refused even where a stronger source overrides it"),
        TEST(test_mem_spellings,
             "--mem-per-cpu replaces --mem of a weaker source and excludes it in the same"),
        TEST(test_lists_merge, "lists merge by key"),
        TEST(test_environment, "CRUN_OPT_ and SBATCH_ variables are options"),
        TEST(test_environment_refusals, "bad variables are refused with their name"),
        TEST(test_export, "the environment follows --export and never holds job variables"),
        TEST(test_export_of_job_variable, "naming a job variable in --export gives a notice"),
        TEST(test_wrap, "--wrap makes a script of its text"),
        TEST(test_nothing_to_run, "a request without or with two things to run is refused"),
        TEST(test_defaults, "name, folder and tasks have their defaults"),
        TEST(test_tasks_per_node, "tasks that one node may not hold are refused"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
