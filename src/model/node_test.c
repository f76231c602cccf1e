/* Nodes, partitions, ledger. */
#include "model/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "model/model_fixture.h"

static const struct cw_partition main_part = {
    .name = "main", .is_default = true, .all_nodes = true};

static void assert_sound(struct fix *f)
{
    struct cw_buf b = {0};
    if (cw_model_selfcheck(f->m, &b) != 0)
        fail_msg("%s", cw_buf_str(&b));
    cw_buf_fini(&b);
}

static void a_changed_inventory_keeps_what_is_charged(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    struct cw_node *n = fix_node(&f, "n1", 4, 1000, 0, NULL);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.cores = 3, .mem_bytes = 600});
    fix_grant(&f, j, n, 5);
    assert_int_equal(n->mem_free, 400);
    assert_ptr_equal(fix_node(&f, "n1", 70, 2000, 0, NULL), n);
    assert_int_equal(n->n_free, 67);
    assert_int_equal(n->mem_free, 1400);
    assert_sound(&f);
    fix_node(&f, "n1", 2, 500, 0,
             NULL); /* two of its cores are gone, more memory is charged than there is */
    assert_int_equal(n->n_free, 0);
    assert_int_equal(n->mem_free, 0);
    assert_sound(&f);
    fix_ended(&f, j->id, 1, CW__CAUSE__CAUSE_EXIT, 0, true, 9);
    assert_int_equal(n->n_free, 2);
    assert_int_equal(n->mem_free, 500);
    assert_sound(&f);
    fix_fini(&f);
}

static void a_drain_outlives_what_the_node_says_of_itself(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    struct cw_node *n = fix_node(&f, "n1", 4, 1000, 0, NULL);
    fix_trail(&f);
    cw_model_node_drain(f.m, n, true, "fan", 7, 99);
    assert_string_equal(fix_trail(&f), "put-node event:node-drain");
    fix_node(&f, "n1", 8, 1000, 0, NULL);
    assert_true(n->rec->drained);
    assert_string_equal(n->rec->drain_reason, "fan");
    assert_int_equal(n->rec->drain_uid, 7);
    fix_trail(&f);
    cw_model_node_drain(f.m, n, false, NULL, 7, 99);
    assert_string_equal(fix_trail(&f), "put-node event:node-resume cycle");
    assert_null(n->rec->drain_reason);
    Cw__NodeRecord rec = CW__NODE_RECORD__INIT;
    rec.name = (char *)"n1";
    cw_model_node_set(f.m, &rec, false, 3); /* without inventory: the old one stays */
    assert_int_equal(n->n_cores, 8);
    fix_fini(&f);
}

static void going_up_and_down_is_told_once(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    struct cw_node *n = fix_node(&f, "n1", 4, 1000, 0, NULL);
    fix_trail(&f);
    n->lost = true;
    cw_model_node_up(f.m, n, true, 9);
    assert_false(n->lost);
    assert_int_equal(n->last_seen_ns, 9);
    assert_string_equal(fix_trail(&f), "");
    cw_model_node_up(f.m, n, false, 10);
    cw_model_node_up(f.m, n, false, 10);
    assert_string_equal(fix_trail(&f), "event:node-down");
    cw_model_node_up(f.m, n, true, 11);
    assert_string_equal(fix_trail(&f), "event:node-up cycle");
    fix_fini(&f);
}

static void partitions_name_their_nodes_and_one_is_the_default(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    struct cw_strtable *names = cw_strtable_create();
    char n2[] = "n2";
    cw_strtable_set(names, n2, n2);
    fix_partition(&f, &(struct cw_partition){.name = "small", .nodes = names});
    cw_strtable_destroy(names);
    n2[0] = 'x'; /* copied: the caller's text may go */
    assert_string_equal(cw_model_partition_find(f.m, NULL)->name,
                        "small"); /* the first, without a default */
    fix_partition(&f, &main_part);
    assert_string_equal(cw_model_partition_find(f.m, NULL)->name, "main");
    assert_int_equal(cw_model_partition_add(f.m, &main_part), -EEXIST);
    assert_null(cw_model_partition_find(f.m, "gone"));
    assert_null(cw_model_partition(f.m, UINT16_MAX));
    struct cw_node *a = fix_node(&f, "n1", 4, 1000, 0, NULL),
                   *b = fix_node(&f, "n2", 4, 1000, 0, NULL);
    const struct cw_partition *small = cw_model_partition_find(f.m, "small");
    assert_false(cw_partition_has(small, a));
    assert_true(cw_partition_has(small, b));
    assert_true(cw_partition_has(cw_model_partition_find(f.m, "main"), a));
    assert_int_equal(cw_model_n_nodes(f.m), 2);
    assert_ptr_equal(cw_model_node_at(f.m, 1), b);
    assert_null(cw_model_node_at(f.m, 2));
    fix_fini(&f);
}

static void an_attempt_of_an_unknown_node_makes_that_node(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    struct cw_node *n = fix_node(&f, "n1", 4, 1000, 0, NULL);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.cores = 2});
    struct cw_attempt *a = fix_grant(&f, j, n, 5);
    struct fix g;
    fix_init(&g);
    fix_partition(&g, &main_part);
    Cw__JobRecord *rec = cw_job_record(j);
    struct cw_job *k;
    struct cw_attempt *b;
    assert_int_equal(cw_model_restore_job(g.m, rec, &k, NULL), 0);
    assert_int_equal(cw_model_restore_attempt(g.m, a->rec, &b, NULL), 0);
    cw__job_record__free_unpacked(rec, NULL);
    assert_int_equal(cw_model_node(g.m, "n1")->n_cores, 0);
    fix_node(&g, "n1", 4, 1000, 0, NULL); /* it says what it has: the charge is there */
    assert_int_equal(cw_model_node(g.m, "n1")->n_free, 2);
    assert_sound(&g);
    fix_fini(&f);
    fix_fini(&g);
}

static void the_selfcheck_finds_a_wrong_ledger(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    struct cw_node *n = fix_node(&f, "n1", 4, 1000, 0, NULL);
    fix_grant(&f, fix_submit(&f, &(struct fix_job){0}), n, 5);
    assert_sound(&f);
    struct cw_buf b = {0};
    n->core_free[0] |= 1;
    n->mem_used += 5;
    assert_int_equal(cw_model_selfcheck(f.m, &b), 3);
    assert_non_null(
        strstr(cw_buf_str(&b), "node n1: core 0 is free in the ledger, the rows say otherwise"));
    n->core_free[0] &= ~UINT64_C(1);
    n->mem_used -= 5;
    cw_buf_fini(&b);
    fix_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_inventory_keeps_what_is_charged),
        cmocka_unit_test(a_drain_outlives_what_the_node_says_of_itself),
        cmocka_unit_test(going_up_and_down_is_told_once),
        cmocka_unit_test(partitions_name_their_nodes_and_one_is_the_default),
        cmocka_unit_test(an_attempt_of_an_unknown_node_makes_that_node),
        cmocka_unit_test(the_selfcheck_finds_a_wrong_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
