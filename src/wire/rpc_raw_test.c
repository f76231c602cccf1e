/* Requests as an attacker, an accident or a retry would send them: frames made by hand over raw
 * sockets. */
#include "config.h"

#include "wire/rpcfixture.h"

#include "base/clock.h"
#include "proto/walk.h"
#include "proto/wire.pb-c.h"
#include "wire/nnsock.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A frame as an attacker or a retrying client would build it. */
struct raw {
    struct cw_channel ch;
    uint8_t id[16];
    struct cw_buf frame;
};

static void raw_frame(struct raw *w, unsigned kind, int64_t stamp_offset_ms, size_t plain_len)
{
    uint64_t t = (uint64_t)(cw_clock_real_ns() / CW_NS_PER_MS + stamp_offset_ms);
    struct cw_frame f = {
        .type = CW_FRAME_REQUEST, .kind = (uint16_t)kind, .cred = w->ch.eph_pub, .cred_len = 32};
    uint8_t plain[8];

    for (int i = 0; i < 8; i++)
        plain[i] = (uint8_t)(t >> (8 * i));
    memcpy(f.request_id, w->id, 16);
    cw_buf_clear(&w->frame);
    cw_channel_seal(&w->ch, &f, plain, plain_len, &w->frame);
}

static struct cw_nnsock *raw_socket(struct cw_rpcfixture *s)
{
    struct cw_nnsock *n = NULL;
    struct pollfd p;

    assert_int_equal(cw_nnsock_connect(s->url, &n, NULL), 0);
    p = (struct pollfd){.fd = cw_nnsock_send_fd(n), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 5000), 1);
    return n;
}

static void raw_send(struct cw_nnsock *n, const struct raw *w)
{
    assert_int_equal(cw_nnsock_send(n, NULL, w->frame.data, w->frame.len), 0);
}

static void raw_send_patiently(struct cw_nnsock *n, const struct raw *w)
{
    while (cw_nnsock_send(n, NULL, w->frame.data, w->frame.len) == -EAGAIN) {
        struct pollfd p = {.fd = cw_nnsock_send_fd(n), .events = POLLIN};

        assert_int_equal(poll(&p, 1, 5000), 1);
    }
}

/* The type of the next frame; *plain its opened body (a refusal's body as it is). 0: nothing in
 * wait_ms. */
static int raw_recv(struct cw_nnsock *n, const struct raw *w, int wait_ms, struct cw_frame *ret,
                    struct cw_buf *plain)
{
    static struct cw_buf in; /* the frame borrows from it */
    struct pollfd p = {.fd = cw_nnsock_fd(n), .events = POLLIN};

    cw_buf_fini(&in);
    if (poll(&p, 1, wait_ms) != 1)
        return 0;
    assert_int_equal(cw_nnsock_recv(n, NULL, &in), 0);
    assert_int_equal(cw_frame_unpack(in.data, in.len, ret, NULL), 0);
    cw_buf_clear(plain);
    if (ret->type == CW_FRAME_REFUSAL)
        cw_buf_add(plain, ret->body, ret->body_len);
    else
        assert_int_equal(cw_channel_open(&w->ch, ret, plain), 0);
    return ret->type;
}

static void expect_failure(const struct cw_buf *body, int code, const char *text)
{
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m = NULL;

    assert_int_equal(cw_walk_unpack(&cw__failure__descriptor, body->data, body->len, a, &m, NULL),
                     0);
    assert_int_equal(((Cw__Failure *)(void *)m)->code, code);
    assert_non_null(strstr(((Cw__Failure *)(void *)m)->text, text));
    cw_arena_destroy(a);
}

static uint64_t job_of(const struct cw_buf *body)
{
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m = NULL;
    uint64_t id;

    assert_int_equal(
        cw_walk_unpack(&cw__submit_reply__descriptor, body->data, body->len, a, &m, NULL), 0);
    id = ((Cw__SubmitReply *)(void *)m)->results[0]->job_id;
    cw_arena_destroy(a);
    return id;
}

