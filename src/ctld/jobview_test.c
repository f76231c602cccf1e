/* jobview_test.c: jobs and elements as rows, alive and ended; selectors against indices. */
#include "ctld/jobview.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ctld/ctldworld_test.h"
#include "ctld/eventlog.h"
#include "ctld/jobfilter.h"
#include "ctld/row.h"
#include "ctld/turn.h"
#include "model/node.h"

static Cw__ArraySpec array = CW__ARRAY_SPEC__INIT;

static void make_array(Cw__JobRecord *rec)
{
    array.indices = (char *)"0-3,10";
    rec->spec->array = &array;
}

static void make_labelled(Cw__JobRecord *rec)
{
    static Cw__KeyValue label = CW__KEY_VALUE__INIT, *labels[] = {&label};
    label.key = (char *)"team";
    label.value = (char *)"red";
    rec->spec->labels = labels;
    rec->spec->n_labels = 1;
}

static Cw__JobInfo *info(struct world *w, uint64_t id, struct cw_arena *a)
{
    struct cw_jobsrc s;
    bool is_element;
    uint64_t ordinal;
    assert_int_equal(cw_jobview_find(&w->c, id, a, &s, &is_element, &ordinal, NULL), 0);
    Cw__JobInfo *i =
        is_element ? cw_jobview_element(&w->c, &s, ordinal, a) : cw_jobview_info(&w->c, &s, a);
    cw_jobsrc_fini(&s);
    return i;
}

static int setup(void **state)
{
    *state = world_create();
    return 0;
}

static int teardown(void **state)
{
    world_commit(*state);
    world_destroy(*state);
    return 0;
}

static void a_waiting_array_shows_its_indices_and_counts(void **state)
{
    struct world *w = *state;
    struct cw_arena *a = cw_arena_create();
    world_node(w, 2);
    uint64_t id = world_submit(w, make_array)->id;
    world_commit(w); /* two elements start */
    Cw__JobInfo *i = info(w, id, a);
    assert_int_equal(i->count, 5);
    assert_string_equal(i->pending_indices, "2-3,10");
    i = info(w, id + 1, a);
    assert_int_equal(i->state, CW__STATE__STARTING);
    assert_int_equal(i->array_id, id);
    assert_int_equal(i->index, 0);
    i = info(w, id + 5, a);
    assert_int_equal(i->state, CW__STATE__PENDING);
    assert_int_equal(i->index, 10);
    assert_true(i->reason != NULL && strcmp(i->reason, "None") != 0);
    cw_arena_destroy(a);
}

static void an_ended_element_of_a_live_array_is_known(void **state)
{
    struct world *w = *state;
    struct cw_arena *a = cw_arena_create();
    world_node(w, 2);
    uint64_t id = world_submit(w, make_array)->id;
    world_commit(w);
    world_end(w, id + 1, 1, 3);
    world_commit(w);
    Cw__JobInfo *i = info(w, id + 1, a);
    assert_int_equal(i->state, CW__STATE__FAILED);
    assert_int_equal(i->exit_status, 3);
    assert_int_equal(info(w, id, a)->n_failed, 1);
    cw_arena_destroy(a);
}

static void an_ended_array_exits_with_its_worst(void **state)
{
    struct world *w = *state;
    struct cw_arena *a = cw_arena_create();
    world_node(w, 5);
    uint64_t id = world_submit(w, make_array)->id;
    world_commit(w);
    for (uint32_t k = 0; k < 5; k++)
        world_end(w, id + 1 + k, 1, k);
    world_commit(w);
    assert_null(cw_model_job(w->c.model, id));
    Cw__JobInfo *i = info(w, id, a);
    assert_int_equal(i->state, CW__STATE__FAILED);
    assert_int_equal(i->exit_status, 4);
    assert_int_equal(i->n_completed, 1);
    assert_true(i->has_end_ns);
    assert_int_equal(info(w, id + 1, a)->state, CW__STATE__COMPLETED);
    cw_arena_destroy(a);
}

static void a_job_cancelled_before_it_started_exits_with_241(void **state)
{
    struct world *w = *state;
    struct cw_arena *a = cw_arena_create();
    struct cw_job *j = world_submit(w, NULL);
    uint64_t id = j->id;
    cw_model_cancel(w->c.model, j, NULL, 1000, cw_clock_real_ns());
    world_commit(w);
    Cw__JobInfo *i = info(w, id, a);
    assert_int_equal(i->state, CW__STATE__CANCELLED);
    assert_int_equal(i->exit_status, 241);
    assert_null(i->attempt);
    cw_arena_destroy(a);
}

static void an_id_that_was_never_given_does_not_exist(void **state)
{
    struct world *w = *state;
    struct cw_arena *a = cw_arena_create();
    struct cw_jobsrc s;
    struct cw_error err;
    uint64_t id = world_submit(w, NULL)->id;
    world_commit(w);
    assert_int_equal(cw_jobview_find(&w->c, id + 1, a, &s, NULL, NULL, &err), -ENOENT);
    assert_string_equal(err.text, "job 2 does not exist");
    assert_int_equal(cw_jobview_find(&w->c, 0, a, &s, NULL, NULL, &err), -ENOENT);
    cw_arena_destroy(a);
}

