/* Tickets: what a node accepts. */
#include "config.h"

#include "wire/ticket.h"

#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t cluster_key[32] = {1, 2, 3};

struct made {
    uint8_t key[32];
    struct cw_buf b;
};

static void make(struct made *m)
{
    Cw__TicketBody t = CW__TICKET_BODY__INIT;
    Cw__Owner o = CW__OWNER__INIT;

    o.uid = 1000;
    t.id = 12;
    t.attempt = 2;
    t.right = "logs";
    t.expires_ns = 1000;
    t.owner = &o;
    t.stdout_path = "/x/y";
    memset(m, 0, sizeof(*m));
    cw_ticket_node_key(cluster_key, "n1", m->key);
    cw_ticket_make(m->key, &t, &m->b);
}

static int open_at(const struct made *m, size_t n, int64_t now_ns, struct cw_error *err)
{
    struct cw_arena *a = cw_arena_create();
    Cw__TicketBody *t = NULL;
    int r = cw_ticket_open(m->key, m->b.data, n, now_ns, a, &t, err);

    if (r == 0) {
        assert_int_equal(t->id, 12);
        assert_int_equal(t->attempt, 2);
        assert_string_equal(t->right, "logs");
        assert_string_equal(t->stdout_path, "/x/y");
    }
    cw_arena_destroy(a);
    return r;
}

static void ticket_opens_until_it_expires(void **state)
{
    struct made m;
    struct cw_error err;

    (void)state;
    make(&m);
    assert_int_equal(open_at(&m, m.b.len, 999, NULL), 0);
    assert_int_equal(open_at(&m, m.b.len, 1000, &err), -EKEYEXPIRED);
    assert_non_null(strstr(err.text, "expired"));
    cw_buf_fini(&m.b);
}

static void other_node_refuses_it(void **state)
{
    struct made m;

    (void)state;
    make(&m);
    cw_ticket_node_key(cluster_key, "n2", m.key);
    assert_int_equal(open_at(&m, m.b.len, 0, NULL), -EACCES);
    cw_buf_fini(&m.b);
}

static void any_change_or_cut_is_refused(void **state)
{
    struct made m;

    (void)state;
    make(&m);
    for (size_t i = 0; i < m.b.len; i++) {
        m.b.data[i] = (char)(m.b.data[i] ^ 4);
        assert_int_equal(open_at(&m, m.b.len, 0, NULL), -EACCES);
        m.b.data[i] = (char)(m.b.data[i] ^ 4);
        assert_int_equal(open_at(&m, i, 0, NULL), -EACCES);
    }
    assert_int_equal(open_at(&m, m.b.len, 0, NULL), 0);
    cw_buf_fini(&m.b);
}

static void signed_garbage_is_refused(void **state)
{
    struct made m;

    (void)state;
    memset(&m, 0, sizeof(m));
    cw_ticket_node_key(cluster_key, "n1", m.key);
    cw_buf_add(&m.b, "crun-wlm ticket 1\xff\xff", 19);
    cw_buf_reserve(&m.b, 32);
    (void)crypto_generichash((uint8_t *)m.b.data + 19, 32, (uint8_t *)m.b.data, 19, m.key, 32);
    memmove(m.b.data, m.b.data + 17, 34);
    assert_int_equal(open_at(&m, 34, 0, NULL), -EBADMSG);
    cw_buf_fini(&m.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticket_opens_until_it_expires),
        cmocka_unit_test(other_node_refuses_it),
        cmocka_unit_test(any_change_or_cut_is_refused),
        cmocka_unit_test(signed_garbage_is_refused),
    };

    if (sodium_init() < 0)
        return 1;
    return cmocka_run_group_tests_name("ticket", tests, NULL, NULL);
}