static struct raw raw_channel(struct cw_rpcfixture *s)
{
    struct raw w = {.id = {42}};

    assert_int_equal(cw_channel_initiate(s->key.pub, &w.ch), 0);
    return w;
}

static void retry_of_an_answered_submit_gets_the_same_answer(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a, *b;
    struct cw_frame f;

    cw_rpcfixture_start(s);
    a = raw_socket(s);
    raw_frame(&w, CW_KIND_SUBMIT, 0, 8);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    assert_int_equal(job_of(&plain), 1);
    cw_nnsock_close(a); /* as if the answer had been lost */
    b = raw_socket(s);
    raw_frame(&w, CW_KIND_SUBMIT, 1000, 8);
    raw_send(b, &w);
    assert_int_equal(raw_recv(b, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    assert_int_equal(job_of(&plain), 1);
    assert_int_equal(s->submits, 1);
    cw_nnsock_close(b);
    cw_buf_fini(&w.frame);
}

static void retry_over_another_channel_gets_the_same_answer(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct raw w = raw_channel(s), v = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    cw_rpcfixture_start(s);
    a = raw_socket(s);
    raw_frame(&w, CW_KIND_SUBMIT, 0, 8);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    raw_frame(&v, CW_KIND_SUBMIT, 0, 8);
    raw_send(a, &v);
    assert_int_equal(raw_recv(a, &v, 5000, &f, &plain), CW_FRAME_REPLY);
    assert_int_equal(job_of(&plain), 1);
    assert_int_equal(s->submits, 1);
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
    cw_buf_fini(&v.frame);
}

static void retry_joins_the_call_in_progress(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a, *b;
    struct cw_frame f;

    s->manner = HOLD;
    cw_rpcfixture_start(s);
    a = raw_socket(s);
    raw_frame(&w, CW_KIND_SUBMIT, 0, 8);
    raw_send(a, &w);
    b = raw_socket(s);
    assert_int_equal(raw_recv(a, &w, 200, &f, &plain), 0);
    raw_frame(&w, CW_KIND_SUBMIT, 2000, 8);
    raw_send(b, &w);
    assert_int_equal(raw_recv(b, &w, 5000, &f, &plain), CW_FRAME_ACK);
    cw_rpcfixture_release(s);
    assert_int_equal(raw_recv(b, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    assert_int_equal(job_of(&plain), 1);
    assert_int_equal(raw_recv(a, &w, 100, &f, &plain), 0);
    assert_int_equal(s->submits, 1);
    cw_nnsock_close(a);
    cw_nnsock_close(b);
    cw_buf_fini(&w.frame);
}

static void copied_frame_is_not_taken(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    cw_rpcfixture_start(s);
    a = raw_socket(s);
    raw_frame(&w, CW_KIND_PING, 0, 8);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 300, &f, &plain), 0);
    assert_int_equal(s->pings, 1);
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
}

static void wrong_clock_is_told(void **state)
{
    static const int64_t offsets_ms[] = {-301000, 302000, INT64_MAX / 2};
    struct cw_rpcfixture *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    cw_rpcfixture_start(s);
    a = raw_socket(s);
    for (size_t i = 0; i < CW_ARRAY_LEN(offsets_ms); i++) {
        raw_frame(&w, CW_KIND_PING, offsets_ms[i], 8);
        raw_send(a, &w);
        assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
        assert_int_equal(f.seq, 1);
        expect_failure(&plain, ESTALE, "set the clocks");
    }
    raw_frame(&w, CW_KIND_PING, 0, 7);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    expect_failure(&plain, EBADMSG, "time stamp");
    assert_int_equal(s->pings, 0);
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
}

static void unknown_request_is_refused(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    cw_rpcfixture_start(s);
    a = raw_socket(s);
    raw_frame(&w, 9999, 0, 8);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    expect_failure(&plain, ENOSYS, "does not know");
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
}

static void garbage_gets_one_refusal_and_harms_nobody(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_rpc_client *c = cw_rpcfixture_client(s, NULL);
    struct cw_nnsock *a;
    struct cw_frame f;

    cw_rpcfixture_start(s);
    a = raw_socket(s);
    for (size_t n = 0; n < 400; n += 7) {
        uint8_t junk[400];

        memset(junk, (int)(n & 0xff), sizeof(junk));
        assert_int_equal(cw_nnsock_send(a, NULL, junk, n), 0);
        assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REFUSAL);
    }
    for (size_t i = 0; i < CW_FRAME_HEADER; i++) { /* every header byte changed once */
        int type;

        raw_frame(&w, CW_KIND_PING, 0, 8);
        w.frame.data[i] = (char)(w.frame.data[i] ^ 0x55);
        raw_send(a, &w);
        type = raw_recv(a, &w, 5000, &f, &plain);
        assert_true(type == CW_FRAME_REFUSAL);
    }
    assert_int_equal(s->pings, 0);
    assert_int_equal(cw_rpcfixture_ping(c, 5000, NULL, NULL), 0);
    cw_nnsock_close(a);
    cw_rpc_client_close(c);
    cw_buf_fini(&w.frame);
}

static void channel_has_at_most_256_calls(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    s->manner = HOLD;
    cw_rpcfixture_start(s);
    a = raw_socket(s);
    for (unsigned i = 0; i <= 256; i++) {
        w.id[1] = (uint8_t)i;
        w.id[2] = (uint8_t)(i >> 8);
        raw_frame(&w, CW_KIND_PING, (int64_t)i, 8);
        raw_send_patiently(a, &w);
    }
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    expect_failure(&plain, EAGAIN, "256");
    cw_rpcfixture_release(s);
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
}

static void user_has_at_most_2048_calls(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct raw w[9];
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;
    unsigned n = 0;

    s->manner = HOLD;
    cw_rpcfixture_start(s);
    a = raw_socket(s);
    for (unsigned k = 0; k < 9; k++)
        w[k] = raw_channel(s);
    for (unsigned i = 0; i < 9 * 240; i++) {
        struct raw *r = &w[i / 240];

        r->id[1] = (uint8_t)i;
        r->id[2] = (uint8_t)(i >> 8);
        raw_frame(r, CW_KIND_PING, i % 240, 8);
        raw_send_patiently(a, r);
    }
    while (raw_recv(a, &w[8], 1000, &f, &plain) == CW_FRAME_REPLY) {
        expect_failure(&plain, EAGAIN, "2048");
        n++;
    }
    assert_in_range(n, 1, 9 * 240 - 2048); /* the server's sends may be lost in a burst */
    cw_rpcfixture_release(s);
    assert_int_equal(s->pings, 2048);
    cw_nnsock_close(a);
    for (unsigned k = 0; k < 9; k++)
        cw_buf_fini(&w[k].frame);
}

static void ended_calls_after_close_only_free(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    s->manner = HOLD;
    cw_rpcfixture_start(s);
    a = raw_socket(s);
    raw_frame(&w, CW_KIND_SUBMIT, 0, 8);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 100, &f, &plain), 0);
    cw_rpcfixture_stop(s); /* closes the server, then drops the held call */
    assert_int_equal(s->n_held, 0);
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
}

#define T(name) cmocka_unit_test_setup_teardown(name, cw_rpcfixture_setup, cw_rpcfixture_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(retry_of_an_answered_submit_gets_the_same_answer),
        T(retry_over_another_channel_gets_the_same_answer),
        T(retry_joins_the_call_in_progress),
        T(copied_frame_is_not_taken),
        T(wrong_clock_is_told),
        T(unknown_request_is_refused),
        T(garbage_gets_one_refusal_and_harms_nobody),
        T(channel_has_at_most_256_calls),
        T(user_has_at_most_2048_calls),
        T(ended_calls_after_close_only_free),
    };

    return cmocka_run_group_tests_name("rpc_raw", tests, NULL, NULL);
}
