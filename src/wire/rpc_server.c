/* The answering end of requests. One frame goes through: unpack, channel, open, stamp, credential,
 * replay window, kept answers, limits, call; each step either passes it on or answers it.
 * rpc_call.c ends calls. Never decides what a request means. Test: rpc_test.c, rpc_raw_test.c. */
#include "config.h"

#include "wire/rpc_server.h"

#include "base/clock.h"
#include "wire/rpc_call.h"

#include <stdio.h>
#include <string.h>

#define FRAMES_PER_TURN   256
#define CALLS_MAX         16384
#define CALLS_OF_USER_MAX 2048 /* half of the channels: one user cannot shut others out */
#define CALL_BYTES_MAX    (256u * 1024u * 1024u)
#define CALL_LIFE_MS      (15 * 60 * 1000)
#define SWEEP_MS          30000
#define CLOCK_SKEW_MS     (5 * 60 * 1000)
#define STAMP_BYTES       8u

/* One frame on its way to becoming a call. */
struct arrival {
    const struct cw_route *route;
    const struct cw_frame *f;
    struct cw_rpc_peer *peer;
    uint64_t time_ms;
};

static bool changes_state(unsigned kind)
{
    return kind == CW_KIND_SUBMIT || kind == CW_KIND_CANCEL || kind == CW_KIND_NODE_SET ||
           kind == CW_KIND_CTL;
}

int cw_rpc_server_send(struct cw_rpc_server *s, const struct cw_route *route, const void *p,
                       size_t n)
{
    return cw_nnsock_send(s->sock, route, p, n);
}

void cw_rpc_server_refuse(struct cw_rpc_server *s, const struct cw_route *route,
                          const struct cw_frame *f, int code, const char *text)
{
    cw_autobuf struct cw_buf body = {0};
    struct cw_frame r = {.type = CW_FRAME_REFUSAL, .epoch = s->conf.epoch};

    cw_rpc_call_pack_failure(code, text, false, &body);
    r.body = (uint8_t *)body.data;
    r.body_len = (uint32_t)body.len;
    if (f != NULL) {
        memcpy(r.request_id, f->request_id, sizeof(r.request_id));
        memcpy(r.channel_key, f->channel_key, sizeof(r.channel_key));
    }
    cw_buf_clear(&s->out);
    cw_frame_pack(&r, &s->out);
    (void)cw_nnsock_send(s->sock, route, s->out.data, s->out.len);
}

/* ---- arrivals ---- */
static void fail_arrival(struct cw_rpc_server *s, const struct arrival *a,
                         const struct cw_channel *ch, int code, const char *text, bool retry)
{
    cw_autobuf struct cw_buf body = {0};

    cw_rpc_call_pack_failure(code, text, retry, &body);
    cw_rpc_call_send_reply(s, ch, a->route, a->f->kind, a->f->request_id, true, body.data,
                           body.len);
}

/* Tells a retrying client that its request is in progress, so that it need not open more sockets.
 */
static void send_progress(struct cw_rpc_server *s, const struct arrival *a)
{
    struct cw_frame f = {.type = CW_FRAME_ACK, .kind = a->f->kind};

    memcpy(f.request_id, a->f->request_id, 16);
    cw_rpc_call_send(s, &a->peer->channel, a->route, &f, NULL, 0);
}

static void begin_call(struct cw_rpc_server *s, const struct arrival *a, struct cw_rpc_seen *seen)
{
    struct cw_rpc_call *c = cw_xcalloc(1, sizeof(*c));

    c->server = s;
    c->peer = a->peer;
    c->route = *a->route;
    c->identity = a->peer->identity;
    c->kind = (enum cw_kind)a->f->kind;
    c->start_ms = cw_loop_now_ms(s->loop);
    memcpy(c->id, a->f->request_id, 16);
    cw_buf_add(&c->body, s->plain.data + STAMP_BYTES, s->plain.len - STAMP_BYTES);
    a->peer->calls++;
    seen->call = c;
    cw_list_add_tail(&s->calls, &c->item);
    s->n_calls++;
    (void)cw_rpc_call_count(s, c->identity.uid, 1);
    s->call_bytes += c->body.len;
    if (s->conf.verify != NULL && changes_state(c->kind))
        c->answer = cw_rpc_answers_begin(s->answers, &c->identity, c->id, c);
    s->conf.call(c, s->conf.arg);
}

