/* stepbook_test.c: steps of a running job from their number to their last word, over restarts. */
#include "ctld/stepbook.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ctld/ctldworld_test.h"
#include "ctld/jobview.h"
#include "ctld/lease.h"
#include "ctld/reconcile.h"
#include "ctld/row.h"
#include "model/node.h"

#define RUNNING CW__STATE__RUNNING
#define STARTING CW__STATE__STARTING

struct job {
    struct world *w;
    uint64_t id;
    struct cw_arena *arena;
    struct cw_steplayout layout;
    char *busy;
    struct cw_error err;
};

static void hold_it(Cw__JobRecord *rec)
{
    rec->spec->hold = true; /* placed by hand */
}

static void allocation(Cw__JobRecord *rec)
{
    rec->spec->hold = true;
    rec->spec->has_allocation = rec->spec->allocation = true;
    rec->spec->has_alloc_lease_s = true;
    rec->spec->alloc_lease_s = 60;
}

static struct cw_attempt *attempt(struct job *j)
{
    return cw_model_attempt(j->w->c.model, j->id);
}

/* Runs on n1 and n2, four cores each. */
static void make(struct job *j, void (*change)(Cw__JobRecord *rec))
{
    static const uint64_t mask = 0xf;
    static const char *const names[] = {"n1", "n2"};
    struct cw_partgrant parts[2];
    Cw__Grant g[2];
    *j = (struct job){.w = world_create(), .arena = cw_arena_create()};
    struct cw_job *job = world_submit(j->w, change);
    j->id = job->id;
    for (int k = 0; k < 2; k++) {
        cw__grant__init(&g[k]);
        g[k].node = (char *)names[k];
        g[k].cores = g[k].cpus = (char *)"0-3";
        g[k].mem_bytes = 1u << 30;
        parts[k] = (struct cw_partgrant){world_node_named(j->w, names[k], 4), &mask, &g[k]};
    }
    cw_model_grant(j->w->c.model, job, 0, parts, 2, cw_clock_real_ns());
    for (int k = 1; k >= 0; k--) {
        Cw__TaskStarted s = CW__TASK_STARTED__INIT;
        Cw__TaskKey key = CW__TASK_KEY__INIT;
        key.id = j->id;
        key.attempt = 1;
        s.key = &key;
        s.start_ns = cw_clock_real_ns();
        assert_int_equal(cw_model_started(j->w->c.model, parts[k].node, &s, s.start_ns), 0);
    }
    world_commit(j->w);
}

static void done(struct job *j)
{
    cw_arena_destroy(j->arena);
    world_destroy(j->w);
}

/* exact: so many cores on one node; 0: a step of two tasks, one on each. The number, or -errno. */
static int add(struct job *j, uint8_t key, uint32_t exact)
{
    Cw__StepSpec s = CW__STEP_SPEC__INIT;
    Cw__JobSpec job = CW__JOB_SPEC__INIT;
    uint8_t k[16] = {0xee, key};
    uint32_t number = 0;
    s.name = (char *)"work";
    s.has_ntasks = s.has_nodes = true;
    s.ntasks = exact > 0 ? exact : 2;
    s.nodes = exact > 0 ? 1 : 2;
    s.has_exact = s.exact = exact > 0;
    int rc = cw_stepbook_add(j->w->c.stepbook, attempt(j), "1", &job, &s, k, j->arena, &j->layout,
                             &number, &j->busy, &j->err);
    world_commit(j->w);
    return rc < 0 ? rc : (int)number;
}

