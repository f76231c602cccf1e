/* steplayout_test.c: tasks, ranks, cores and GPUs of steps, one case a line. */
#include "ctld/steplayout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>


struct world {
    Cw__AttemptRecord rec;
    Cw__Grant grant[3], *more[2];
    Cw__GpuGrant gpu, *gpus[1];
    Cw__JobSpec job;
    Cw__StepSpec step;
    struct cw_idset held_cores[3], held_gpus[3];
};

/* Three nodes of four cores, one GPU each, two tasks each. */
static void make_job(struct world *w)
{
    static char *const names[] = {(char *)"n1", (char *)"n2", (char *)"n3"};
    memset(w, 0, sizeof *w);
    cw__attempt_record__init(&w->rec);
    cw__job_spec__init(&w->job);
    cw__step_spec__init(&w->step);
    cw__gpu_grant__init(&w->gpu);
    w->gpus[0] = &w->gpu;
    for (int k = 0; k < 3; k++) {
        cw__grant__init(&w->grant[k]);
        w->grant[k].node = names[k];
        w->grant[k].cores = (char *)"0-3";
        w->grant[k].cpus = (char *)"0-7";
        w->grant[k].mem_bytes = 1u << 30;
        w->grant[k].has_ntasks = true;
        w->grant[k].ntasks = 2;
        w->grant[k].n_gpus = 1;
        w->grant[k].gpus = w->gpus;
    }
    w->rec.grant = &w->grant[0];
    w->more[0] = &w->grant[1];
    w->more[1] = &w->grant[2];
    w->rec.n_more_grants = 2;
    w->rec.more_grants = w->more;
}

static void hold(struct world *w, int node, const char *cores)
{
    assert_int_equal(cw_idset_parse(cores, strlen(cores), 99, &w->held_cores[node], NULL), 0);
}

/* "n1: 0 1 @0-3 g0; n2: ..." or the sentence of the refusal. */
static const char *lay(struct world *w, int *ret_rc)
{
    static char text[1024];
    struct cw_stepask ask = {.id = "12",
                             .rec = &w->rec,
                             .job = &w->job,
                             .spec = &w->step,
                             .held_cores = w->held_cores,
                             .held_gpus = w->held_gpus,
                             .n_held = 3};
    struct cw_arena *a = cw_arena_create();
    struct cw_steplayout l;
    struct cw_error err;
    cw_autobuf struct cw_buf b = {0};
    *ret_rc = cw_steplayout_make(&ask, a, &l, &err);
    for (uint32_t i = 0; *ret_rc == 0 && i < l.n_nodes; i++) {
        cw_buf_addf(&b, "%sn%u:", i > 0 ? "; " : "", l.nodes[i].job_node + 1);
        for (uint32_t k = 0; k < l.nodes[i].n_ranks; k++)
            cw_buf_addf(&b, " %u", l.nodes[i].ranks[k]);
        cw_buf_addf(&b, " @%s g%s", l.nodes[i].cores, l.nodes[i].gpus);
    }
    snprintf(text, sizeof text, "%s", *ret_rc == 0 ? cw_buf_str(&b) : err.text);
    cw_arena_destroy(a);
    for (int k = 0; k < 3; k++) {
        cw_idset_fini(&w->held_cores[k]);
        cw_idset_fini(&w->held_gpus[k]);
    }
    return text;
}

