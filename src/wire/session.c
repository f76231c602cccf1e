/* The numbered session between a node and the controller; doc/PROTOCOL.md tells it frame by frame.
 * In every session frame request_id is 8 bytes of a counter that only grows, then 8 bytes of a tag:
 * the node's nonce in HELLO and WELCOME (so an old WELCOME opens nothing), the controller's link
 * tag in all others (so frames of an older pairing fall out whatever their numbers). Test:
 * session_test.c. */
#include "config.h"

#include "wire/session.h"

#include "base/mem.h"
#include "proto/walk.h"
#include "wire/recqueue.h"

#include <sodium.h>
#include <string.h>

#define HELLO_FIRST_MS    200
#define HELLO_MAX_MS      2000
#define HELLO_LEAST_MS    200 /* between two HELLOs, whatever asks for them */
#define RESEND_FIRST_MS   200
#define RESEND_MAX_MS     2000
#define UNANSWERED_MS     1000 /* then HELLO: the controller may be a new one */
#define SILENT_HEARTBEATS 3

struct cw_session {
    struct cw_channel channel;
    struct cw_session_ops ops;
    void *arg;
    bool node;
    bool linked; /* node: WELCOME seen; controller: the node has shown that it has seen ours */
    uint64_t epoch, peer_epoch;
    uint32_t heartbeat_ms;
    uint8_t cred[CW_FRAME_CRED_MAX];
    uint16_t cred_len;
    uint64_t tag;   /* of this pairing, made by the controller; 0: none yet */
    uint64_t nonce; /* node: of the HELLOs until one is answered */
    uint64_t counter_out, counter_in;
    struct cw_buf welcome; /* controller: repeated until the node is linked */

    struct cw_recqueue queue;
    uint64_t in_flight_last; /* 0: nothing is in flight */
    int64_t resend_at_ms, resend_ms;
    uint64_t expected; /* next record to take */
    uint64_t durable;  /* records the owner has acknowledged */
    bool ack_due;

    int64_t now_ms; /* of the last call that told it */
    int64_t heard_ms, sent_ms, unanswered_ms, silent_from_ms;
    int64_t hello_at_ms, hello_ms, hello_sent_ms;
    bool silent_told;
};

