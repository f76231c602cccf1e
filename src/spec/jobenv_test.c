/* Tests of jobenv.c. */
#include "spec/jobenv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static Cw__TaskKey key;
static Cw__JobSpec spec;
static Cw__Settings settings;
static Cw__Payload payload;
static Cw__Owner owner;
static Cw__GpuGrant gpu[2];
static Cw__GpuGrant *gpus[] = {&gpu[0], &gpu[1]};
static Cw__Grant grant;
static Cw__TaskStart start;
static struct cw_jobenv_node node;
static struct cw_strv env;
static char *user_env[] = {
    (char *)"PATH=/my/bin",     (char *)"CRUN_JOB_ID=666",       (char *)"CRUN_CONF=/c",
    (char *)"SLURM_JOB_ID=777", (char *)"CRUN_SUBMIT_DIR=/from", (char *)"FOO=",
    (char *)"PWD=/old"};

static int setup(void **state)
{
    (void)state;
    cw__task_key__init(&key);
    cw__job_spec__init(&spec);
    cw__settings__init(&settings);
    cw__payload__init(&payload);
    cw__owner__init(&owner);
    cw__grant__init(&grant);
    cw__task_start__init(&start);
    key.id = 15;
    key.attempt = 2;
    spec.settings = &settings;
    spec.name = (char *)"name";
    spec.workdir = (char *)"/w";
    spec.has_ntasks = settings.has_cpus_per_task = 1;
    spec.ntasks = 2;
    settings.cpus_per_task = 3;
    payload.env = user_env;
    payload.n_env = CW_ARRAY_LEN(user_env);
    grant.node = (char *)"n1";
    grant.cores = (char *)"0-5";
    grant.cpus = (char *)"0-5,8-13";
    grant.mem_bytes = 3u << 20;
    start.key = &key;
    start.spec = &spec;
    start.payload = &payload;
    start.owner = &owner;
    start.grant = &grant;
    start.job_id = 15;
    start.partition = (char *)"main";
    node =
        (struct cw_jobenv_node){.name = "n1", .home = "/home/al", .user = "al", .shell = "/bin/sh"};
    memset(&env, 0, sizeof env);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cw_strv_fini(&env);
    return 0;
}

/* The only value of a variable, NULL when it is not there. */
static const char *value(const char *name)
{
    const char *found = NULL;
    size_t n = strlen(name);
    for (size_t i = 0; i < env.n; i++)
        if (strncmp(env.v[i], name, n) == 0 && env.v[i][n] == '=') {
            assert_null(found);
            found = env.v[i] + n + 1;
        }
    return found;
}

static void expect(const char *name, const char *want)
{
    const char *got = value(name);
    if (got == NULL || strcmp(got, want) != 0)
        fail_msg("%s is '%s', not '%s'", name, got != NULL ? got : "(none)", want);
}

static void test_plain(void **state)
{
    static const struct {
        const char *name, *want;
    } rows[] = {
        {"CRUN_JOB_ID", "15"},
        {"CRUN_JOB_NAME", "name"},
        {"CRUN_ATTEMPT", "2"},
        {"CRUN_RESTART_COUNT", "1"},
        {"CRUN_PARTITION", "main"},
        {"CRUN_USER", "al"},
        {"CRUN_SUBMIT_DIR", "/from"},
        {"CRUN_NODELIST", "n1"},
        {"CRUN_NNODES", "1"},
        {"CRUN_NODEID", "0"},
        {"CRUN_NODENAME", "n1"},
        {"CRUN_NTASKS", "2"},
        {"CRUN_PROCID", "0"},
        {"CRUN_LOCALID", "0"},
        {"CRUN_CPUS_ON_NODE", "12"},
        {"CRUN_CPUS_PER_TASK", "3"},
        {"CRUN_CPUSET", "0-5,8-13"},
        {"CRUN_MEM_BYTES", "3145728"},
        {"CRUN_GPUS", "0"},
        {"CRUN_CONF", "/c"},
        {"PATH", "/my/bin"},
        {"FOO", ""},
        {"HOME", "/home/al"},
        {"USER", "al"},
        {"LOGNAME", "al"},
        {"SHELL", "/bin/sh"},
        {"PWD", "/w"},
        {"SLURM_JOB_ID", "777"},
    };
    (void)state;
    cw_jobenv_build(&start, &node, &env);
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        expect(rows[i].name, rows[i].want);
    static const char *const absent[] = {"CRUN_ACCOUNT",  "CRUN_CLUSTER",      "TMPDIR",
                                         "CRUN_TMPDIR",   "CRUN_ARRAY_JOB_ID", "CRUN_START_TIME",
                                         "CRUN_JOB_GPUS", "SLURM_NTASKS",      "SLURMD_NODENAME"};
    for (size_t i = 0; i < CW_ARRAY_LEN(absent); i++)
        assert_null(value(absent[i]));
}

