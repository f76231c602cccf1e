/* What a batch holds: one operation per key, the last one. */
#include "config.h"

#include "store/batch.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state)
{
    *state = cw_batch_create();
    return 0;
}

static int teardown(void **state)
{
    cw_batch_destroy(*state);
    return 0;
}

static void put(struct cw_batch *b, enum cw_table t, const char *key, const char *val)
{
    cw_batch_put(b, t, key, strlen(key), val, strlen(val));
}

static void del(struct cw_batch *b, enum cw_table t, const char *key)
{
    cw_batch_del(b, t, key, strlen(key));
}

/* "TABLE+key=value" or "TABLE-key", in commit order. */
static void check(const struct cw_batch *b, const char *want)
{
    size_t n;
    cw_autofree struct cw_batch_op *ops = cw_batch_sort(b, &n);
    cw_autobuf struct cw_buf text = { 0 };
    for (size_t i = 0; i < n; i++) {
        cw_buf_addf(&text, "%s%d%c%.*s", i > 0 ? " " : "", ops[i].table, ops[i].del ? '-' : '+',
                    (int)ops[i].klen, (const char *)ops[i].key);
        if (!ops[i].del)
            cw_buf_addf(&text, "=%.*s", (int)ops[i].vlen, (const char *)ops[i].val);
    }
    assert_string_equal(cw_buf_str(&text), want);
}

static void a_new_batch_is_empty(void **state)
{
    assert_true(cw_batch_empty(*state));
    assert_int_equal(cw_batch_bytes(*state), 0);
    check(*state, "");
    cw_batch_destroy(NULL);
}

static void operations_are_sorted_by_table_then_key(void **state)
{
    put(*state, CW_TABLE_JOB, "b", "1");
    put(*state, CW_TABLE_META, "z", "2");
    put(*state, CW_TABLE_JOB, "a", "3");
    put(*state, CW_TABLE_JOB, "aa", "4");
    check(*state, "0+z=2 1+a=3 1+aa=4 1+b=1");
    assert_false(cw_batch_empty(*state));
}

static void a_later_put_replaces_an_earlier_of_the_same_key(void **state)
{
    put(*state, CW_TABLE_JOB, "k", "first");
    put(*state, CW_TABLE_JOB, "k", "2nd");
    check(*state, "1+k=2nd");
    put(*state, CW_TABLE_JOB, "k", "a much longer third one");
    check(*state, "1+k=a much longer third one");
}

static void the_same_key_in_two_tables_is_two_operations(void **state)
{
    put(*state, CW_TABLE_JOB, "k", "1");
    put(*state, CW_TABLE_NODE, "k", "2");
    check(*state, "1+k=1 5+k=2");
}

static void a_del_after_a_put_is_a_del_and_the_other_way_round(void **state)
{
    put(*state, CW_TABLE_JOB, "k", "value");
    del(*state, CW_TABLE_JOB, "k");
    del(*state, CW_TABLE_JOB, "q");
    put(*state, CW_TABLE_JOB, "q", "again");
    check(*state, "1-k 1+q=again");
}

static void rewriting_one_key_does_not_grow_the_batch(void **state)
{
    put(*state, CW_TABLE_JOB, "k", "same size");
    size_t bytes = cw_batch_bytes(*state);
    for (int i = 0; i < 1000; i++)
        put(*state, CW_TABLE_JOB, "k", "size same");
    assert_int_equal(cw_batch_bytes(*state), bytes);
}

static void keys_and_values_may_hold_zero_bytes_and_values_may_be_empty(void **state)
{
    size_t n;
    cw_batch_put(*state, CW_TABLE_DONE, "\0\0", 2, NULL, 0);
    cw_batch_put(*state, CW_TABLE_DONE, "\0", 1, "\0x", 2);
    cw_autofree struct cw_batch_op *ops = cw_batch_sort(*state, &n);
    assert_int_equal(n, 2);
    assert_int_equal(ops[0].klen, 1);
    assert_int_equal(ops[0].vlen, 2);
    assert_int_equal(ops[1].vlen, 0);
}

static void ten_thousand_keys_are_each_there_once(void **state)
{
    char key[16];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 10000; i++) {
            snprintf(key, sizeof(key), "%d", i * 7919 % 10000);
            put(*state, CW_TABLE_EVENT, key, round == 0 ? "old" : "new");
        }
    size_t n;
    cw_autofree struct cw_batch_op *ops = cw_batch_sort(*state, &n);
    assert_int_equal(n, 10000);
    for (size_t i = 0; i < n; i++)
        assert_memory_equal(ops[i].val, "new", 3);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_new_batch_is_empty),
        T(operations_are_sorted_by_table_then_key),
        T(a_later_put_replaces_an_earlier_of_the_same_key),
        T(the_same_key_in_two_tables_is_two_operations),
        T(a_del_after_a_put_is_a_del_and_the_other_way_round),
        T(rewriting_one_key_does_not_grow_the_batch),
        T(keys_and_values_may_hold_zero_bytes_and_values_may_be_empty),
        T(ten_thousand_keys_are_each_there_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