static const char *over_limit(struct cw_rpc_server *s, const struct cw_rpc_peer *peer)
{
    if (peer->calls >= CW_RPC_PEER_CALLS_MAX)
        return "too many requests in progress on this connection (256): wait for answers first";
    if (cw_rpc_call_count(s, peer->identity.uid, 0) >= CALLS_OF_USER_MAX)
        return "too many requests of this user in progress (2048): wait for answers first";
    if (s->n_calls >= CALLS_MAX || s->call_bytes + s->plain.len > CALL_BYTES_MAX)
        return "too many requests in progress: ask again";
    return NULL;
}

/* A retry joins the call that is in progress; it may come over another channel of the same user. */
static void join(struct cw_rpc_server *s, const struct arrival *a, struct cw_rpc_call *c,
                 struct cw_rpc_seen *seen)
{
    if (c->peer != a->peer) {
        struct cw_rpc_seen *old = cw_rpc_peer_seen(c->peer, c->id);

        if (old != NULL)
            old->call = NULL;
        c->peer->calls--;
        c->peer = a->peer;
        a->peer->calls++;
    }
    seen->call = c;
    c->route = *a->route;
    send_progress(s, a);
}

static void repeat(struct cw_rpc_server *s, const struct arrival *a,
                   const struct cw_rpc_answer *kept)
{
    if (!kept->have_body) {
        fail_arrival(s, a, &a->peer->channel, -ESTALE,
                     "this request was carried out before, its answer is no longer kept", false);
        return;
    }
    cw_rpc_call_send_reply(s, &a->peer->channel, a->route, a->f->kind, a->f->request_id,
                           kept->failure, kept->body, kept->len);
}

/* Enters the id into the window. False: this frame is done with (a replay, or refused). */
static bool enter_window(struct cw_rpc_server *s, const struct arrival *a, struct cw_rpc_seen **ret)
{
    struct cw_rpc_seen *seen = cw_rpc_peer_seen(a->peer, a->f->request_id);
    int r;

    if (seen != NULL) {
        /* An honest retry is sealed anew with a later stamp; a copy is not. */
        if (a->time_ms <= seen->time_ms)
            return false;
        seen->time_ms = a->time_ms;
        *ret = seen;
        return true;
    }
    r = cw_rpc_peer_add_seen(a->peer, a->f->request_id, a->time_ms, ret);
    if (r < 0)
        fail_arrival(s, a, &a->peer->channel, r,
                     "this request is older than others on its connection", true);
    return r == 0;
}

static void take_request(struct cw_rpc_server *s, const struct arrival *a)
{
    struct cw_rpc_seen *seen = NULL;
    struct cw_rpc_answer *kept = NULL;

    if (cw_kind_find(a->f->kind) == NULL) {
        fail_arrival(s, a, &a->peer->channel, -ENOSYS, "this side does not know such a request",
                     false);
        return;
    }
    if (!enter_window(s, a, &seen))
        return;
    if (s->conf.verify != NULL && changes_state(a->f->kind))
        kept = cw_rpc_answers_find(s->answers, &a->peer->identity, a->f->request_id);
    if (seen->call != NULL)
        join(s, a, seen->call, seen);
    else if (kept != NULL && kept->call != NULL)
        join(s, a, kept->call, seen);
    else if (kept != NULL)
        repeat(s, a, kept);
    else if (over_limit(s, a->peer) != NULL)
        fail_arrival(s, a, &a->peer->channel, -EAGAIN, over_limit(s, a->peer), true);
    else
        begin_call(s, a, seen);
}

