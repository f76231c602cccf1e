/* The output ring of a step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "shepherd/stepring.h"

static void add(struct cw_stepring *r, uint32_t rank, bool err, const char *text)
{
    cw_stepring_add(r, rank, err, text, strlen(text));
}

static void bytes_of_one_stream_join_until_they_are_told(void **state)
{
    (void)state;
    struct cw_stepring *r = cw_stepring_create(4096);
    add(r, 0, false, "a");
    add(r, 0, false, "b");
    const struct cw_stepchunk *c = cw_stepring_take(r, 1);
    assert_int_equal(c->seq, 1);
    assert_string_equal(cw_buf_str(&c->data), "ab");
    add(r, 0, false, "c"); /* what was given to a reader never grows */
    assert_string_equal(cw_buf_str(&cw_stepring_take(r, 1)->data), "ab");
    assert_string_equal(cw_buf_str(&cw_stepring_take(r, 2)->data), "c");
    add(r, 1, false, "d");
    add(r, 1, true, "e");
    assert_int_equal(cw_stepring_next(r), 5);
    assert_null(cw_stepring_take(r, 5));
    cw_stepring_destroy(r);
}

static void only_what_was_told_can_be_acknowledged(void **state)
{
    (void)state;
    struct cw_stepring *r = cw_stepring_create(4096);
    add(r, 0, false, "a");
    add(r, 1, false, "b");
    cw_stepring_ack(r, 99);
    assert_int_equal(cw_stepring_first(r), 1);
    cw_stepring_take(r, 1);
    cw_stepring_ack(r, 99);
    assert_int_equal(cw_stepring_first(r), 2);
    assert_int_equal(cw_stepring_take(r, 1)->seq, 2);
    cw_stepring_destroy(r);
}

static void room_counts_bytes_and_the_cost_of_chunks(void **state)
{
    (void)state;
    struct cw_stepring *r = cw_stepring_create(256);
    assert_int_equal(cw_stepring_room(r), 192);
    add(r, 0, false, "0123456789");
    assert_int_equal(cw_stepring_room(r), 118);
    cw_stepring_take(r, 1);
    cw_stepring_ack(r, 2);
    assert_int_equal(cw_stepring_room(r), 192);
    assert_int_equal(cw_stepring_first(r), 2);
    cw_stepring_destroy(r);
}

static void what_does_not_fit_pushes_out_the_oldest(void **state)
{
    (void)state;
    struct cw_stepring *r = cw_stepring_create(512);
    for (uint32_t i = 0; i < 100; i++)
        add(r, i, false, "0123456789");
    assert_int_equal(cw_stepring_next(r), 101);
    uint64_t first = cw_stepring_first(r);
    assert_true(first > 90);
    for (uint64_t seq = first; seq < 101; seq++)
        assert_int_equal(cw_stepring_take(r, seq)->rank, seq - 1);
    cw_stepring_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_one_stream_join_until_they_are_told),
        cmocka_unit_test(only_what_was_told_can_be_acknowledged),
        cmocka_unit_test(room_counts_bytes_and_the_cost_of_chunks),
        cmocka_unit_test(what_does_not_fit_pushes_out_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
