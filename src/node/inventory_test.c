/* What a node offers of a synthetic machine, with reserves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "node/inventory.h"

static struct cw_node node;
static struct cw_conf *conf;
static struct cw_arena *arena;
static struct cw_error err;

static int make(const char *conf_text, Cw__Inventory **ret)
{
    struct cw_strv isolations = { 0 };
    if (cw_conf_load_text("test", conf_text, &conf, &err) < 0)
        fail_msg("%s", err.text);
    memset(&node, 0, sizeof node);
    node.name = "n1";
    node.conf = conf;
    arena = cw_arena_create();
    assert_int_equal(cw_topo_open("pack:2 [numa(memory=4294967296)] core:4 pu:2", &node.topo, &err),
                     0);
    node.plugs = cw_plug_registry_create(conf, "n1");
    cw_strv_add(&isolations, "none");
    int rc = cw_inventory_make(&node, &isolations, arena, ret, &err);
    cw_strv_fini(&isolations);
    return rc;
}

static void drop(void)
{
    cw_plug_registry_destroy(node.plugs);
    cw_topo_close(node.topo);
    cw_conf_destroy(conf);
    cw_arena_destroy(arena);
}

static void all_cores_and_memory_are_offered_without_a_reserve(void **state)
{
    (void)state;
    Cw__Inventory *inv = NULL;
    assert_int_equal(make("", &inv), 0);
    assert_int_equal(inv->n_cores, 8);
    assert_int_equal(inv->mem_bytes, 8589934592u);
    assert_true(inv->synthetic);
    assert_string_equal(inv->isolations[0], "none");
    assert_int_equal(inv->cores[7]->n_pus, 2);
    assert_int_equal(inv->cores[7]->package, 1);
    drop();
}

static void the_reserve_takes_the_first_cores(void **state)
{
    (void)state;
    Cw__Inventory *inv = NULL;
    assert_int_equal(make("reserve_cores = 2\nreserve_mem = 1024\n", &inv), 0);
    assert_int_equal(inv->n_cores, 6);
    assert_int_equal(inv->cores[0]->logical, 2);
    assert_int_equal(inv->mem_bytes, 8589934592u - 1073741824u);
    drop();
}

static void a_reserve_that_leaves_nothing_is_refused_with_numbers(void **state)
{
    (void)state;
    Cw__Inventory *inv = NULL;
    assert_true(make("reserve_cores = 8\n", &inv) < 0);
    assert_string_equal(err.text,
                        "reserve_cores = 8 leaves none of the 8 cores of node n1 to jobs");
    drop();
    assert_true(make("reserve_mem = \"8G\"\n", &inv) < 0);
    assert_string_equal(err.text, "reserve_mem = 8G leaves nothing of the 8G of node n1 to jobs");
    drop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cores_and_memory_are_offered_without_a_reserve),
        cmocka_unit_test(the_reserve_takes_the_first_cores),
        cmocka_unit_test(a_reserve_that_leaves_nothing_is_refused_with_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
