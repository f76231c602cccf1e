/* Tests of buf.c. */
#include "config.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void an_empty_buffer_reads_as_an_empty_string(void **state)
{
    struct cw_buf b = { 0 };

    (void)state;
    assert_string_equal(cw_buf_str(&b), "");
    cw_autofree char *s = cw_buf_steal(&b);
    assert_string_equal(s, "");
    assert_null(b.data);
}

static void text_grows_and_stays_terminated(void **state)
{
    cw_autobuf struct cw_buf b = { 0 };

    (void)state;
    for (int i = 0; i < 10000; i++) {
        cw_buf_addf(&b, "%d,", i % 10);
        assert_int_equal(b.data[b.len], '\0');
    }
    assert_int_equal(b.len, 20000);
    assert_memory_equal(b.data, "0,1,2,", 6);
    cw_buf_clear(&b);
    assert_string_equal(cw_buf_str(&b), "");
    cw_buf_add(&b, "a\0b", 3);
    cw_buf_add(&b, NULL, 0);
    assert_int_equal(b.len, 3);
}

static void a_long_formatted_text_is_whole(void **state)
{
    cw_autobuf struct cw_buf b = { 0 };
    char text[5000];

    (void)state;
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    cw_buf_add_str(&b, "x");
    cw_buf_addf(&b, "%s!", text);
    assert_int_equal(b.len, 5001);
    assert_int_equal(b.data[5000], '!');
}

static void reserved_room_does_not_change_the_length(void **state)
{
    cw_autobuf struct cw_buf b = { 0 };

    (void)state;
    memset(cw_buf_reserve(&b, 1000), 'z', 1000);
    assert_int_equal(b.len, 0);
    b.len = 1000;
    cw_buf_add_str(&b, "end");
    assert_string_equal(b.data + 999, "zend");
}

static void a_vector_ends_in_null(void **state)
{
    cw_autostrv struct cw_strv v = { 0 };

    (void)state;
    for (int i = 0; i < 100; i++) {
        cw_strv_add(&v, "copy");
        cw_strv_add_take(&v, cw_xstrdup("taken"));
        assert_null(v.v[v.n]);
    }
    assert_int_equal(v.n, 200);
    assert_string_equal(v.v[199], "taken");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_reads_as_an_empty_string),
        cmocka_unit_test(text_grows_and_stays_terminated),
        cmocka_unit_test(a_long_formatted_text_is_whole),
        cmocka_unit_test(reserved_room_does_not_change_the_length),
        cmocka_unit_test(a_vector_ends_in_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
