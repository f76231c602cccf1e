/* Bodies of the packets of steps: what is packed comes back, what is cut short is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "shepherd/stepcall.h"

static void a_call_comes_back_with_both_parts(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf b = { 0 };
    struct cw_stepcall c = { 7, CW_STEPCALL_READ, "facts", "request", 5, 7 }, r;
    cw_stepcall_pack(&c, &b);
    assert_int_equal(cw_stepcall_unpack(b.data, b.len, &r), 0);
    assert_true(r.token == 7 && r.kind == CW_STEPCALL_READ && r.n_facts == 5 && r.n_request == 7);
    assert_memory_equal(r.facts, "facts", 5);
    assert_memory_equal(r.request, "request", 7);
    for (size_t n = 0; n < 21; n++)
        assert_int_not_equal(cw_stepcall_unpack(b.data, n, &r), 0);
}

static void an_answer_keeps_its_code_and_an_impossible_one_is_refused(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf b = { 0 };
    struct cw_stepanswer a = { 9, -11, true, "later", 5 }, r;
    cw_stepanswer_pack(&a, &b);
    assert_int_equal(cw_stepanswer_unpack(b.data, b.len, &r), 0);
    assert_true(r.token == 9 && r.code == -11 && r.retry && r.n == 5);
    assert_memory_equal(r.body, "later", 5);
    assert_int_not_equal(cw_stepanswer_unpack(b.data, 15, &r), 0);
    int32_t one = 1;
    memcpy(b.data + 8, &one, 4);
    assert_int_not_equal(cw_stepanswer_unpack(b.data, b.len, &r), 0);
}

static void an_acknowledgement_has_one_size(void **state)
{
    (void)state;
    cw_autobuf struct cw_buf b = { 0 };
    struct cw_stepack a = { 12, 2, 3, true }, r;
    cw_stepack_pack(&a, &b);
    assert_int_equal(cw_stepack_unpack(b.data, b.len, &r), 0);
    assert_true(r.id == 12 && r.attempt == 2 && r.step == 3 && r.end);
    assert_int_not_equal(cw_stepack_unpack(b.data, b.len - 1, &r), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_comes_back_with_both_parts),
        cmocka_unit_test(an_answer_keeps_its_code_and_an_impossible_one_is_refused),
        cmocka_unit_test(an_acknowledgement_has_one_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
