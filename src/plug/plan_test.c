/* Plans: what is kept, what is refused, what never moves. */
#include "plug/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/mem.h"

#define BIG 200000

static const struct {
    struct cw_plan_line line;
    int result;
} cases[] = {
    {{.kind = CW_PLAN_ENV, .a = "NAME", .b = ""}, 0},
    {{.kind = CW_PLAN_ENV, .a = "NAME"}, -EINVAL},
    {{.kind = CW_PLAN_ENV, .a = "", .b = "x"}, -EINVAL},
    {{.kind = CW_PLAN_ENV, .a = "A=B", .b = "x"}, -EINVAL},
    {{.kind = CW_PLAN_MOUNT, .a = "/a", .b = "/b", .c = "ro"}, 0},
    {{.kind = CW_PLAN_MOUNT, .a = "a", .b = "/b"}, -EINVAL},
    {{.kind = CW_PLAN_MOUNT, .a = "/a", .b = NULL}, -EINVAL},
    {{.kind = CW_PLAN_DEVICE, .a = "/dev/null", .b = "rw", .n1 = 1, .n2 = 3}, 0},
    {{.kind = CW_PLAN_DEVICE, .a = "/dev/null", .n1 = -1}, -EINVAL},
    {{.kind = CW_PLAN_LIMIT, .a = "memory", .n1 = 4096}, 0},
    {{.kind = CW_PLAN_LIMIT, .a = "disk", .n1 = 4096}, -EINVAL},
    {{.kind = CW_PLAN_LIMIT, .a = "pids", .n1 = -1}, -EINVAL},
    {{.kind = CW_PLAN_CPUS, .a = "0-3"}, 0},
    {{.kind = CW_PLAN_CPUS, .a = ""}, -EINVAL},
    {{.kind = CW_PLAN_HOOK, .a = "end", .b = "/usr/bin/true"}, 0},
    {{.kind = CW_PLAN_HOOK, .a = "never", .b = "/usr/bin/true"}, -EINVAL},
    {{.kind = CW_PLAN_HOOK, .a = "start", .b = "true"}, -EINVAL},
    {{.kind = 0, .a = "x", .b = "y"}, -EINVAL},
    {{.kind = 7, .a = "/x", .b = "/y"}, -EINVAL},
    {{.size = 8, .kind = CW_PLAN_ENV, .a = "NAME", .b = "x"}, -EINVAL},
};

static void a_line_that_cannot_be_carried_out_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        struct cw_plan *p = cw_plan_create();
        if (cw_plan_add(p, "gpu/x", &cases[i].line) != cases[i].result)
            fail_msg("case %zu", i);
        assert_int_equal(cw_plan_count(p), cases[i].result == 0 ? 1 : 0);
        cw_plan_destroy(p);
    }
}

static void lines_are_copied_with_their_origin_and_never_move(void **state)
{
    struct cw_plan *p = cw_plan_create();
    const struct cw_plan_line *first;
    char name[] = "FIRST", value[] = "1";
    struct cw_plan_line line = {
        .size = sizeof(line), .kind = CW_PLAN_ENV, .a = name, .b = value, .origin = "forged"};

    (void)state;
    assert_int_equal(cw_plan_add(p, "gpu/fake", &line), 0);
    first = cw_plan_get(p, 0);
    name[0] = value[0] = 'X';
    for (int i = 0; i < 1000; i++)
        assert_int_equal(cw_plan_add(p, "gpu/fake", &line), 0);
    assert_ptr_equal(cw_plan_get(p, 0), first);
    assert_string_equal(first->a, "FIRST");
    assert_string_equal(first->b, "1");
    assert_string_equal(first->origin, "gpu/fake");
    assert_int_equal(first->size, sizeof(*first));
    assert_null(cw_plan_get(p, 1001));
    cw_plan_destroy(p);
}

static void a_plan_has_an_end_and_so_has_a_string(void **state)
{
    struct cw_plan *p = cw_plan_create();
    struct cw_plan_line line = {.kind = CW_PLAN_ENV, .a = "A", .b = "b"};
    cw_autofree char *big = cw_xmalloc(BIG);
    int n = 0;

    (void)state;
    memset(big, 'x', BIG);
    big[BIG - 1] = '\0';
    line.b = big;
    assert_int_equal(cw_plan_add(p, "x/y", &line), -EINVAL);
    line.b = "b";
    while (cw_plan_add(p, "x/y", &line) == 0)
        n++;
    assert_int_equal(n, 4096);
    assert_int_equal(cw_plan_add(p, "x/y", &line), -E2BIG);
    cw_plan_destroy(p);
    cw_plan_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_that_cannot_be_carried_out_is_refused),
        cmocka_unit_test(lines_are_copied_with_their_origin_and_never_move),
        cmocka_unit_test(a_plan_has_an_end_and_so_has_a_string),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
