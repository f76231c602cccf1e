/* Replay windows, the cache of channels, kept answers: their bounds above all. */
#include "config.h"

#include "wire/rpc_answer.h"
#include "wire/rpc_peer.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct cw_channel channel_of(uint32_t n)
{
    struct cw_channel c = {.initiator = false};

    memcpy(c.eph_pub, &n, sizeof(n));
    return c;
}

static struct cw_rpc_peer *add(struct cw_rpc_peers *p, uint32_t n)
{
    struct cw_channel c = channel_of(n);
    struct cw_identity who = {.size = sizeof(who), .uid = n};

    return cw_rpc_peers_add(p, &c, &who);
}

static struct cw_rpc_peer *find(struct cw_rpc_peers *p, uint32_t n)
{
    return cw_rpc_peers_find(p, channel_of(n).eph_pub);
}

static const uint8_t *id_of(uint32_t n)
{
    static uint8_t id[16];

    memcpy(id, &n, sizeof(n));
    return id;
}

static void least_recently_used_channel_goes_first(void **state)
{
    struct cw_rpc_peers *p = cw_rpc_peers_create();

    (void)state;
    for (uint32_t i = 0; i < CW_RPC_PEERS_MAX; i++)
        assert_non_null(add(p, i));
    assert_non_null(find(p, 0)); /* now the newest */
    assert_non_null(add(p, CW_RPC_PEERS_MAX));
    assert_int_equal(cw_rpc_peers_count(p), CW_RPC_PEERS_MAX);
    assert_null(find(p, 1));
    assert_non_null(find(p, 0));
    assert_int_equal(find(p, 2)->identity.uid, 2);
    cw_rpc_peers_destroy(p);
}

static void channel_with_calls_stays(void **state)
{
    struct cw_rpc_peers *p = cw_rpc_peers_create();

    (void)state;
    for (uint32_t i = 0; i < CW_RPC_PEERS_MAX; i++)
        add(p, i)->calls = 1;
    assert_null(add(p, CW_RPC_PEERS_MAX));
    find(p, 77)->calls = 0;
    assert_non_null(add(p, CW_RPC_PEERS_MAX));
    assert_null(find(p, 77));
    cw_rpc_peers_destroy(p);
}

static void id_that_left_the_window_is_a_replay(void **state)
{
    struct cw_rpc_peers *p = cw_rpc_peers_create();
    struct cw_rpc_peer *peer = add(p, 1);
    struct cw_rpc_seen *s;

    (void)state;
    for (uint32_t i = 0; i < 3 * CW_RPC_WINDOW; i++)
        assert_int_equal(cw_rpc_peer_add_seen(peer, id_of(i), 1000 + i, &s), 0);
    assert_non_null(cw_rpc_peer_seen(peer, id_of(3 * CW_RPC_WINDOW - 1)));
    assert_null(cw_rpc_peer_seen(peer, id_of(0)));
    assert_int_equal(cw_rpc_peer_add_seen(peer, id_of(0), 1000, &s), -ESTALE);
    assert_int_equal(peer->n_seen, CW_RPC_WINDOW);
    cw_rpc_peers_destroy(p);
}

static void ids_in_progress_do_not_leave_the_window(void **state)
{
    struct cw_rpc_peers *p = cw_rpc_peers_create();
    struct cw_rpc_peer *peer = add(p, 1);
    struct cw_rpc_seen *s;

    (void)state;
    for (uint32_t i = 0; i < CW_RPC_WINDOW; i++) {
        assert_int_equal(cw_rpc_peer_add_seen(peer, id_of(i), 1000 + i, &s), 0);
        s->call = (struct cw_rpc_call *)p; /* any */
    }
    assert_int_equal(cw_rpc_peer_add_seen(peer, id_of(9999), 99999, &s), -EAGAIN);
    cw_rpc_peer_seen(peer, id_of(5))->call = NULL;
    assert_int_equal(cw_rpc_peer_add_seen(peer, id_of(9999), 99999, &s), 0);
    assert_null(cw_rpc_peer_seen(peer, id_of(5)));
    cw_rpc_peers_destroy(p);
}

static const struct cw_identity alice = {.size = sizeof(alice), .uid = 1};
static const struct cw_identity bob = {.size = sizeof(bob), .uid = 2};

