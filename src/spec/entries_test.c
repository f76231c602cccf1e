/* Entries of arrays from lines and from JSON. */
#include "spec/entries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct cw_arena *arena;
static struct cw_request req;
static struct cw_error err;

static int setup(void **state)
{
    (void)state;
    arena = cw_arena_create();
    cw_request_init(&req, arena);
    err = (struct cw_error){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cw_request_fini(&req);
    cw_arena_destroy(arena);
    return 0;
}

static void a_line_is_an_entry_also_an_empty_one(void **state)
{
    (void)state;
    static const char text[] = "a b\n\n$x 'y'\nlast";
    assert_int_equal(cw_entries_lines(&req, text, strlen(text), &err), 0);
    assert_int_equal(req.payload->n_entries, 4);
    assert_string_equal(req.payload->entries[0], "a b");
    assert_string_equal(req.payload->entries[1], "");
    assert_string_equal(req.payload->entries[2], "$x 'y'");
    assert_string_equal(req.payload->entries[3], "last");
    assert_string_equal(req.spec->array->indices, "0-3");
}

static void a_final_newline_makes_no_entry(void **state)
{
    (void)state;
    assert_int_equal(cw_entries_lines(&req, "x\n", 2, &err), 0);
    assert_int_equal(req.payload->n_entries, 1);
    assert_string_equal(req.spec->array->indices, "0");
}

static void what_is_no_entry_is_refused(void **state)
{
    (void)state;
    assert_int_equal(cw_entries_lines(&req, "", 0, &err), -EINVAL);
    assert_string_equal(err.text, "there is no entry");
    assert_int_equal(cw_entries_lines(&req, "a\nb\0c", 5, &err), -EINVAL);
    assert_string_equal(err.text, "line 2: a NUL byte");
    assert_int_equal(cw_entries_json(&req, "{}", 2, &err), -EINVAL);
    assert_int_equal(cw_entries_json(&req, "[]", 2, &err), -EINVAL);
    assert_int_equal(cw_entries_json(&req, "[1,", 3, &err), -EINVAL);
    assert_non_null(strstr(err.text, "1:3:"));
    assert_int_equal(cw_entries_json(&req, "[\"a\\u0000b\"]", 12, &err), -EINVAL);
    assert_int_equal(cw_request_set(&req, "a", "0-3", CW_ORIGIN_COMMAND, NULL, &err), 0);
    assert_int_equal(cw_entries_lines(&req, "x\n", 2, &err), -EINVAL);
}

static void json_values_are_entries(void **state)
{
    (void)state;
    static const char text[] = "[\"text\", 7, {\"b\": [1, 2], \"a\": null}, true]";
    assert_int_equal(cw_entries_json(&req, text, strlen(text), &err), 0);
    assert_int_equal(req.payload->n_entries, 4);
    assert_string_equal(req.payload->entries[0], "text");
    assert_string_equal(req.payload->entries[1], "7");
    assert_string_equal(req.payload->entries[2], "{\"a\":null,\"b\":[1,2]}");
    assert_string_equal(req.payload->entries[3], "true");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_is_an_entry_also_an_empty_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_final_newline_makes_no_entry, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_entry_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(json_values_are_entries, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
