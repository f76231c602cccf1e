/* Tests of list.h. */
#include "config.h"

#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

struct thing {
    int n;
    struct cw_list link;
};

static void items_come_in_the_order_of_adding(void **state)
{
    struct cw_list head;
    struct thing things[5] = { 0 };
    int n = 0;

    (void)state;
    cw_list_init(&head);
    assert_true(cw_list_empty(&head));
    for (int i = 0; i < 5; i++) {
        things[i].n = i;
        cw_list_add_tail(&head, &things[i].link);
    }
    cw_list_each (it, &head) {
        assert_int_equal(cw_list_entry(it, struct thing, link)->n, n++);
    }
    assert_int_equal(n, 5);
}

static void an_item_may_leave_while_walking_and_leave_twice(void **state)
{
    struct cw_list head;
    struct thing things[5] = { 0 };

    (void)state;
    cw_list_init(&head);
    cw_list_remove(&things[0].link); /* never added */
    for (int i = 0; i < 5; i++)
        cw_list_add_tail(&head, &things[i].link);
    cw_list_each_safe (it, &head) {
        cw_list_remove(it);
        cw_list_remove(it);
    }
    assert_true(cw_list_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_in_the_order_of_adding),
        cmocka_unit_test(an_item_may_leave_while_walking_and_leave_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