static struct cw_rpc_answer *begin(struct cw_rpc_answers *t, uint32_t n)
{
    return cw_rpc_answers_begin(t, &alice, id_of(n), (struct cw_rpc_call *)t);
}

static void answer_belongs_to_who_asked(void **state)
{
    struct cw_rpc_answers *t = cw_rpc_answers_create();
    struct cw_rpc_answer *a = begin(t, 1);

    (void)state;
    assert_ptr_equal(cw_rpc_answers_find(t, &alice, id_of(1)), a);
    assert_non_null(a->call);
    cw_rpc_answers_finish(t, a, false, "yes", 3, 100);
    assert_null(a->call);
    assert_memory_equal(cw_rpc_answers_find(t, &alice, id_of(1))->body, "yes", 3);
    assert_null(cw_rpc_answers_find(t, &bob, id_of(1)));
    assert_null(cw_rpc_answers_find(t, &alice, id_of(2)));
    a = begin(t, 3);
    cw_rpc_answers_forget(t, a);
    assert_null(cw_rpc_answers_find(t, &alice, id_of(3)));
    cw_rpc_answers_destroy(t);
}

static void answers_go_after_ten_minutes(void **state)
{
    struct cw_rpc_answers *t = cw_rpc_answers_create();

    (void)state;
    cw_rpc_answers_finish(t, begin(t, 1), false, "a", 1, 0);
    cw_rpc_answers_finish(t, begin(t, 2), false, "b", 1, 1000);
    begin(t, 3); /* in progress: stays */
    cw_rpc_answers_expire(t, CW_RPC_ANSWER_KEEP_MS - 1);
    assert_non_null(cw_rpc_answers_find(t, &alice, id_of(1)));
    cw_rpc_answers_expire(t, CW_RPC_ANSWER_KEEP_MS);
    assert_null(cw_rpc_answers_find(t, &alice, id_of(1)));
    assert_non_null(cw_rpc_answers_find(t, &alice, id_of(2)));
    cw_rpc_answers_expire(t, INT64_MAX / 2);
    assert_null(cw_rpc_answers_find(t, &alice, id_of(2)));
    assert_non_null(cw_rpc_answers_find(t, &alice, id_of(3)));
    cw_rpc_answers_destroy(t);
}

static void too_many_bytes_cost_the_oldest_bodies_only(void **state)
{
    struct cw_rpc_answers *t = cw_rpc_answers_create();
    const size_t big = CW_RPC_ANSWERS_BYTES_MAX / 8;
    cw_autofree char *body = cw_xcalloc(1, big);

    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        cw_rpc_answers_finish(t, begin(t, i), false, body, big, i);
    assert_false(cw_rpc_answers_find(t, &alice, id_of(0))->have_body);
    assert_false(cw_rpc_answers_find(t, &alice, id_of(11))->have_body);
    assert_true(cw_rpc_answers_find(t, &alice, id_of(12))->have_body);
    assert_true(cw_rpc_answers_find(t, &alice, id_of(19))->have_body);
    cw_rpc_answers_destroy(t);
}

static void too_many_answers_cost_the_oldest(void **state)
{
    struct cw_rpc_answers *t = cw_rpc_answers_create();

    (void)state;
    for (uint32_t i = 0; i <= CW_RPC_ANSWERS_MAX; i++)
        cw_rpc_answers_finish(t, begin(t, i), false, "x", 1, i);
    assert_null(cw_rpc_answers_find(t, &alice, id_of(0)));
    assert_non_null(cw_rpc_answers_find(t, &alice, id_of(1)));
    cw_rpc_answers_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_recently_used_channel_goes_first),
        cmocka_unit_test(channel_with_calls_stays),
        cmocka_unit_test(id_that_left_the_window_is_a_replay),
        cmocka_unit_test(ids_in_progress_do_not_leave_the_window),
        cmocka_unit_test(answer_belongs_to_who_asked),
        cmocka_unit_test(answers_go_after_ten_minutes),
        cmocka_unit_test(too_many_bytes_cost_the_oldest_bodies_only),
        cmocka_unit_test(too_many_answers_cost_the_oldest),
    };

    return cmocka_run_group_tests_name("rpc_peer", tests, NULL, NULL);
}
