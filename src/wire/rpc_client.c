/* The asking end of requests, blocking. A call is a list of tries; a try is: a socket that is
 * connected, one frame, one answer. nanomsg can lose a first message for ever while its connection
 * looks fine, so only a fresh socket counts as a new try. Test: rpc_test.c. */
#include "config.h"

#include "wire/rpc_client.h"

#include "base/clock.h"
#include "proto/walk.h"
#include "proto/wire.pb-c.h"
#include "wire/nnsock.h"

#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define FIRST_TRY_MS 2000
#define PROGRESS_MS 20000 /* to the next try once the server has said that it is at work */
#define LOOK_MS 100       /* how soon a lost connection is noticed */
#define ABSENT_MS 3000    /* nobody listens: a restart may be under way */
#define CHANNEL_LIFE_MS (4 * 60 * 1000) /* credentials live 5 min */
#define STAMP_BYTES 8

struct cw_rpc_client {
    char *url;
    uint8_t server_pub[32];
    cw_rpc_credential_fn credential;
    void *arg;
    struct cw_channel channel;
    int64_t channel_until_ms; /* 0: none */
    uint8_t cred[CW_FRAME_CRED_MAX];
    size_t cred_len;
    struct cw_nnsock *sock;
    uint64_t last_stamp_ms;
    volatile sig_atomic_t *interrupt;
    struct cw_buf in, plain, out;
};

/* One call while it lasts. */
struct attempt {
    struct cw_rpc_client *c;
    const struct cw_kind_row *row;
    struct cw_buf request; /* stamp and packed message */
    uint8_t id[16];
    int64_t start_ms, deadline_ms, try_until_ms;
    uint64_t established; /* of the socket when the frame was sent */
    bool sent;            /* in any try: from then on the outcome is unknown */
};

static int64_t now_ms(void)
{
    return cw_clock_mono_ns() / CW_NS_PER_MS;
}

int cw_rpc_client_open(const char *url, const uint8_t server_pub[32],
                       cw_rpc_credential_fn credential, void *arg, struct cw_rpc_client **ret,
                       struct cw_error *err)
{
    struct cw_rpc_client *c;

    if (sodium_init() < 0)
        return cw_fail(err, -EIO, "libsodium does not start");
    c = cw_xcalloc(1, sizeof(*c));
    c->url = cw_xstrdup(url);
    memcpy(c->server_pub, server_pub, 32);
    c->credential = credential;
    c->arg = arg;
    *ret = c;
    return 0;
}

void cw_rpc_client_close(struct cw_rpc_client *c)
{
    if (c == NULL)
        return;
    cw_nnsock_close(c->sock);
    cw_channel_clear(&c->channel);
    cw_buf_fini(&c->in);
    cw_buf_fini(&c->plain);
    cw_buf_fini(&c->out);
    free(c->url);
    free(c);
}

void cw_rpc_client_set_interrupt(struct cw_rpc_client *c, volatile sig_atomic_t *flag)
{
    c->interrupt = flag;
}

/* ---- waiting ---- */
/* 1: readable, 0: the time is over, -EINTR: the caller's flag is set. Signals are let in only while
 * waiting, so one that comes between the look at the flag and the wait is not missed. */
static int wait_for(const struct cw_rpc_client *c, int fd, int64_t until_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    sigset_t all, old;
    int r = 0;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    for (;;) {
        int64_t left = until_ms - now_ms();
        struct timespec ts = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * CW_NS_PER_MS};

        r = c->interrupt != NULL && *c->interrupt != 0 ? -EINTR : 0;
        if (r < 0 || left <= 0)
            break;
        r = ppoll(&p, fd >= 0 ? 1 : 0, &ts, &old);
        if (r >= 0 || errno != EINTR)
            break;
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r > 0 ? 1 : r == -EINTR ? -EINTR : 0;
}

