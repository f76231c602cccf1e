/* Dependencies: who waits for what, what can never be met, cascades, restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/model_fixture.h"

#define OK CW__DEPENDENCY_KIND__AFTEROK
#define ANY CW__DEPENDENCY_KIND__AFTERANY
#define NOTOK CW__DEPENDENCY_KIND__AFTERNOTOK

static const struct cw_partition main_part = {
    .name = "main", .is_default = true, .all_nodes = true};

static void setup(struct fix *f)
{
    fix_init(f);
    fix_partition(f, &main_part);
    fix_node(f, "n1", 16, 1 << 30, 0, NULL);
}

static void assert_sound(struct fix *f)
{
    struct cw_buf b = {0};
    if (cw_model_selfcheck(f->m, &b) != 0)
        fail_msg("%s", cw_buf_str(&b));
    cw_buf_fini(&b);
}

static void run(struct fix *f, uint64_t element, uint32_t code)
{
    fix_grant(f, cw_model_job(f->m, element), cw_model_node(f->m, "n1"), 5);
    fix_ended(f, element, 1, CW__CAUSE__CAUSE_EXIT, code, true, 9);
}

static const struct dep_row {
    Cw__DependencyKind kind;
    uint32_t code;
    bool starts;
} dep_rows[] = {
    {OK, 0, true},  {OK, 3, false},    {ANY, 0, true},
    {ANY, 3, true}, {NOTOK, 0, false}, {NOTOK, 3, true},
};

static void a_dependency_lets_go_or_ends_the_job_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(dep_rows); i++) {
        struct fix f;
        setup(&f);
        struct cw_job *a = fix_submit(&f, &(struct fix_job){0});
        struct cw_job *b =
            fix_submit(&f, &(struct fix_job){.deps = {{dep_rows[i].kind, a->id, false}}});
        uint64_t id = b->id;
        assert_false(cw_job_eligible(b));
        run(&f, a->id, dep_rows[i].code);
        assert_sound(&f);
        b = cw_model_job(f.m, id);
        if (dep_rows[i].starts) {
            assert_non_null(b);
            assert_true(cw_job_eligible(b));
            struct fix g;
            fix_restore(&f, &g);
            assert_true(cw_job_eligible(cw_model_job(g.m, id)));
            fix_fini(&g);
        } else {
            assert_null(b);
            assert_int_equal(f.last_final, id);
            assert_int_equal(f.last_final_state, CW__STATE__CANCELLED);
            assert_string_equal(f.last_reason, "DependencyNeverSatisfied");
        }
        fix_fini(&f);
    }
}

static void a_job_waits_for_all_of_its_dependencies(void **state)
{
    (void)state;
    struct fix f, g;
    setup(&f);
    struct cw_job *a = fix_submit(&f, &(struct fix_job){0}),
                  *b = fix_submit(&f, &(struct fix_job){.array = "0-1"});
    struct cw_job *c = fix_submit(
        &f,
        &(struct fix_job){.deps = {{OK, a->id, false}, {ANY, b->id, false}, {OK, a->id, false}}});
    uint64_t id = c->id, array = b->id;
    run(&f, a->id, 0);
    assert_false(cw_job_eligible(c));
    run(&f, array + 1, 1);
    assert_false(cw_job_eligible(c));
    fix_restore(&f, &g);
    assert_false(cw_job_eligible(cw_model_job(g.m, id)));
    run(&g, array + 2, 0);
    assert_true(cw_job_eligible(cw_model_job(g.m, id)));
    fix_fini(&g);
    run(&f, array + 2, 0);
    assert_true(cw_job_eligible(c));
    fix_fini(&f);
}

static void afterok_of_an_array_fails_with_its_first_failed_element(void **state)
{
    (void)state;
    struct fix f;
    setup(&f);
    struct cw_job *a = fix_submit(&f, &(struct fix_job){.array = "0-2"});
    struct cw_job *ok =
        fix_submit(&f, &(struct fix_job){.deps = {{OK, a->id, false}, {ANY, a->id, false}}});
    struct cw_job *any = fix_submit(&f, &(struct fix_job){.deps = {{ANY, a->id, false}}});
    struct cw_job *notok = fix_submit(&f, &(struct fix_job){.deps = {{NOTOK, a->id, false}}});
    uint64_t ok_id = ok->id, any_id = any->id, notok_id = notok->id, array = a->id;
    run(&f, array + 1, 0);
    assert_non_null(cw_model_job(f.m, ok_id));
    run(&f, array + 2, 4);
    assert_null(cw_model_job(f.m, ok_id));
    assert_false(cw_job_eligible(cw_model_job(f.m, any_id)));
    assert_sound(&f);
    struct cw_job *late;
    struct cw_error err = {0};
    assert_int_equal(
        fix_try_submit(&f, &(struct fix_job){.deps = {{OK, array, false}}}, &late, &err), -EINVAL);
    run(&f, array + 3, 0);
    assert_true(cw_job_eligible(cw_model_job(f.m, any_id)));
    assert_true(cw_job_eligible(cw_model_job(f.m, notok_id)));
    fix_fini(&f);
}

static void a_job_may_wait_for_one_element(void **state)
{
    (void)state;
    struct fix f, g;
    setup(&f);
    struct cw_job *a = fix_submit(&f, &(struct fix_job){.array = "0-9"});
    uint64_t array = a->id;
    struct cw_job *first = fix_submit(&f, &(struct fix_job){.deps = {{OK, array + 1, false}}});
    struct cw_job *last = fix_submit(&f, &(struct fix_job){.deps = {{OK, array + 10, false}}});
    uint64_t first_id = first->id, last_id = last->id;
    fix_grant(&f, a, cw_model_node(f.m, "n1"),
              5); /* live at the restart: its attempt comes back after the jobs */
    fix_restore(&f, &g);
    assert_false(cw_job_eligible(cw_model_job(g.m, first_id)));
    fix_ended(&g, array + 1, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 9);
    assert_true(cw_job_eligible(cw_model_job(g.m, first_id)));
    assert_sound(&g);
    fix_fini(&g);
    fix_ended(&f, array + 1, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 9);
    assert_true(cw_job_eligible(first));
    struct cw_job *late = fix_submit(&f, &(struct fix_job){.deps = {{OK, array + 1, false}}});
    assert_true(
        cw_job_eligible(late)); /* ended well already, and nothing of the array has failed */
    struct cw_idset nine = {0};
    cw_idset_add(&nine, 9, 9);
    cw_model_cancel(f.m, a, &nine, 0, 9);
    assert_null(cw_model_job(f.m, last_id));
    run(&f, array + 2, 1);
    struct cw_error err = {0};
    assert_int_equal(
        fix_try_submit(&f, &(struct fix_job){.deps = {{OK, array + 1, false}}}, &late, &err),
        -ENODATA);
    assert_int_equal(
        fix_try_submit(&f, &(struct fix_job){.deps = {{OK, array + 10, false}}}, &late, &err),
        -EINVAL);
    cw_idset_fini(&nine);
    fix_fini(&f);
}