static const struct {
    const char *name;
    uint32_t ntasks, nodes, cpus;
    int gpus; /* -1: not given */
    const char *list, *distribution, *held[3];
    bool exact, exec;
    int rc;
    const char *want;
} cases[] = {
    {"nothing asked: the job's tasks, all its cores", 0, 0, 0, -1, NULL, NULL, {0}, false, false, 0,
     "n1: 0 1 @0-3 g0; n2: 2 3 @0-3 g0; n3: 4 5 @0-3 g0"},
    {"fewer tasks than nodes take fewer nodes", 2, 0, 0, -1, NULL, NULL, {0}, false, false, 0,
     "n1: 0 @0-3 g0; n2: 1 @0-3 g0"},
    {"each node gets one task before any gets two", 4, 0, 0, -1, NULL, NULL, {0}, false, false, 0,
     "n1: 0 1 @0-3 g0; n2: 2 @0-3 g0; n3: 3 @0-3 g0"},
    {"cyclic ranks go round", 4, 0, 0, -1, NULL, "cyclic", {0}, false, false, 0,
     "n1: 0 3 @0-3 g0; n2: 1 @0-3 g0; n3: 2 @0-3 g0"},
    {"one node holds as many tasks as it has cores", 4, 1, 0, -1, NULL, NULL, {0}, false, false, 0,
     "n1: 0 1 2 3 @0-3 g0"},
    {"nodes by name", 2, 0, 0, -1, "n[2-3]", NULL, {0}, false, false, 0,
     "n2: 0 @0-3 g0; n3: 1 @0-3 g0"},
    {"a node that is not the job's", 0, 0, 0, -1, "n9", NULL, {0}, false, false, -EINVAL,
     "node n9 is none of job 12"},
    {"more nodes than the job has", 0, 4, 0, -1, NULL, NULL, {0}, false, false, -EINVAL,
     "job 12 has 3 nodes, the step asks for 4"},
    {"more tasks than cores", 13, 0, 0, -1, NULL, NULL, {0}, false, false, -EINVAL,
     "job 12 holds 12 cores on 3 nodes: 13 tasks of 1 core do not fit"},
    {"wide tasks count their cores", 4, 0, 3, -1, NULL, NULL, {0}, false, false, -EINVAL,
     "job 12 holds 12 cores on 3 nodes: 4 tasks of 3 cores do not fit"},
    {"two GPUs on one node of an allocation with one each (X19)", 1, 1, 0, 2, NULL, NULL, {0},
     false, false, -EINVAL, "allocation has 1 GPU per node, the step asks for 2 on 1 node"},
    {"two GPUs on two nodes", 2, 2, 0, 2, NULL, NULL, {0}, false, false, 0,
     "n1: 0 @0-3 g0; n2: 1 @0-3 g0"},
    {"no GPUs", 1, 1, 0, 0, NULL, NULL, {0}, false, false, 0, "n1: 0 @0-3 g"},
    {"exact takes only what it needs", 2, 1, 1, -1, NULL, NULL, {0}, true, false, 0,
     "n1: 0 1 @0-1 g0"},
    {"exact goes where there is room", 2, 1, 1, -1, NULL, NULL, {"0-3", "0-2", "0"}, true, false, 0,
     "n3: 0 1 @1-2 g0"},
    {"exact waits for what others keep", 4, 1, 1, -1, NULL, NULL, {"0", "0", "0"}, true, false,
     -EBUSY, "4 tasks of 1 core: other steps have the cores"},
    {"exact does not wait for what can never be", 5, 1, 1, -1, NULL, NULL, {"0", "0", "0"}, true,
     false, -EINVAL, "job 12 holds 12 cores on 3 nodes: 5 tasks of 1 core do not fit"},
    {"what is not exact is kept out by nobody", 1, 1, 1, -1, NULL, NULL, {"0-3", "0-3", "0-3"},
     false, false, 0, "n1: 0 @0-3 g0"},
    {"exec: one task on the head with everything", 0, 0, 0, -1, NULL, NULL, {"0-3"}, false, true, 0,
     "n1: 0 @0-3 g0"},
    {"exec on a named node", 0, 0, 0, -1, "n2", NULL, {0}, false, true, 0, "n2: 0 @0-3 g0"},
};

static void tasks_go_where_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        struct world w;
        int rc;
        make_job(&w);
        w.step.has_ntasks = cases[i].ntasks != 0;
        w.step.ntasks = cases[i].ntasks;
        w.step.has_nodes = cases[i].nodes != 0;
        w.step.nodes = cases[i].nodes;
        w.step.has_cpus_per_task = cases[i].cpus != 0;
        w.step.cpus_per_task = cases[i].cpus;
        w.step.has_gpus = cases[i].gpus >= 0;
        w.step.gpus = cases[i].gpus >= 0 ? (uint32_t)cases[i].gpus : 0;
        w.step.nodelist = (char *)cases[i].list;
        w.step.distribution = (char *)cases[i].distribution;
        w.step.has_exact = w.step.exact = cases[i].exact;
        w.step.has_exec = w.step.exec = cases[i].exec;
        for (int k = 0; k < 3; k++)
            if (cases[i].held[k] != NULL)
                hold(&w, k, cases[i].held[k]);
        const char *got = lay(&w, &rc);
        if (rc != cases[i].rc || strcmp(got, cases[i].want) != 0)
            fail_msg("%s: %d '%s', want %d '%s'", cases[i].name, rc, got, cases[i].rc,
                     cases[i].want);
    }
}

static void memory_that_the_allocation_lacks_is_refused(void **state)
{
    (void)state;
    struct world w;
    int rc;
    make_job(&w);
    w.step.has_mem_bytes = true;
    w.step.mem_bytes = 2u << 30;
    const char *got = lay(&w, &rc);
    assert_int_equal(rc, -EINVAL);
    assert_non_null(strstr(got, "of memory on node n1"));
}

static void the_jobs_cores_per_task_are_the_steps(void **state)
{
    (void)state;
    struct world w;
    int rc;
    Cw__Settings settings = CW__SETTINGS__INIT;
    make_job(&w);
    settings.has_cpus_per_task = true;
    settings.cpus_per_task = 2;
    w.job.settings = &settings;
    w.step.has_exact = w.step.exact = true;
    w.step.has_ntasks = true;
    w.step.ntasks = 1;
    assert_string_equal(lay(&w, &rc), "n1: 0 @0-1 g0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_go_where_the_table_says),
        cmocka_unit_test(memory_that_the_allocation_lacks_is_refused),
        cmocka_unit_test(the_jobs_cores_per_task_are_the_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
