/* Tests of stepenv.c. */
#include "spec/stepenv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static Cw__TaskKey key;
static Cw__JobSpec job;
static Cw__Owner owner;
static Cw__Payload payload;
static Cw__Grant grants[2], part;
static Cw__Grant *grant_list[2] = {&grants[0], &grants[1]};
static Cw__TaskStart start;
static Cw__StepSpec spec;
static Cw__StepLayout layout;
static uint32_t ranks[2] = {2, 3}, per_node[2] = {2, 2};
static char *nodes[2] = {(char *)"n1", (char *)"n2"};
static char *user_env[] = {(char *)"CRUN_PROCID=9", (char *)"FOO=bar", (char *)"CRUN_STEP_ID=8",
                           (char *)"PATH=/my"};
static struct cw_strv env;

static int setup(void **state)
{
    (void)state;
    cw__task_key__init(&key);
    cw__job_spec__init(&job);
    cw__owner__init(&owner);
    cw__payload__init(&payload);
    cw__grant__init(&part);
    cw__task_start__init(&start);
    cw__step_spec__init(&spec);
    cw__step_layout__init(&layout);
    for (int i = 0; i < 2; i++) {
        cw__grant__init(&grants[i]);
        grants[i].node = nodes[i];
        grants[i].cores = grants[i].cpus = (char *)"0-7";
        grants[i].has_ntasks = 1;
        grants[i].ntasks = 4;
    }
    part.node = nodes[1];
    part.cores = part.cpus = (char *)"4-7";
    key.id = 15;
    key.attempt = 1;
    job.workdir = (char *)"/job";
    start.key = &key;
    start.spec = &job;
    start.payload = &payload;
    start.owner = &owner;
    start.grant = &grants[1];
    start.has_node = 1;
    start.node = 1;
    start.n_grants = 2;
    start.grants = grant_list;
    spec.n_env = CW_ARRAY_LEN(user_env);
    spec.env = user_env;
    layout.node = 1;
    layout.nodes = nodes;
    layout.n_nodes = 2;
    layout.tasks_per_node = per_node;
    layout.n_tasks_per_node = 2;
    layout.ranks = ranks;
    layout.n_ranks = 2;
    layout.ntasks = 4;
    layout.grant = &part;
    memset(&env, 0, sizeof env);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cw_strv_fini(&env);
    return 0;
}

static void build(void)
{
    struct cw_stepenv_task t = {.step = 3, .rank = 3, .local = 1, .cpus = "6-7"};
    struct cw_jobenv_node n = {.name = "n2", .home = "/home/al", .user = "al", .shell = "/bin/sh"};
    cw_stepenv_build(&start, &spec, &layout, &t, &n, &env);
}

/* The value of a variable that is there exactly once; NULL: not there. */
static const char *value(const char *name)
{
    const char *found = NULL;
    size_t len = strlen(name);
    for (size_t i = 0; i < env.n; i++)
        if (strncmp(env.v[i], name, len) == 0 && env.v[i][len] == '=') {
            assert_null(found);
            found = env.v[i] + len + 1;
        }
    return found;
}

static void a_rank_has_its_numbers_and_the_user_cannot_set_them(void **state)
{
    (void)state;
    build();
    assert_string_equal(value("CRUN_JOB_ID"), "15");
    assert_string_equal(value("CRUN_STEP_ID"), "3");
    assert_string_equal(value("CRUN_PROCID"), "3");
    assert_string_equal(value("CRUN_LOCALID"), "1");
    assert_string_equal(value("CRUN_NODEID"), "1");
    assert_string_equal(value("CRUN_NTASKS"), "4");
    assert_string_equal(value("CRUN_NNODES"), "2");
    assert_string_equal(value("CRUN_NODELIST"), "n[1-2]");
    assert_string_equal(value("CRUN_TASKS_PER_NODE"), "2(x2)");
    assert_string_equal(value("CRUN_CPUSET"), "6-7");
    assert_string_equal(value("CRUN_CPUS_ON_NODE"), "4");
    assert_string_equal(value("FOO"), "bar");
    assert_string_equal(value("PATH"), "/my");
    assert_string_equal(value("PWD"), "/job");
    assert_null(value("SLURM_PROCID"));
}

static void slurms_names_come_when_asked_for_and_tell_step_from_job(void **state)
{
    (void)state;
    spec.has_slurm_env = spec.slurm_env = 1;
    nodes[0] = (char *)"n2"; /* the step is on one node of the two */
    layout.n_nodes = layout.n_tasks_per_node = 1;
    layout.node = 0;
    build();
    nodes[0] = (char *)"n1";
    assert_string_equal(value("SLURM_PROCID"), "3");
    assert_string_equal(value("SLURM_STEP_ID"), "3");
    assert_string_equal(value("SLURM_STEP_NODELIST"), "n2");
    assert_string_equal(value("SLURM_JOB_NODELIST"), "n[1-2]");
    assert_string_equal(value("SLURM_JOB_NUM_NODES"), "2");
    assert_string_equal(value("SLURM_NNODES"), "1");
    assert_string_equal(value("SLURM_GTIDS"), "2,3");
}

static void exec_keeps_the_jobs_numbers(void **state)
{
    (void)state;
    layout.has_exec = layout.exec = 1;
    spec.workdir = (char *)"/elsewhere";
    build();
    assert_string_equal(value("CRUN_STEP_ID"), "3");
    assert_string_equal(value("CRUN_NTASKS"), "8");
    assert_string_equal(value("CRUN_PROCID"), "0");
    assert_string_equal(value("PWD"), "/elsewhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_rank_has_its_numbers_and_the_user_cannot_set_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(slurms_names_come_when_asked_for_and_tell_step_from_job,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(exec_keeps_the_jobs_numbers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