/* Without recursion: a chain this long would need as many stack frames. */
static void a_chain_of_100000_ends_with_its_first_job(void **state)
{
    (void)state;
    enum { N = 100000 };
    struct fix f;
    setup(&f);
    uint64_t before = fix_submit(&f, &(struct fix_job){0})->id;
    for (int i = 1; i < N; i++)
        before = fix_submit(&f, &(struct fix_job){.deps = {{OK, before, false}}})->id;
    run(&f, 1, 1);
    assert_int_equal(f.n_final, N);
    assert_int_equal(cw_model_n_jobs(f.m), 0);
    assert_sound(&f);
    fix_fini(&f);
}

static void dependents_of_a_cancelled_job_hear_of_it(void **state)
{
    (void)state;
    struct fix f;
    setup(&f);
    struct cw_job *a = fix_submit(&f, &(struct fix_job){0});
    struct cw_job *b = fix_submit(&f, &(struct fix_job){.deps = {{ANY, a->id, false}}});
    struct cw_job *c =
        fix_submit(&f, &(struct fix_job){.array = "0-4", .deps = {{OK, a->id, false}}});
    uint64_t c_id = c->id;
    cw_model_cancel(f.m, a, NULL, 0, 9);
    assert_true(cw_job_eligible(b));
    assert_null(cw_model_job(f.m, c_id));
    struct cw_buf *row = cw_idtable_find(f.jobs, c_id);
    Cw__JobRecord *rec = cw__job_record__unpack(NULL, row->len, (uint8_t *)row->data);
    assert_int_equal(rec->worst_exit, 242);
    assert_int_equal(rec->n_cancelled, 5);
    cw__job_record__free_unpacked(rec, NULL);
    fix_fini(&f);
}

static void the_owner_can_resolve_a_predecessor_that_is_gone(void **state)
{
    (void)state;
    struct fix f;
    setup(&f);
    struct cw_job *a = fix_submit(&f, &(struct fix_job){0});
    struct cw_job *b = fix_submit(&f, &(struct fix_job){.deps = {{OK, a->id, false}}});
    cw_model_dependency_final(f.m, 999, true, 9);
    assert_false(cw_job_eligible(b));
    cw_model_dependency_final(f.m, a->id, true, 9);
    assert_true(cw_job_eligible(b));
    fix_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dependency_lets_go_or_ends_the_job_at_once),
        cmocka_unit_test(a_job_waits_for_all_of_its_dependencies),
        cmocka_unit_test(afterok_of_an_array_fails_with_its_first_failed_element),
        cmocka_unit_test(a_job_may_wait_for_one_element),
        cmocka_unit_test(a_chain_of_100000_ends_with_its_first_job),
        cmocka_unit_test(dependents_of_a_cancelled_job_hear_of_it),
        cmocka_unit_test(the_owner_can_resolve_a_predecessor_that_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
