/* Tests of table.c. */
#include "config.h"

#include "base/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"

#define N 20000

static int values[N];

static void every_id_is_found_until_it_is_removed(void **state)
{
    struct cw_idtable *t = cw_idtable_create();

    (void)state;
    assert_null(cw_idtable_find(t, 0));
    for (uint64_t i = 0; i < N; i++)
        assert_null(cw_idtable_set(t, i << 32, &values[i]));
    for (uint64_t i = 0; i < N; i += 2)
        assert_ptr_equal(cw_idtable_remove(t, i << 32), &values[i]);
    assert_int_equal(cw_idtable_count(t), N / 2);
    for (uint64_t i = 0; i < N; i++)
        assert_ptr_equal(cw_idtable_find(t, i << 32), i % 2 == 1 ? &values[i] : NULL);
    assert_null(cw_idtable_remove(t, 0));
    assert_null(cw_idtable_find(t, UINT64_MAX));
    cw_idtable_destroy(t);
    cw_idtable_destroy(NULL);
}

static void setting_again_gives_the_old_value(void **state)
{
    struct cw_idtable *t = cw_idtable_create();

    (void)state;
    cw_idtable_set(t, 7, &values[0]);
    assert_ptr_equal(cw_idtable_set(t, 7, &values[1]), &values[0]);
    assert_ptr_equal(cw_idtable_find(t, 7), &values[1]);
    assert_int_equal(cw_idtable_count(t), 1);
    cw_idtable_destroy(t);
}

static void a_table_used_as_a_queue_keeps_working(void **state)
{
    struct cw_idtable *t = cw_idtable_create();

    (void)state;
    for (uint64_t i = 0; i < 200000; i++) {
        cw_idtable_set(t, i, &values[i % N]);
        if (i >= 10)
            assert_ptr_equal(cw_idtable_remove(t, i - 10), &values[(i - 10) % N]);
    }
    assert_int_equal(cw_idtable_count(t), 10);
    cw_idtable_destroy(t);
}

struct walk {
    struct cw_idtable *table;
    uint64_t last;
    size_t seen;
};

static bool remove_odd(uint64_t key, void *value, void *arg)
{
    struct walk *w = arg;

    assert_non_null(value);
    assert_true(w->seen == 0 || key > w->last);
    w->last = key;
    w->seen++;
    if (key % 2 == 1)
        cw_idtable_remove(w->table, key);
    return true;
}

static void walking_goes_in_the_order_of_adding_and_may_remove(void **state)
{
    struct walk w = { .table = cw_idtable_create() };

    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        cw_idtable_set(w.table, i, &values[i]);
    cw_idtable_each(w.table, remove_odd, &w);
    assert_int_equal(w.seen, 1000);
    assert_int_equal(cw_idtable_count(w.table), 500);
    w.seen = 0;
    cw_idtable_each(w.table, remove_odd, &w);
    assert_int_equal(w.seen, 500);
    cw_idtable_destroy(w.table);
}

static bool stop_at_third(const char *key, void *value, void *arg)
{
    assert_non_null(key);
    assert_non_null(value);
    return ++*(int *)arg < 3;
}

static void strings_are_compared_by_their_text(void **state)
{
    struct cw_strtable *t = cw_strtable_create();
    static char keys[N][32];
    char same[32];
    int seen = 0;

    (void)state;
    for (int i = 0; i < N; i++) {
        snprintf(keys[i], sizeof(keys[i]), "node-%d", i);
        assert_null(cw_strtable_set(t, keys[i], &values[i]));
    }
    for (int i = 0; i < N; i++) {
        snprintf(same, sizeof(same), "node-%d", i);
        assert_ptr_equal(cw_strtable_find(t, same), &values[i]);
    }
    assert_null(cw_strtable_find(t, ""));
    cw_strtable_each(t, stop_at_third, &seen);
    assert_int_equal(seen, 3);
    assert_ptr_equal(cw_strtable_remove(t, "node-5"), &values[5]);
    assert_null(cw_strtable_find(t, "node-5"));
    assert_int_equal(cw_strtable_count(t), N - 1);
    cw_strtable_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_id_is_found_until_it_is_removed),
        cmocka_unit_test(setting_again_gives_the_old_value),
        cmocka_unit_test(a_table_used_as_a_queue_keeps_working),
        cmocka_unit_test(walking_goes_in_the_order_of_adding_and_may_remove),
        cmocka_unit_test(strings_are_compared_by_their_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