static void report(struct job *j, uint32_t step, uint32_t node, bool started, uint32_t exit_code)
{
    static const char *const names[] = {"n1", "n2"};
    Cw__StepReport r = CW__STEP_REPORT__INIT;
    Cw__StepRecord s = CW__STEP_RECORD__INIT;
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    const Cw__TaskKey *key;
    s.id = j->id;
    s.attempt = 1;
    s.step = step;
    s.state = started ? RUNNING : CW__STATE__FAILED;
    s.has_cause = s.has_exit_code = !started;
    s.cause = CW__CAUSE__CAUSE_EXIT;
    s.exit_code = exit_code;
    r.step = &s;
    r.node = node;
    r.has_started = r.started = started;
    m.step = &r;
    assert_int_equal(cw_reconcile_record(&j->w->c, cw_model_node(j->w->c.model, names[node]), &m,
                                         &key),
                     0);
    world_commit(j->w);
}

/* Of the stored row. */
static const Cw__StepRecord *row(struct job *j, uint32_t step)
{
    uint8_t key[CW_ROW_STEP_KEY];
    ProtobufCMessage *m;
    cw_row_step_key(key, j->id, 1, step);
    assert_int_equal(cw_row_get(j->w->c.store, CW_TABLE_STEP, key, sizeof key,
                                &cw__step_record__descriptor, j->arena, &m, NULL),
                     0);
    return (const Cw__StepRecord *)m;
}

static void a_step_runs_when_all_nodes_do_and_ends_when_all_have(void **state)
{
    (void)state;
    struct job j;
    make(&j, hold_it);
    assert_int_equal(add(&j, 1, 0), 0);
    assert_int_equal(row(&j, 0)->state, STARTING);
    report(&j, 0, 0, true, 0);
    assert_int_equal(row(&j, 0)->state, STARTING);
    report(&j, 0, 1, true, 0);
    assert_int_equal(row(&j, 0)->state, RUNNING);
    report(&j, 0, 1, false, 3);
    report(&j, 0, 1, false, 9); /* a second time: changes nothing */
    assert_int_equal(row(&j, 0)->state, RUNNING);
    world_reopen(j.w);
    report(&j, 0, 0, false, 1);
    assert_int_equal(row(&j, 0)->state, CW__STATE__FAILED);
    assert_int_equal(row(&j, 0)->exit_code, 3);
    assert_int_equal(add(&j, 2, 0), 1);
    done(&j);
}

static void the_same_key_gives_the_same_step_before_and_after_a_restart(void **state)
{
    (void)state;
    struct job j;
    make(&j, hold_it);
    assert_int_equal(add(&j, 1, 3), 0);
    cw_autofree char *cores = cw_xstrdup(j.layout.nodes[0].cores);
    assert_string_equal(cores, "0-2");
    assert_int_equal(add(&j, 1, 3), 0);
    assert_string_equal(j.layout.nodes[0].cores, cores);
    world_reopen(j.w);
    assert_int_equal(add(&j, 1, 3), 0);
    assert_string_equal(j.layout.nodes[0].cores, cores);
    assert_int_equal(j.layout.n_nodes, 1);
    assert_int_equal(add(&j, 2, 3), 1);
    done(&j);
}

static void exact_steps_keep_their_cores_from_each_other_also_after_a_restart(void **state)
{
    (void)state;
    struct job j;
    make(&j, hold_it);
    assert_int_equal(add(&j, 1, 3), 0);
    assert_int_equal(add(&j, 2, 4), 1); /* the other node */
    assert_int_equal(add(&j, 3, 2), -EBUSY);
    assert_non_null(strstr(j.busy, "step 1.0 (work) has cores n1:0-2"));
    world_reopen(j.w);
    assert_int_equal(add(&j, 4, 2), -EBUSY);
    assert_int_equal(add(&j, 5, 1), 2);
    assert_string_equal(j.layout.nodes[0].cores, "3");
    report(&j, 0, 0, false, 0);
    assert_int_equal(add(&j, 6, 3), 3);
    assert_string_equal(j.layout.nodes[0].cores, "0-2");
    done(&j);
}