static void indices_of_a_selector_become_ordinals(void **state)
{
    (void)state;
    static const struct {
        const char *sel, *indices, *ordinals;
    } rows[] = {
        {"1_[0-3]", "0-9", "0-3"}, {"1_[5,20]", "0-9,20", "5,10"},  {"1", "4-6", "0-2"},
        {"1_7", "0-6", ""},        {"1_[0-100]", "10-20:5", "0-2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cw_selector sel = {0};
        struct cw_idset indices = {0}, got = {0};
        cw_autobuf struct cw_buf text = {0};
        assert_int_equal(cw_selector_parse(rows[i].sel, &sel, NULL), 0);
        assert_int_equal(
            cw_idset_parse(rows[i].indices, strlen(rows[i].indices), 1000, &indices, NULL), 0);
        cw_jobfilter_ordinals(&sel, &indices, &got);
        cw_idset_format(&got, &text);
        assert_string_equal(cw_buf_str(&text), rows[i].ordinals);
        cw_idset_fini(&indices);
        cw_idset_fini(&got);
        cw_selector_fini(&sel);
    }
}

static void put_step(struct world *w, uint64_t id, uint32_t attempt, uint32_t step)
{
    uint8_t key[CW_ROW_STEP_KEY];
    Cw__StepRecord r = CW__STEP_RECORD__INIT;
    r.id = id;
    r.attempt = attempt;
    r.step = step;
    r.state = CW__STATE__RUNNING;
    cw_row_step_key(key, id, attempt, step);
    cw_row_put(cw_turn_batch(w->c.turn), CW_TABLE_STEP, key, sizeof key, 0, &r.base);
}

static void steps_are_those_of_the_attempt_in_order(void **state)
{
    struct world *w = *state;
    struct cw_arena *a = cw_arena_create();
    world_node(w, 2);
    uint64_t id = world_submit(w, NULL)->id;
    world_commit(w);
    put_step(w, id, 1, 1);
    put_step(w, id, 1, 0);
    put_step(w, id, 2, 7);
    put_step(w, id + 1, 1, 8);
    world_commit(w);
    Cw__JobInfo *i = info(w, id, a);
    cw_jobview_steps(&w->c, i, a);
    assert_int_equal(i->n_steps, 2);
    assert_int_equal(i->steps[0]->step, 0);
    assert_int_equal(i->steps[1]->step, 1);
    cw_arena_destroy(a);
}

static void events_are_seen_by_owner_job_and_kind(void **state)
{
    char *kinds[] = {"end", "start"};
    Cw__EventRecord e = CW__EVENT_RECORD__INIT;
    struct cw_eventsel s = {.uid = 1000};
    (void)state;
    e.kind = "end";
    assert_false(cw_eventsel_match(&s, &e)); /* of a node: administrators only */
    e.has_job_id = e.has_owner = true;
    e.job_id = 12;
    e.owner = 1000;
    assert_true(cw_eventsel_match(&s, &e));
    e.owner = 0;
    assert_false(cw_eventsel_match(&s, &e));
    s.all = true;
    assert_true(cw_eventsel_match(&s, &e));
    s.kinds = kinds;
    s.n_kinds = 2;
    assert_true(cw_eventsel_match(&s, &e));
    e.kind = "submit";
    assert_false(cw_eventsel_match(&s, &e));
    s.n_kinds = 0;
    s.has_ids = true;
    assert_false(cw_eventsel_match(&s, &e));
    cw_idset_add(&s.ids, 10, 12);
    assert_true(cw_eventsel_match(&s, &e));
    cw_idset_fini(&s.ids);
}

static void a_label_an_account_and_a_node_narrow_live_jobs(void **state)
{
    struct world *w = *state;
    struct cw_jobfilter f;
    Cw__JobFilter m = CW__JOB_FILTER__INIT;
    Cw__KeyValue label = CW__KEY_VALUE__INIT, *labels[] = {&label};
    char *names[] = {"n2"};
    world_node(w, 2);
    uint64_t id = world_submit(w, make_labelled)->id;
    world_commit(w);
    struct cw_job *j = cw_model_job(w->c.model, id);
    label.key = "team";
    label.value = "red";
    m.labels = labels;
    m.n_labels = 1;
    assert_int_equal(cw_jobfilter_init(&f, &m, NULL), 0);
    assert_false(cw_jobfilter_is_empty(&f));
    assert_true(cw_jobfilter_live(&f, j, "main"));
    label.value = "blue";
    assert_false(cw_jobfilter_live(&f, j, "main"));
    m.n_labels = 0;
    m.nodes = names;
    m.n_nodes = 1;
    assert_false(cw_jobfilter_live(&f, j, "main"));
    names[0] = "n1";
    assert_true(cw_jobfilter_live(&f, j, "main"));
    m.n_nodes = 0;
    m.accounts = names;
    m.n_accounts = 1;
    assert_false(cw_jobfilter_live(&f, j, "main"));
    cw_jobfilter_fini(&f);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_waiting_array_shows_its_indices_and_counts),
        T(an_ended_element_of_a_live_array_is_known),
        T(an_ended_array_exits_with_its_worst),
        T(a_job_cancelled_before_it_started_exits_with_241),
        T(an_id_that_was_never_given_does_not_exist),
        T(steps_are_those_of_the_attempt_in_order),
        T(a_label_an_account_and_a_node_narrow_live_jobs),
        cmocka_unit_test(events_are_seen_by_owner_job_and_kind),
        cmocka_unit_test(indices_of_a_selector_become_ordinals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