static void test_slurm(void **state)
{
    static const struct {
        const char *name, *want;
    } rows[] = {
        {"SLURM_JOB_ID", "15"},         {"SLURM_JOBID", "15"},
        {"SLURM_JOB_NODELIST", "n1"},   {"SLURM_NODELIST", "n1"},
        {"SLURM_NPROCS", "2"},          {"SLURM_TASKS_PER_NODE", "2"},
        {"SLURM_MEM_PER_NODE", "3"},    {"SLURM_CPUS_ON_NODE", "12"},
        {"SLURMD_NODENAME", "n1"},      {"SLURM_JOB_UID", "0"},
        {"SLURM_RESTART_COUNT", "1"},   {"SLURM_ARRAY_TASK_ID", "4"},
        {"SLURM_ARRAY_JOB_ID", "12"},   {"SLURM_ARRAY_TASK_COUNT", "3"},
        {"SLURM_ARRAY_TASK_MIN", "2"},  {"SLURM_ARRAY_TASK_MAX", "6"},
        {"SLURM_ARRAY_TASK_STEP", "2"}, {"CRUN_ARRAY_TASK_ID", "4"},
        {"CRUN_ARRAY_COUNT", "3"},      {"SLURM_JOB_START_TIME", "1000"},
        {"SLURM_JOB_END_TIME", "1060"}, {"SLURM_JOB_PARTITION", "main"},
    };
    (void)state;
    spec.has_slurm_env = spec.slurm_env = 1;
    start.has_index = start.has_array_count = start.has_array_min = start.has_array_max =
        start.has_array_step = 1;
    start.job_id = 12;
    start.index = 4;
    start.array_count = 3;
    start.array_min = start.array_step = 2;
    start.array_max = 6;
    start.has_time_left_ms = 1;
    start.time_left_ms = 60000;
    node.now_ns = 1000000000000;
    cw_jobenv_build(&start, &node, &env);
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        expect(rows[i].name, rows[i].want);
}

static void test_nodes(void **state)
{
    static const struct {
        const char *name, *want;
    } rows[] = {
        {"CRUN_NODELIST", "n[1-4]"},     {"CRUN_NNODES", "4"},
        {"CRUN_NODEID", "1"},            {"CRUN_NODENAME", "n2"},
        {"CRUN_NTASKS", "7"},            {"CRUN_TASKS_PER_NODE", "2(x3),1"},
        {"CRUN_CPUS_ON_NODE", "12"},     {"CRUN_HOSTFILE", "/h"},
        {"SLURM_JOB_NODELIST", "n[1-4]"}, {"SLURM_NNODES", "4"},
        {"SLURM_JOB_NUM_NODES", "4"},    {"SLURM_NTASKS", "7"},
        {"SLURM_NODEID", "1"},           {"SLURM_TASKS_PER_NODE", "2(x3),1"},
        {"SLURM_CPUS_ON_NODE", "12"},    {"SLURM_JOB_CPUS_PER_NODE", "4(x2),8,4"},
    };
    Cw__Grant all[4], *list[4];
    char *const names[] = {(char *)"n1", (char *)"n2", (char *)"n3", (char *)"n4"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        cw__grant__init(&all[i]);
        all[i].node = names[i];
        all[i].cpus = (char *)(i == 2 ? "0-7" : "0-3");
        all[i].has_ntasks = 1;
        all[i].ntasks = i < 3 ? 2 : 1;
        list[i] = &all[i];
    }
    spec.has_slurm_env = spec.slurm_env = 1;
    payload.n_env = 0;
    start.n_grants = 4;
    start.grants = list;
    start.has_node = 1;
    start.node = 1;
    node.name = "n2";
    node.hostfile = "/h";
    cw_jobenv_build(&start, &node, &env);
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        expect(rows[i].name, rows[i].want);
    cw_autobuf struct cw_buf hosts = {0};
    cw_jobenv_hostfile(&start, &hosts);
    assert_string_equal(cw_buf_str(&hosts), "n1 slots=2\nn2 slots=2\nn3 slots=2\nn4 slots=1\n");
    cw_strv_fini(&env);
    memset(&env, 0, sizeof env);
    all[0].node = names[3]; /* its head is not the first by name */
    all[3].node = names[0];
    cw_jobenv_build(&start, &node, &env);
    expect("CRUN_NODELIST", "n4,n2,n3,n1");
}

static void test_gpus(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        cw__gpu_grant__init(&gpu[i]);
    gpu[0].index = 1;
    gpu[1].index = 3;
    gpu[1].uuid = (char *)"GPU-x";
    grant.gpus = gpus;
    grant.n_gpus = 2;
    spec.has_slurm_env = spec.slurm_env = 1;
    cw_jobenv_build(&start, &node, &env);
    expect("CRUN_GPUS", "2");
    expect("CRUN_JOB_GPUS", "1,GPU-x");
    expect("SLURM_JOB_GPUS", "1,3");
    expect("SLURM_GPUS_ON_NODE", "2");
}

static void test_empty_env(void **state)
{
    (void)state;
    payload.n_env = 0;
    node = (struct cw_jobenv_node){.name = "n1", .tmpdir = "/t"};
    cw_jobenv_build(&start, &node, &env);
    expect("PATH", "/usr/local/bin:/usr/bin:/bin");
    expect("TMPDIR", "/t");
    expect("CRUN_TMPDIR", "/t");
    expect("CRUN_SUBMIT_DIR", "/w");
    assert_null(value("HOME"));
    assert_null(value("CRUN_USER"));
}

#define TEST(f, name)                                                                              \
    {                                                                                              \
        name, f, setup, teardown, NULL                                                             \
    }
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_plain, "a job has its CRUN_ variables once, whatever the user set"),
        TEST(test_slurm, "the SLURM_ twins come when asked for, arrays and times too"),
        TEST(test_nodes, "a job on several nodes has all of them, in the order of their numbers"),
        TEST(test_gpus, "granted GPUs are named"),
        TEST(test_empty_env, "an empty environment gets a PATH and what the node knows"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