/* The first frame of a channel, or the first one behind the expiry of its credential. */
static int identify(struct cw_rpc_server *s, const struct cw_frame *f, struct cw_identity *ret,
                    struct cw_error *err)
{
    struct cw_identity who = {.size = sizeof(who)};
    int r;

    if (s->conf.verify == NULL) {
        who.expires_ns = INT64_MAX;
    } else {
        r = s->conf.verify(f->channel_key, f->cred, f->cred_len, &who, s->conf.arg, err);
        if (r < 0)
            return r;
        who.node[sizeof(who.node) - 1] = '\0';
    }
    *ret = who;
    return 0;
}

static bool find_peer(struct cw_rpc_server *s, struct arrival *a, const struct cw_channel *ch)
{
    struct cw_error err = {.code = 0};
    struct cw_identity who;
    int r;

    if (a->peer != NULL && a->peer->identity.expires_ns > cw_clock_real_ns())
        return true;
    r = identify(s, a->f, &who, &err);
    if (r < 0) {
        fail_arrival(s, a, ch, r, err.text, false);
        return false;
    }
    if (a->peer != NULL)
        a->peer->identity = who;
    else
        a->peer = cw_rpc_peers_add(s->peers, ch, &who);
    if (a->peer == NULL)
        fail_arrival(s, a, ch, -EAGAIN, "too many connections wait for answers: ask again", true);
    return a->peer != NULL;
}

static bool check_stamp(struct cw_rpc_server *s, struct arrival *a, const struct cw_channel *ch)
{
    int64_t now_ms = cw_clock_real_ns() / CW_NS_PER_MS;
    const uint8_t *p = (const uint8_t *)s->plain.data;
    uint64_t t = 0;
    char text[200];

    if (s->plain.len < STAMP_BYTES) {
        fail_arrival(s, a, ch, -EBADMSG, "request without its time stamp", false);
        return false;
    }
    for (unsigned i = 0; i < STAMP_BYTES; i++)
        t |= (uint64_t)p[i] << (8 * i);
    a->time_ms = t;
    if (t <= (uint64_t)INT64_MAX && (int64_t)t - now_ms <= CLOCK_SKEW_MS &&
        now_ms - (int64_t)t <= CLOCK_SKEW_MS)
        return true;
    (void)snprintf(
        text, sizeof(text),
        "the request is stamped %lld s away from the clock here, 300 s are allowed: set the clocks "
        "(NTP)",
        (long long)(t > (uint64_t)INT64_MAX ? INT64_MAX / 1000 : ((int64_t)t - now_ms) / 1000));
    fail_arrival(s, a, ch, -ESTALE, text, false);
    return false;
}

static void on_request(struct cw_rpc_server *s, const struct cw_route *route,
                       const struct cw_frame *f)
{
    struct arrival a = {.route = route, .f = f};
    struct cw_channel made;
    const struct cw_channel *ch = &made;
    int r = 0;

    a.peer = cw_rpc_peers_find(s->peers, f->channel_key);
    if (a.peer != NULL)
        ch = &a.peer->channel;
    else
        r = cw_channel_respond(&s->key, f->channel_key, &made);
    cw_buf_clear(&s->plain);
    if (r == 0)
        r = cw_channel_open(ch, f, &s->plain);
    if (r < 0)
        cw_rpc_server_refuse(s, route, f, r,
                             "the request cannot be opened: it was sealed for another public key, "
                             "or changed on its way");
    else if (check_stamp(s, &a, ch) && find_peer(s, &a, ch))
        take_request(s, &a);
    if (ch == &made)
        cw_channel_clear(&made);
}