/* ---- sending ---- */
static void put64(uint8_t *p, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get64(const uint8_t *p)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static void send_frame(struct cw_session *s, uint8_t type, uint64_t tag, uint64_t seq,
                       const struct cw_buf *body)
{
    cw_autobuf struct cw_buf out = {0};
    struct cw_frame f = {.type = type,
                         .epoch = s->epoch,
                         .peer_epoch = s->peer_epoch,
                         .seq = seq,
                         .ack = s->durable + 1};

    put64(f.request_id, ++s->counter_out);
    put64(f.request_id + 8, tag);
    if (type == CW_FRAME_HELLO) {
        f.cred = s->cred;
        f.cred_len = s->cred_len;
    } else {
        s->ack_due = false;
    }
    cw_channel_seal(&s->channel, &f, body != NULL ? body->data : NULL, body != NULL ? body->len : 0,
                    &out);
    s->sent_ms = s->now_ms;
    s->ops.send(out.data, out.len, s->arg);
}

/* From now on silence means something. */
static void expect_answer(struct cw_session *s)
{
    if (s->unanswered_ms == 0)
        s->unanswered_ms = s->now_ms;
}

static void send_hello(struct cw_session *s)
{
    cw_autobuf struct cw_buf body = {0};

    s->hello_sent_ms = s->now_ms;
    s->hello_at_ms = s->now_ms + s->hello_ms;
    s->hello_ms = s->hello_ms * 2 > HELLO_MAX_MS ? HELLO_MAX_MS : s->hello_ms * 2;
    if (!s->ops.hello(&body, s->arg) || body.len > CW_FRAME_BODY_MAX)
        return;
    send_frame(s, CW_FRAME_HELLO, s->nonce, 0, &body);
}

static void send_data(struct cw_session *s)
{
    cw_autobuf struct cw_buf body = {0};

    s->in_flight_last = cw_recqueue_pack(&s->queue, &body);
    s->resend_at_ms = s->now_ms + s->resend_ms;
    send_frame(s, CW_FRAME_DATA, s->tag, s->queue.first_seq, &body);
    expect_answer(s);
}

static void send_due(struct cw_session *s)
{
    if (!s->linked)
        return;
    if (s->in_flight_last == 0 && s->queue.n > 0)
        send_data(s);
    if (s->ack_due)
        send_frame(s, CW_FRAME_ACK, s->tag, 0, NULL);
}

/* ---- life ---- */
static struct cw_session *create(const struct cw_channel *ch, uint64_t epoch, uint32_t heartbeat_ms,
                                 const struct cw_session_ops *ops, void *arg)
{
    struct cw_session *s = cw_xcalloc(1, sizeof(*s));

    s->channel = *ch;
    s->ops = *ops;
    s->arg = arg;
    s->epoch = epoch;
    s->heartbeat_ms = heartbeat_ms;
    s->hello_ms = HELLO_FIRST_MS;
    s->resend_ms = RESEND_FIRST_MS;
    s->expected = 1;
    cw_recqueue_init(&s->queue);
    return s;
}

static uint64_t random_nonzero(void)
{
    uint64_t v = 0;

    while (v == 0)
        randombytes_buf(&v, sizeof(v));
    return v;
}

struct cw_session *cw_session_create_node(const struct cw_channel *ch, const uint8_t *cred,
                                          size_t cred_len, uint64_t epoch, uint32_t heartbeat_ms,
                                          const struct cw_session_ops *ops, void *arg)
{
    struct cw_session *s = create(ch, epoch, heartbeat_ms, ops, arg);

    s->node = true;
    s->nonce = random_nonzero();
    cw_session_set_credential(s, cred, cred_len);
    return s;
}

struct cw_session *cw_session_create_controller(const struct cw_channel *ch, uint64_t epoch,
                                                uint32_t heartbeat_ms,
                                                const struct cw_session_ops *ops, void *arg)
{
    struct cw_session *s = create(ch, epoch, heartbeat_ms, ops, arg);

    s->tag = random_nonzero();
    return s;
}

void cw_session_destroy(struct cw_session *s)
{
    if (s == NULL)
        return;
    cw_recqueue_clear(&s->queue);
    cw_buf_fini(&s->welcome);
    sodium_memzero(s, sizeof(*s));
    free(s);
}

void cw_session_set_credential(struct cw_session *s, const uint8_t *cred, size_t cred_len)
{
    s->cred_len = (uint16_t)(cred_len < sizeof(s->cred) ? cred_len : sizeof(s->cred));
    if (s->cred_len > 0)
        memcpy(s->cred, cred, s->cred_len);
}

/* ---- the owner's side ---- */
int cw_session_push(struct cw_session *s, const Cw__NodeRecordMsg *m, uint64_t *ret_seq)
{
    cw_autobuf struct cw_buf b = {0};
    uint64_t seq;

    if (s->queue.n >= CW_SESSION_QUEUE_MAX)
        return -ENOBUFS;
    cw_walk_pack(&m->base, &b);
    if (b.len > CW_FRAME_BODY_MAX - 64)
        return -EMSGSIZE;
    if (s->queue.bytes + b.len > CW_RECQUEUE_BYTES_MAX)
        return -ENOBUFS;
    seq = cw_recqueue_add(&s->queue, b.data, b.len);
    if (ret_seq != NULL)
        *ret_seq = seq;
    return 0;
}

void cw_session_ack(struct cw_session *s, uint64_t seq)
{
    if (seq <= s->durable || seq >= s->expected)
        return;
    s->durable = seq;
    s->ack_due = true;
}

void cw_session_flush(struct cw_session *s, int64_t now_ms)
{
    s->now_ms = now_ms;
    send_due(s);
}

bool cw_session_up(const struct cw_session *s)
{
    return s->linked && s->now_ms - s->heard_ms < (int64_t)SILENT_HEARTBEATS * s->heartbeat_ms;
}

int64_t cw_session_heard_ms(const struct cw_session *s)
{
    return s->heard_ms;
}

uint64_t cw_session_peer_epoch(const struct cw_session *s)
{
    return s->peer_epoch;
}

/* ---- time ---- */
static void tick_silence(struct cw_session *s)
{
    if (s->silent_from_ms == 0)
        s->silent_from_ms = s->now_ms;
    if (s->now_ms - s->silent_from_ms < (int64_t)SILENT_HEARTBEATS * s->heartbeat_ms)
        return;
    if (s->silent_told && !s->node)
        return;
    s->silent_told = true;
    s->silent_from_ms = s->now_ms;
    if (s->ops.silent != NULL)
        s->ops.silent(s->arg);
}

static void tick_hello(struct cw_session *s)
{
    bool lost = s->linked && s->unanswered_ms != 0 && s->now_ms - s->unanswered_ms >= UNANSWERED_MS;

    if ((!s->linked || lost) && s->now_ms >= s->hello_at_ms)
        send_hello(s);
}

static void tick_ping(struct cw_session *s)
{
    if (!s->linked || s->now_ms - s->sent_ms < (int64_t)s->heartbeat_ms)
        return;
    send_frame(s, CW_FRAME_PING, s->tag, 0, NULL);
    expect_answer(s);
}

void cw_session_tick(struct cw_session *s, int64_t now_ms)
{
    s->now_ms = now_ms;
    if (s->linked && s->in_flight_last != 0 && now_ms >= s->resend_at_ms) {
        s->resend_ms = s->resend_ms * 2 > RESEND_MAX_MS ? RESEND_MAX_MS : s->resend_ms * 2;
        send_data(s);
    }
    send_due(s);
    if (s->node) {
        tick_hello(s);
        tick_ping(s);
    }
    tick_silence(s);
}

static void hello_now(struct cw_session *s)
{
    s->hello_ms = HELLO_FIRST_MS;
    if (s->now_ms - s->hello_sent_ms >= HELLO_LEAST_MS || s->hello_sent_ms == 0)
        send_hello(s);
    else if (s->hello_at_ms > s->hello_sent_ms + HELLO_LEAST_MS)
        s->hello_at_ms = s->hello_sent_ms + HELLO_LEAST_MS;
}

void cw_session_reconnected(struct cw_session *s, int64_t now_ms)
{
    s->now_ms = now_ms;
    if (s->node)
        hello_now(s);
}

/* ---- arrivals ---- */
static void heard(struct cw_session *s)
{
    s->heard_ms = s->now_ms;
    s->silent_from_ms = s->now_ms;
    s->silent_told = false;
    s->unanswered_ms = 0;
    s->hello_ms = HELLO_FIRST_MS;
}

/* What was in flight may have gone with the old connection. */
static void resend_soon(struct cw_session *s)
{
    s->resend_ms = RESEND_FIRST_MS;
    if (s->linked && s->in_flight_last != 0)
        send_data(s);
}

static void take_ack(struct cw_session *s, uint64_t next)
{
    if (next <= s->queue.first_seq || next > s->in_flight_last + 1)
        return;
    cw_recqueue_drop_before(&s->queue, next);
    s->resend_ms = RESEND_FIRST_MS;
    s->resend_at_ms = s->now_ms + s->resend_ms;
    if (next == s->in_flight_last + 1)
        s->in_flight_last = 0;
    if (s->ops.acked != NULL)
        s->ops.acked(next - 1, s->arg);
}

static int unpack_body(const ProtobufCMessageDescriptor *d, const struct cw_buf *body,
                       struct cw_arena *a, ProtobufCMessage **ret, struct cw_error *err)
{
    int r = cw_walk_unpack(d, body->data != NULL ? body->data : "", body->len, a, ret, err);

    return r < 0 ? cw_wrap(err, r, "session: %s", d->short_name) : 0;
}

static int take_data(struct cw_session *s, const struct cw_frame *f, const struct cw_buf *body,
                     struct cw_arena *a, struct cw_error *err)
{
    ProtobufCMessage *m = NULL;
    const Cw__RecordBatch *b;
    bool fresh = false;
    int r = unpack_body(&cw__record_batch__descriptor, body, a, &m, err);

    if (r < 0)
        return r;
    b = (const Cw__RecordBatch *)(const void *)m;
    if (b->first_seq != f->seq || f->seq == 0)
        return cw_fail(err, -EBADMSG, "session: a batch that contradicts its frame");
    for (size_t i = 0; i < b->n_records && f->seq + i <= s->expected; i++) {
        if (f->seq + i < s->expected)
            continue;
        fresh = true;
        s->expected++;
        s->ops.record(f->seq + i, b->records[i], s->arg);
    }
    /* Doubled, or behind a gap: say where we stand. Fresh ones are acknowledged when they are
     * durable. */
    if (!fresh)
        s->ack_due = true;
    return 0;
}

static int take_hello(struct cw_session *s, const struct cw_frame *f, const struct cw_buf *body,
                      struct cw_arena *a, struct cw_error *err)
{
    ProtobufCMessage *m = NULL;
    bool first = s->peer_epoch == 0;
    int r = unpack_body(&cw__node_hello__descriptor, body, a, &m, err);

    if (r < 0)
        return r;
    if (((const Cw__NodeHello *)(const void *)m)->epoch != f->epoch || f->epoch == 0)
        return cw_fail(err, -EBADMSG, "session: a HELLO that contradicts its frame");
    if (first) {
        if (!s->ops.hello_arrived((const Cw__NodeHello *)(const void *)m, &s->welcome, s->arg))
            return cw_fail(err, -EACCES, "session: the node is refused");
        s->peer_epoch = f->epoch;
    }
    send_frame(s, CW_FRAME_WELCOME, get64(f->request_id + 8), s->tag, &s->welcome);
    resend_soon(s);
    return 0;
}

static void start_pairing(struct cw_session *s, const struct cw_frame *f)
{
    s->peer_epoch = f->epoch;
    s->tag = f->seq;
    s->counter_in = get64(f->request_id);
    s->expected = 1;
    s->durable = 0;
    s->ack_due = false;
    s->in_flight_last = 0;
    s->resend_ms = RESEND_FIRST_MS;
    cw_recqueue_clear(&s->queue);
}

static int take_welcome(struct cw_session *s, const struct cw_frame *f, const struct cw_buf *body,
                        struct cw_arena *a, struct cw_error *err)
{
    bool fresh = f->seq != s->tag || f->epoch != s->peer_epoch;
    ProtobufCMessage *m = NULL;
    const Cw__NodeWelcome *w;
    int r = 0;

    if (fresh)
        r = unpack_body(&cw__node_welcome__descriptor, body, a, &m, err);
    if (r < 0)
        return r;
    s->nonce = random_nonzero();
    s->linked = true;
    if (fresh) {
        w = (const Cw__NodeWelcome *)(const void *)m;
        start_pairing(s, f);
        if (w->has_heartbeat_ms && w->heartbeat_ms > 0)
            s->heartbeat_ms = w->heartbeat_ms;
        if (s->ops.welcome_arrived != NULL)
            s->ops.welcome_arrived(w, s->arg);
    } else {
        take_ack(s, f->ack);
        resend_soon(s);
    }
    s->ack_due = true; /* shows the controller that its WELCOME has come */
    return 0;
}

/* Epochs, counter and tag: is this frame of the pairing that stands, and not a copy? */
static int check_place(const struct cw_session *s, const struct cw_frame *f, struct cw_error *err)
{
    uint64_t counter = get64(f->request_id), tag = get64(f->request_id + 8);
    bool ok;

    if (f->type == CW_FRAME_WELCOME)
        ok = s->node && f->peer_epoch == s->epoch && tag == s->nonce && f->seq != 0;
    else if (f->type == CW_FRAME_HELLO)
        ok = !s->node && (s->peer_epoch == 0 || f->epoch == s->peer_epoch) &&
             counter > s->counter_in;
    else
        ok = s->peer_epoch != 0 && f->epoch == s->peer_epoch && f->peer_epoch == s->epoch &&
             tag == s->tag && counter > s->counter_in;
    return ok ? 0 : cw_fail(err, -ESTALE, "session: a frame of an older pairing, or a copy");
}

static int take_frame(struct cw_session *s, const struct cw_frame *f, const struct cw_buf *body,
                      struct cw_arena *a, struct cw_error *err)
{
    if (f->type == CW_FRAME_HELLO)
        return take_hello(s, f, body, a, err);
    if (f->type == CW_FRAME_WELCOME)
        return take_welcome(s, f, body, a, err);
    if (!s->node && !s->linked) {
        s->linked = true;
        cw_buf_clear(&s->welcome);
    }
    take_ack(s, f->ack);
    if (f->type == CW_FRAME_DATA)
        return take_data(s, f, body, a, err);
    if (f->type == CW_FRAME_PING)
        send_frame(s, CW_FRAME_PONG, s->tag, 0, NULL);
    return 0;
}

int cw_session_frame(struct cw_session *s, const struct cw_frame *f, int64_t now_ms,
                     struct cw_error *err)
{
    cw_autobuf struct cw_buf body = {0};
    struct cw_arena *a;
    uint64_t counter = get64(f->request_id);
    int r;

    s->now_ms = now_ms;
    if (f->type == CW_FRAME_REFUSAL && s->node) {
        hello_now(s); /* unsealed, so no more than a hint */
        return 0;
    }
    if (f->type < CW_FRAME_HELLO || f->type > CW_FRAME_PONG)
        return cw_fail(err, -EBADMSG, "session: a frame of type %d", f->type);
    r = check_place(s, f, err);
    if (r < 0)
        return r;
    if (cw_channel_open(&s->channel, f, &body) < 0)
        return cw_fail(err, -EBADMSG, "session: a frame that the other end has not sealed");
    if (counter > s->counter_in)
        s->counter_in = counter;
    heard(s);
    a = cw_arena_create();
    r = take_frame(s, f, &body, a, err);
    cw_arena_destroy(a);
    if (r == 0)
        send_due(s);
    return r;
}
