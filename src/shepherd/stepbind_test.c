/* Shares of processors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "shepherd/stepbind.h"

/* Two threads a core: 0,8 1,9 2,10 3,11. */
static const struct cw_stepcpu threads[] = { { 0, 0 }, { 8, 0 },  { 1, 1 }, { 9, 1 },
                                             { 2, 2 }, { 10, 2 }, { 3, 3 }, { 11, 3 } };

/* "0,8 1,9": what each rank gets. */
static const char *shares(size_t n, size_t ranks)
{
    static char text[256];
    text[0] = '\0';
    for (size_t r = 0; r < ranks; r++) {
        cpu_set_t set;
        const char *sep = r > 0 ? " " : "";
        assert_true(cw_stepbind_share(threads, n, r, ranks, &set));
        for (int c = 0; c < 16; c++)
            if (CPU_ISSET(c, &set)) {
                size_t len = strlen(text);
                snprintf(text + len, sizeof text - len, "%s%d", sep, c);
                sep = ",";
            }
    }
    return text;
}

static void each_rank_gets_whole_cores_one_after_the_other(void **state)
{
    (void)state;
    assert_string_equal(shares(8, 4), "0,8 1,9 2,10 3,11");
    assert_string_equal(shares(8, 2), "0,1,8,9 2,3,10,11");
    assert_string_equal(shares(8, 3), "0,8 1,9 2,3,10,11");
    assert_string_equal(shares(8, 1), "0,1,2,3,8,9,10,11");
}

static void more_ranks_than_cores_get_threads_and_then_share_them(void **state)
{
    (void)state;
    assert_string_equal(shares(8, 8), "0 8 1 9 2 10 3 11");
    assert_string_equal(shares(2, 4), "0 0 8 8");
}

static void nothing_granted_is_nothing_to_bind_to(void **state)
{
    (void)state;
    cpu_set_t set;
    assert_false(cw_stepbind_share(threads, 0, 0, 1, &set));
    assert_false(cw_stepbind_share(threads, 8, 3, 3, &set));
}

static void siblings_stand_together_on_this_machine(void **state)
{
    (void)state;
    static struct cw_stepcpu list[CPU_SETSIZE];
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    size_t n = cw_stepbind_list(&set, list);
    assert_int_equal(n, CPU_COUNT(&set));
    for (size_t i = 1; i < n; i++)
        assert_true(list[i - 1].core <= list[i].core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_gets_whole_cores_one_after_the_other),
        cmocka_unit_test(more_ranks_than_cores_get_threads_and_then_share_them),
        cmocka_unit_test(nothing_granted_is_nothing_to_bind_to),
        cmocka_unit_test(siblings_stand_together_on_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