static void on_frame(struct cw_rpc_server *s, const struct cw_route *route)
{
    struct cw_error err = {.code = 0};
    struct cw_frame f;
    int r = cw_frame_unpack(s->in.data, s->in.len, &f, &err);

    if (r < 0) {
        cw_rpc_server_refuse(s, route, NULL, r, err.text);
        return;
    }
    switch (f.type) {
    case CW_FRAME_REQUEST:
        if (s->conf.call != NULL)
            on_request(s, route, &f);
        else
            cw_rpc_server_refuse(s, route, &f, -EPROTO, "this socket takes no requests");
        break;
    case CW_FRAME_REPLY:
    case CW_FRAME_REFUSAL: /* never answered: two servers would talk for ever */
        break;
    default:
        if (s->conf.other != NULL)
            s->conf.other(route, &f, s->conf.arg);
        else
            cw_rpc_server_refuse(s, route, &f, -EPROTO, "this socket takes requests only");
    }
}

static void on_readable(int fd, int events, void *arg)
{
    struct cw_rpc_server *s = arg;
    struct cw_route route;
    int r = events < 0 ? events : 0;

    (void)fd;
    for (int i = 0; r == 0 && i < FRAMES_PER_TURN; i++) {
        cw_buf_clear(&s->in);
        r = cw_nnsock_recv(s->sock, &route, &s->in);
        if (r == 0)
            on_frame(s, &route);
    }
    if (r < 0 && r != -EAGAIN)
        cw_loop_io_set(s->io, 0); /* the socket is gone for good; do not spin on it */
}

/* ---- life ---- */
static void on_sweep(void *arg)
{
    struct cw_rpc_server *s = arg;
    int64_t now_ms = cw_loop_now_ms(s->loop);

    cw_rpc_answers_expire(s->answers, now_ms);
    while (!cw_list_empty(&s->calls)) {
        struct cw_rpc_call *c = cw_list_entry(s->calls.next, struct cw_rpc_call, item);

        if (now_ms - c->start_ms < CALL_LIFE_MS)
            return;
        if (c->answer != NULL)
            cw_rpc_answers_forget(s->answers, c->answer);
        c->answer = NULL;
        cw_rpc_call_detach(c);
    }
}

int cw_rpc_server_open(struct cw_loop *l, const struct cw_rpc_server_config *conf,
                       struct cw_rpc_server **ret, struct cw_error *err)
{
    struct cw_nnsock *sock = NULL;
    struct cw_rpc_server *s;
    int r = cw_nnsock_listen(conf->url, &sock, err);

    if (r < 0)
        return r;
    s = cw_xcalloc(1, sizeof(*s));
    s->conf = *conf;
    s->conf.url = NULL;
    s->conf.key = NULL;
    s->key = *conf->key;
    s->loop = l;
    s->sock = sock;
    s->peers = cw_rpc_peers_create();
    s->answers = cw_rpc_answers_create();
    if (conf->verify != NULL)
        s->calls_of = cw_idtable_create();
    cw_list_init(&s->calls);
    s->io = cw_loop_io_open(l, cw_nnsock_fd(sock), CW_LOOP_READ, on_readable, s);
    s->sweep = cw_loop_timer_open(l, on_sweep, s);
    cw_loop_timer_start(s->sweep, SWEEP_MS, SWEEP_MS);
    *ret = s;
    return 0;
}

void cw_rpc_server_close(struct cw_rpc_server *s)
{
    if (s == NULL)
        return;
    while (!cw_list_empty(&s->calls))
        cw_rpc_call_detach(cw_list_entry(s->calls.next, struct cw_rpc_call, item));
    cw_loop_io_close(s->io);
    cw_loop_timer_close(s->sweep);
    cw_nnsock_close(s->sock);
    cw_rpc_peers_destroy(s->peers);
    cw_rpc_answers_destroy(s->answers);
    if (s->calls_of != NULL)
        cw_idtable_destroy(s->calls_of);
    cw_keypair_clear(&s->key);
    cw_buf_fini(&s->in);
    cw_buf_fini(&s->plain);
    cw_buf_fini(&s->out);
    free(s);
}