static void a_step_that_nobody_begins_lets_go_of_its_cores(void **state)
{
    (void)state;
    struct job j;
    make(&j, hold_it);
    assert_int_equal(add(&j, 1, 4), 0);
    int64_t now = cw_clock_real_ns();
    assert_true(cw_stepbook_due(j.w->c.stepbook, now) < now + 400 * CW_NS_PER_S);
    assert_true(cw_stepbook_due(j.w->c.stepbook, now + 400 * CW_NS_PER_S) == INT64_MAX);
    world_commit(j.w);
    assert_int_equal(row(&j, 0)->state, CW__STATE__CANCELLED);
    assert_int_equal(add(&j, 2, 4), 1);
    assert_string_equal(j.layout.nodes[0].cores, "0-3");
    done(&j);
}

static void the_end_of_the_attempt_ends_its_steps(void **state)
{
    (void)state;
    struct job j;
    make(&j, hold_it);
    assert_int_equal(add(&j, 1, 0), 0);
    report(&j, 0, 0, true, 0);
    cw_model_cancel(j.w->c.model, cw_model_job(j.w->c.model, j.id), NULL, 0, cw_clock_real_ns());
    Cw__TaskEnd e = CW__TASK_END__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    key.id = j.id;
    key.attempt = 1;
    e.key = &key;
    e.cause = CW__CAUSE__CAUSE_CANCEL;
    e.end_ns = cw_clock_real_ns();
    e.empty = true;
    assert_int_equal(cw_model_ended(j.w->c.model, cw_model_node(j.w->c.model, "n1"), &e, e.end_ns, 0), 0);
    assert_int_equal(cw_model_ended(j.w->c.model, cw_model_node(j.w->c.model, "n2"), &e, e.end_ns, 0), 0);
    world_commit(j.w);
    assert_int_equal(row(&j, 0)->state, CW__STATE__CANCELLED);
    assert_int_equal(row(&j, 0)->cause, CW__CAUSE__CAUSE_CANCEL);
    report(&j, 0, 1, false, 7); /* too late */
    assert_false(row(&j, 0)->has_exit_code);
    done(&j);
}

static void an_allocation_that_is_not_renewed_is_killed(void **state)
{
    (void)state;
    struct job j;
    make(&j, allocation);
    Cw__JobSpec spec = CW__JOB_SPEC__INIT;
    spec.has_allocation = spec.allocation = spec.has_alloc_lease_s = true;
    spec.alloc_lease_s = 60;
    cw_leases_renew(j.w->c.leases, j.id, &spec);
    int64_t now = cw_clock_real_ns();
    cw_leases_due(j.w->c.leases, now + 50 * CW_NS_PER_S);
    assert_int_equal(attempt(&j)->kill_step, 0);
    cw_leases_due(j.w->c.leases, now + 70 * CW_NS_PER_S);
    assert_int_equal(attempt(&j)->rec->kill_cause, CW__CAUSE__CAUSE_OWNER_GONE);
    done(&j);
}

static void a_restart_begins_a_lease_anew(void **state)
{
    (void)state;
    struct job j;
    make(&j, allocation);
    world_reopen(j.w);
    int64_t now = cw_clock_real_ns();
    assert_true(cw_leases_due(j.w->c.leases, now) > now + 50 * CW_NS_PER_S);
    cw_leases_due(j.w->c.leases, now + 70 * CW_NS_PER_S);
    assert_int_equal(attempt(&j)->rec->kill_cause, CW__CAUSE__CAUSE_OWNER_GONE);
    done(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_runs_when_all_nodes_do_and_ends_when_all_have),
        cmocka_unit_test(the_same_key_gives_the_same_step_before_and_after_a_restart),
        cmocka_unit_test(exact_steps_keep_their_cores_from_each_other_also_after_a_restart),
        cmocka_unit_test(a_step_that_nobody_begins_lets_go_of_its_cores),
        cmocka_unit_test(the_end_of_the_attempt_ends_its_steps),
        cmocka_unit_test(an_allocation_that_is_not_renewed_is_killed),
        cmocka_unit_test(a_restart_begins_a_lease_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
