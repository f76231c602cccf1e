/* row_test.c: keys in order, values that refuse what they are not; payloads and what a sweep
 * leaves. */
#include "ctld/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "ctld/ctldworld_test.h"
#include "ctld/payload.h"
#include "ctld/turn.h"

static void keys_sort_as_their_numbers_do(void **state)
{
    (void)state;
    uint8_t a[CW_ROW_DONE_KEY], b[CW_ROW_DONE_KEY];
    static const struct {
        int64_t end;
        uint64_t id;
        uint32_t attempt;
    } rows[] = {
        {0, 1, 0}, {0, 1, 1}, {0, 256, 0}, {1, 1, 0}, {255, 9, 9}, {256, 0, 0}, {INT64_MAX, 0, 0},
    };
    for (size_t i = 1; i < sizeof rows / sizeof rows[0]; i++) {
        cw_row_done_key(a, rows[i - 1].end, rows[i - 1].id, rows[i - 1].attempt);
        cw_row_done_key(b, rows[i].end, rows[i].id, rows[i].attempt);
        assert_true(memcmp(a, b, sizeof a) < 0);
    }
    int64_t end;
    uint64_t id;
    uint32_t attempt;
    cw_row_done_parse(b, &end, &id, &attempt);
    assert_true(end == INT64_MAX && id == 0 && attempt == 0);
}

static void a_row_of_a_newer_schema_is_not_guessed_at(void **state)
{
    (void)state;
    struct cw_arena *a = cw_arena_create();
    struct cw_error err;
    ProtobufCMessage *m;
    uint8_t row[] = {CW_ROW_SCHEMA + 1, 0, 8, 1};
    assert_int_equal(cw_row_unpack(&cw__job_record__descriptor, row, sizeof row, a, &m, &err),
                     -EPROTO);
    assert_int_equal(cw_row_unpack(&cw__job_record__descriptor, row, 1, a, &m, &err), -EBADMSG);
    row[0] = CW_ROW_SCHEMA; /* and one without its required fields */
    assert_true(cw_row_unpack(&cw__job_record__descriptor, row, sizeof row, a, &m, &err) < 0);
    cw_arena_destroy(a);
}

static void fill(Cw__Payload *p, char **argv, const char *text)
{
    cw__payload__init(p);
    argv[0] = (char *)text;
    p->n_argv = 1;
    p->argv = argv;
}

static uint64_t payload_rows(struct world *w)
{
    uint64_t n = 0;
    assert_int_equal(cw_store_count(w->c.store, CW_TABLE_PAYLOAD, &n, NULL), 0);
    return n;
}

static void the_same_payload_is_stored_once(void **state)
{
    (void)state;
    struct world *w = world_create();
    Cw__Payload p;
    const Cw__Payload *back;
    char *argv[1];
    uint8_t one[32], two[32], other[32];
    struct cw_batch *b = cw_turn_batch(w->c.turn);
    fill(&p, argv, "a");
    assert_int_equal(cw_payloads_put(w->c.payloads, b, &p, one, NULL), 0);
    assert_int_equal(cw_payloads_put(w->c.payloads, b, &p, two, NULL), 0);
    fill(&p, argv, "b");
    assert_int_equal(cw_payloads_put(w->c.payloads, b, &p, other, NULL), 0);
    assert_memory_equal(one, two, 32);
    world_commit(w);
    assert_int_equal(payload_rows(w), 2);
    assert_int_equal(cw_payloads_get(w->c.payloads, one, &back, NULL), 0);
    assert_string_equal(back->argv[0], "a");
    other[0] ^= 1;
    assert_int_equal(cw_payloads_get(w->c.payloads, other, &back, NULL), -ENOENT);
    world_destroy(w);
}

static void a_sweep_keeps_what_is_used_again_meanwhile(void **state)
{
    (void)state;
    struct world *w = world_create();
    Cw__Payload p, q;
    char *argv[1], *argv2[1];
    uint8_t one[32], two[32];
    fill(&p, argv, "a");
    fill(&q, argv2, "b");
    cw_payloads_put(w->c.payloads, cw_turn_batch(w->c.turn), &p, one, NULL);
    cw_payloads_put(w->c.payloads, cw_turn_batch(w->c.turn), &q, two, NULL);
    world_commit(w);
    cw_payloads_sweep_begin(w->c.payloads);
    cw_payloads_put(w->c.payloads, cw_turn_batch(w->c.turn), &p, one, NULL);
    assert_false(cw_payloads_sweep_drop(w->c.payloads, cw_turn_batch(w->c.turn), one));
    assert_true(cw_payloads_sweep_drop(w->c.payloads, cw_turn_batch(w->c.turn), two));
    cw_payloads_sweep_end(w->c.payloads);
    world_commit(w);
    assert_int_equal(payload_rows(w), 1);
    /* and a dropped one is stored anew */
    cw_payloads_put(w->c.payloads, cw_turn_batch(w->c.turn), &q, two, NULL);
    world_commit(w);
    assert_int_equal(payload_rows(w), 2);
    world_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_sort_as_their_numbers_do),
        cmocka_unit_test(a_row_of_a_newer_schema_is_not_guessed_at),
        cmocka_unit_test(the_same_payload_is_stored_once),
        cmocka_unit_test(a_sweep_keeps_what_is_used_again_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
