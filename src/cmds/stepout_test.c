/* stepout_test.c: lines of tasks on one output. */
#include "cmds/stepout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int collect(bool err, const void *p, size_t n, void *arg)
{
    struct cw_buf *b = arg;
    cw_buf_addf(b, "%s[%.*s]", err ? "E" : "", (int)n, (const char *)p);
    return 0;
}

static void add(struct cw_stepout *o, uint32_t rank, const char *text)
{
    assert_int_equal(cw_stepout_add(o, rank, false, text, strlen(text)), 0);
}

static void one_task_goes_straight_through(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf b = {0};
    struct cw_stepout *o = cw_stepout_create(1, false, false, collect, &b);
    add(o, 0, "a");
    add(o, 0, "b\nc");
    assert_false(cw_stepout_holds(o));
    assert_string_equal(cw_buf_str(&b), "[a][b\nc]");
    cw_stepout_destroy(o);
}

static void lines_of_several_tasks_stay_together(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf b = {0};
    struct cw_stepout *o = cw_stepout_create(2, false, false, collect, &b);
    add(o, 0, "one ");
    add(o, 1, "x\ny");
    assert_true(cw_stepout_holds(o));
    add(o, 0, "line\n");
    cw_stepout_flush(o, UINT32_MAX);
    assert_false(cw_stepout_holds(o));
    assert_string_equal(cw_buf_str(&b), "[x\n][one line\n][y]");
    cw_stepout_destroy(o);
}

static void labels_stand_once_before_each_line_also_of_pieces(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf b = {0};
    struct cw_stepout *o = cw_stepout_create(11, true, false, collect, &b);
    add(o, 3, "a\nb");
    cw_stepout_flush(o, 3);
    add(o, 3, "c\n");
    add(o, 10, "d\n");
    assert_string_equal(cw_buf_str(&b), "[ 3: a\n][ 3: b][c\n][10: d\n]");
    cw_stepout_destroy(o);
}

static void both_streams_and_strange_ranks(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf b = {0};
    struct cw_stepout *o = cw_stepout_create(2, true, false, collect, &b);
    assert_int_equal(cw_stepout_add(o, 1, true, "e\n", 2), 0);
    assert_int_equal(cw_stepout_add(o, 7, true, "?\n", 2), 0);
    assert_string_equal(cw_buf_str(&b), "E[1: e\n]");
    cw_stepout_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_task_goes_straight_through),
        cmocka_unit_test(lines_of_several_tasks_stay_together),
        cmocka_unit_test(labels_stand_once_before_each_line_also_of_pieces),
        cmocka_unit_test(both_streams_and_strange_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