int cw_rpc_client_pause(struct cw_rpc_client *c, uint32_t ms)
{
    return wait_for(c, -1, now_ms() + ms);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int interrupted(struct cw_error *err)
{
    return cw_fail(err, -EINTR, "interrupted");
}

static int no_answer(const struct attempt *t, struct cw_error *err)
{
    return cw_fail(
        err, -EHOSTUNREACH,
        "controller at %s did not answer within %lld s: outcome unknown, retrying is safe",
        t->c->url, (long long)((t->deadline_ms - t->start_ms + 999) / 1000));
}

static int not_running(const struct attempt *t, const char *why, struct cw_error *err)
{
    bool absent_for_sure =
        strcmp(why, strerror(EACCES)) != 0 && strcmp(why, strerror(ETIMEDOUT)) != 0;

    if (strcmp(why, strerror(EACCES)) == 0)
        return cw_fail(err, -EACCES,
                       "controller at %s: Permission denied: an ipc socket is its "
                       "owner's; an instance that users share listens on tcp",
                       t->c->url);
    return cw_fail(err, -EHOSTUNREACH, "controller at %s %s (%s): nothing was sent", t->c->url,
                   absent_for_sure ? "is not running" : "cannot be reached", why);
}

/* ---- is anybody there? ---- */
/* NULL: somebody listens, or it cannot be told. */
static const char *absent(const struct cw_rpc_client *c)
{
    const char *path = cw_nnsock_ipc_path(c->url);
    int r = path != NULL ? cw_nnsock_probe(path) : 0;

    if (path != NULL)
        return r < 0 ? strerror(-r) : NULL;
    return cw_nnsock_established(c->sock) == 0 && cw_nnsock_connect_errors(c->sock) > 0
               ? "no connection"
               : NULL;
}

/* Waits until the socket takes a frame. A server that is not there gets 3 s, unless an earlier try
 * may have reached it. 0, -EINTR, -EHOSTUNREACH, or -ETIMEDOUT: this try is over. */
static int wait_connected(struct attempt *t, struct cw_error *err)
{
    struct cw_rpc_client *c = t->c;
    int fd = cw_nnsock_send_fd(c->sock);
    int64_t until_ms = earlier(t->try_until_ms, t->deadline_ms);
    int64_t look_ms = LOOK_MS / 4;

    if (fd < 0)
        return cw_fail_errno(err, fd, "socket %s", c->url);
    for (;;) {
        const char *why;
        int r = wait_for(c, fd, earlier(until_ms, now_ms() + look_ms));

        if (r != 0)
            return r > 0 ? 0 : interrupted(err);
        why = absent(c);
        if (why != NULL && !t->sent && now_ms() >= earlier(t->start_ms + ABSENT_MS, t->deadline_ms))
            return not_running(t, why, err);
        if (now_ms() >= until_ms && (why == NULL || t->sent))
            return -ETIMEDOUT;
        if (now_ms() >= until_ms)
            until_ms = earlier(t->start_ms + ABSENT_MS, t->deadline_ms);
        look_ms = LOOK_MS;
    }
}

/* ---- one try ---- */
static int get_channel(struct attempt *t, struct cw_error *err)
{
    struct cw_rpc_client *c = t->c;
    struct cw_error why = {.code = 0};
    int r;

    if (c->channel_until_ms > now_ms())
        return 0;
    c->channel_until_ms = 0;
    r = cw_channel_initiate(c->server_pub, &c->channel);
    if (r < 0)
        return cw_fail(err, -EINVAL, "the controller's public key is not a usable one");
    c->cred_len = 0;
    while (c->credential != NULL) {
        r = c->credential(c->channel.eph_pub, c->cred, sizeof(c->cred), &c->cred_len, c->arg, &why);
        if (r != -EAGAIN)
            break;
        if (now_ms() + LOOK_MS >= earlier(t->start_ms + ABSENT_MS, t->deadline_ms))
            return t->sent ? no_answer(t, err) : not_running(t, why.text, err);
        if (wait_for(c, -1, now_ms() + LOOK_MS) < 0)
            return interrupted(err);
    }
    if (r < 0)
        return cw_fail(err, r, "%s", why.text);
    c->channel_until_ms = now_ms() + CHANNEL_LIFE_MS;
    return 0;
}

/* Stamps never repeat within a client: the server takes an equal stamp for a copy. */
static void stamp(struct attempt *t)
{
    uint64_t ms = (uint64_t)(cw_clock_real_ns() / CW_NS_PER_MS);

    if (ms <= t->c->last_stamp_ms && t->c->last_stamp_ms - ms < 60000)
        ms = t->c->last_stamp_ms + 1;
    t->c->last_stamp_ms = ms;
    for (unsigned i = 0; i < STAMP_BYTES; i++)
        t->request.data[i] = (char)(ms >> (8 * i));
}

static int send_request(struct attempt *t, struct cw_error *err)
{
    struct cw_rpc_client *c = t->c;
    struct cw_frame f = {.type = CW_FRAME_REQUEST, .kind = (uint16_t)t->row->kind};
    int r = get_channel(t, err);

    if (r == 0)
        r = wait_connected(t, err);
    if (r < 0)
        return r;
    memcpy(f.request_id, t->id, 16);
    f.cred = c->cred;
    f.cred_len = (uint16_t)c->cred_len;
    stamp(t);
    cw_buf_clear(&c->out);
    cw_channel_seal(&c->channel, &f, t->request.data, t->request.len, &c->out);
    t->established = cw_nnsock_established(c->sock);
    r = cw_nnsock_send(c->sock, NULL, c->out.data, c->out.len);
    if (r == -EAGAIN)
        return -ETIMEDOUT; /* the connection went between the poll and the send */
    if (r < 0)
        return cw_fail_errno(err, r, "socket %s: send", c->url);
    t->sent = true;
    return 0;
}

static int read_failure(const void *p, size_t n, const char *prefix, struct cw_error *err)
{
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m = NULL;
    int r = cw_walk_unpack(&cw__failure__descriptor, p, n, a, &m, err);

    if (r == 0) {
        const Cw__Failure *f = (const Cw__Failure *)(const void *)m;

        r = f->code > 0 && f->code < 4096 ? -f->code : -EIO;
        (void)cw_fail(err, r, "%s%s", prefix, f->text);
    }
    cw_arena_destroy(a);
    return r;
}

/* 1: that was the answer (*ret_code: 0 or the failure, the body in c->plain), 0: something else. */
static int take_frame(struct attempt *t, int *ret_code, struct cw_error *err)
{
    struct cw_rpc_client *c = t->c;
    struct cw_frame f;

    if (cw_frame_unpack(c->in.data, c->in.len, &f, NULL) < 0 ||
        memcmp(f.request_id, t->id, 16) != 0)
        return 0;
    if (f.type == CW_FRAME_REFUSAL) {
        *ret_code = read_failure(f.body, f.body_len, "refused (unsealed answer): ", err);
        return 1;
    }
    cw_buf_clear(&c->plain);
    if (f.kind != t->row->kind || cw_channel_open(&c->channel, &f, &c->plain) < 0)
        return 0;
    if (f.type == CW_FRAME_ACK)
        t->try_until_ms = now_ms() + PROGRESS_MS;
    if (f.type != CW_FRAME_REPLY)
        return 0;
    *ret_code = f.seq != 0 ? read_failure(c->plain.data, c->plain.len, "", err) : 0;
    return 1;
}

static bool connection_lost(const struct attempt *t)
{
    return !cw_nnsock_connected(t->c->sock) || cw_nnsock_established(t->c->sock) != t->established;
}

/* 0 with *ret_code set, -EINTR, or -ETIMEDOUT: this try is over. */
static int wait_answer(struct attempt *t, int *ret_code, struct cw_error *err)
{
    struct cw_rpc_client *c = t->c;
    int fd = cw_nnsock_fd(c->sock);

    for (;;) {
        int64_t until_ms = earlier(t->try_until_ms, t->deadline_ms);
        int r = wait_for(c, fd, earlier(until_ms, now_ms() + LOOK_MS));

        if (r < 0)
            return interrupted(err);
        cw_buf_clear(&c->in);
        while (cw_nnsock_recv(c->sock, NULL, &c->in) == 0) {
            if (take_frame(t, ret_code, err) == 1)
                return 0;
            cw_buf_clear(&c->in);
        }
        if (now_ms() >= until_ms || connection_lost(t))
            return -ETIMEDOUT;
    }
}

static int fresh_socket(struct cw_rpc_client *c, struct cw_error *err)
{
    struct cw_nnsock *old = c->sock;
    int r;

    c->sock = NULL;
    r = cw_nnsock_connect(c->url, &c->sock, err);
    cw_nnsock_close(old); /* after the open: nanomsg's thread stays */
    return r;
}

/* ---- the call ---- */
static int run_tries(struct attempt *t, int *ret_code, struct cw_error *err)
{
    int64_t wait_ms = FIRST_TRY_MS;

    for (;;) {
        int r = 0;

        t->try_until_ms = now_ms() + wait_ms;
        if (t->c->sock == NULL)
            r = fresh_socket(t->c, err);
        if (r == 0)
            r = send_request(t, err);
        if (r == 0)
            r = wait_answer(t, ret_code, err);
        if (r != -ETIMEDOUT)
            return r;
        if (now_ms() >= t->deadline_ms)
            return t->sent ? no_answer(t, err) : not_running(t, strerror(ETIMEDOUT), err);
        if (now_ms() >= t->try_until_ms)
            wait_ms *= 2;
        r = fresh_socket(t->c, err);
        if (r < 0)
            return r;
    }
}

int cw_rpc_client_call(struct cw_rpc_client *c, enum cw_kind kind, const ProtobufCMessage *m,
                       uint32_t timeout_ms, struct cw_arena *a, ProtobufCMessage **ret,
                       struct cw_error *err)
{
    struct attempt t = {.c = c, .row = cw_kind_find(kind), .start_ms = now_ms()};
    int code = 0;
    int r;

    if (t.row == NULL || m->descriptor != t.row->request)
        return cw_fail(err, -EINVAL, "request %d does not fit its message", (int)kind);
    t.deadline_ms = t.start_ms + timeout_ms;
    randombytes_buf(t.id, sizeof(t.id));
    cw_buf_add(&t.request, "\0\0\0\0\0\0\0", STAMP_BYTES);
    cw_walk_pack(m, &t.request);
    if (t.request.len > CW_FRAME_BODY_MAX)
        r = cw_fail(err, -EMSGSIZE, "the request takes %zu bytes, one frame holds %u",
                    t.request.len, CW_FRAME_BODY_MAX);
    else
        r = run_tries(&t, &code, err);
    if (r == 0)
        r = code;
    if (r == 0)
        r = cw_walk_unpack(t.row->reply, c->plain.data, c->plain.len, a, ret, err);
    cw_buf_fini(&t.request);
    return r;
}
