/* allocation_test.c: how a job without a leader ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model_fixture.h"

#define S INT64_C(1000000000)

static const struct cw_partition main_part = {
    .name = "main", .is_default = true, .all_nodes = true};

struct alloc {
    struct fix f;
    struct cw_node *n[2];
    struct cw_job *j;
    struct cw_attempt *a;
};

static void make(struct alloc *x)
{
    fix_init(&x->f);
    fix_partition(&x->f, &main_part);
    x->n[0] = fix_node(&x->f, "n1", 4, 1 << 30, 0, NULL);
    x->n[1] = fix_node(&x->f, "n2", 4, 1 << 30, 0, NULL);
    x->j = fix_submit(&x->f, &(struct fix_job){.cores = 1, .no_requeue = true});
}

static void run(struct alloc *x)
{
    x->a = fix_grant_on(&x->f, x->j, x->n, 2, 5);
    fix_part_started(&x->f, x->n[1], x->j->id, 1, 1 * S);
    fix_part_started(&x->f, x->n[0], x->j->id, 1, 2 * S);
    fix_trail(&x->f);
}

static void end(struct alloc *x, uint64_t id, Cw__Cause head)
{
    fix_part_ended(&x->f, x->n[1], id, 1, CW__CAUSE__CAUSE_RELEASED, 0, true, 3 * S);
    fix_part_ended(&x->f, x->n[0], id, 1, head, 0, true, 4 * S);
}

static void given_back_it_ends_on_all_nodes_with_its_commands_exit_code(void **state)
{
    (void)state;
    struct alloc x;
    make(&x);
    run(&x);
    uint64_t id = x.j->id;
    cw_model_release(x.f.m, x.j, 7, 0, 1000, 3 * S);
    assert_string_equal(fix_trail(&x.f), "put-attempt event:released send-kill send-kill");
    assert_int_equal(x.a->rec->exit_code, 7);
    cw_model_release(x.f.m, x.j, 9, 0, 1000, 3 * S); /* a second time: the first counts */
    assert_int_equal(x.a->rec->exit_code, 7);
    end(&x, id, CW__CAUSE__CAUSE_RELEASED);
    assert_int_equal(x.f.last_final, id);
    assert_int_equal(x.f.last_final_state, CW__STATE__FAILED);
    fix_fini(&x.f);
}

static void given_back_with_zero_it_is_completed(void **state)
{
    (void)state;
    struct alloc x;
    make(&x);
    run(&x);
    cw_model_release(x.f.m, x.j, 0, 0, 1000, 3 * S);
    end(&x, x.j->id, CW__CAUSE__CAUSE_RELEASED);
    assert_int_equal(x.f.last_final_state, CW__STATE__COMPLETED);
    fix_fini(&x.f);
}

static void left_alone_it_is_cancelled(void **state)
{
    (void)state;
    struct alloc x;
    make(&x);
    run(&x);
    cw_model_owner_gone(x.f.m, x.j, 3 * S);
    assert_string_equal(fix_trail(&x.f), "put-attempt event:owner-gone send-kill send-kill");
    end(&x, x.j->id, CW__CAUSE__CAUSE_OWNER_GONE);
    assert_int_equal(x.f.last_final_state, CW__STATE__CANCELLED);
    fix_fini(&x.f);
}

static void what_waits_is_cancelled(void **state)
{
    (void)state;
    struct alloc x;
    make(&x);
    uint64_t id = x.j->id;
    cw_model_owner_gone(x.f.m, x.j, 3 * S);
    assert_int_equal(x.f.last_final, id);
    assert_int_equal(x.f.last_final_state, CW__STATE__CANCELLED);
    fix_fini(&x.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_back_it_ends_on_all_nodes_with_its_commands_exit_code),
        cmocka_unit_test(given_back_with_zero_it_is_completed),
        cmocka_unit_test(left_alone_it_is_cancelled),
        cmocka_unit_test(what_waits_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
