/* The world of session_test.c and session_hostile_test.c. Its owners do what crund and the
 * controller's nodelink do, in short. */
#include "config.h"

#include "wire/sessionworld.h"

#include "base/mem.h"
#include "proto/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static uint64_t rng_state = 88172645463325252ULL;
uint32_t cw_sessionworld_rng(uint32_t below)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return (uint32_t)(rng_state >> 33) % below;
}

static void carry(struct cw_sessionworld *w, bool to_node, const void *frame, size_t n,
                  int64_t delay_ms)
{
    struct cw_packet *p = &w->p[w->n];

    if (w->n == CW_SESSIONWORLD_PACKETS)
        return;
    w->n++;
    *p = (struct cw_packet){
        .at_ms = w->now_ms + delay_ms, .to_node = to_node, .data = cw_xmemdup(frame, n), .n = n};
}

static void on_send(const void *frame, size_t n, void *arg)
{
    struct cw_side *a = arg;
    struct cw_sessionworld *w = a->w;

    a->n_frames++;
    if (cw_sessionworld_rng(100) >= w->loss_pct)
        carry(w, !a->node, frame, n, cw_sessionworld_rng(w->delay_ms + 1));
    if (cw_sessionworld_rng(100) < w->double_pct)
        carry(w, !a->node, frame, n, cw_sessionworld_rng(w->delay_ms * 20 + 1));
}

static void on_record(uint64_t seq, const Cw__NodeRecordMsg *m, void *arg)
{
    struct cw_side *a = arg;
    uint64_t number = m->signal->key->id;

    assert_true(a->pair_last == 0 ||
                number == a->pair_last + 1); /* once and in order within a pairing */
    assert_true(number <= a->applied + 1);   /* and nothing left out across them */
    a->pair_last = number;
    a->newest_seq = seq;
    if (number <= a->applied)
        return;
    a->applied = number;
    a->n_taken++;
    if (a->commit_at_ms == 0)
        a->commit_at_ms = a->w->now_ms + cw_sessionworld_rng(20);
}

static void on_acked(uint64_t seq, void *arg)
{
    struct cw_side *a = arg;

    (void)seq;
    a->acked++; /* counted by frames; the truth is in HELLO and WELCOME */
}

static void pair_again(struct cw_side *a, uint64_t peer_stored)
{
    a->durable = a->applied;
    a->pushed = peer_stored;
    a->pair_last = 0;
    a->commit_at_ms = 0;
    a->n_pairings++;
}

static bool on_hello(struct cw_buf *ret_body, void *arg)
{
    struct cw_side *a = arg;
    Cw__NodeHello m = CW__NODE_HELLO__INIT;
    Cw__NodeRecord rec = CW__NODE_RECORD__INIT;
    Cw__TaskStatus st = CW__TASK_STATUS__INIT, *p = &st;
    Cw__TaskKey k = CW__TASK_KEY__INIT;

    a->durable = a->applied;
    rec.name = "n1";
    k.id = a->durable;
    st.key = &k;
    st.state = CW__STATE__RUNNING;
    m.node = &rec;
    m.tasks = &p;
    m.n_tasks = 1;
    m.epoch = a->epoch;
    cw_walk_pack(&m.base, ret_body);
    return true;
}

static bool on_hello_arrived(const Cw__NodeHello *m, struct cw_buf *ret_welcome, void *arg)
{
    struct cw_side *a = arg;
    Cw__NodeWelcome w = CW__NODE_WELCOME__INIT;
    Cw__TaskKey k = CW__TASK_KEY__INIT, *p = &k;

    pair_again(a, m->tasks[0]->key->id);
    w.controller_epoch = a->epoch;
    k.id = a->durable;
    w.forget = &p;
    w.n_forget = 1;
    cw_walk_pack(&w.base, ret_welcome);
    return true;
}

static void on_welcome(const Cw__NodeWelcome *m, void *arg)
{
    pair_again(arg, m->forget[0]->id);
}

static void on_silent(void *arg);
const struct cw_session_ops cw_sessionworld_ops = {
    .send = on_send,
    .record = on_record,
    .acked = on_acked,
    .hello = on_hello,
    .hello_arrived = on_hello_arrived,
    .welcome_arrived = on_welcome,
    .silent = on_silent,
};

void cw_sessionworld_cut(struct cw_sessionworld *w)
{
    for (unsigned i = 0; i < w->n; i++)
        free(w->p[i].data);
    w->n = 0;
    w->n_cuts++;
}

static void on_silent(void *arg)
{
    struct cw_side *a = arg;

    a->n_silent++;
    if (a->node)
        cw_sessionworld_cut(a->w); /* the node drops its endpoint and connects anew */
}

static void start_node(struct cw_sessionworld *w)
{
    w->node.epoch++;
    w->node.applied = w->node.durable;
    assert_int_equal(cw_channel_initiate(w->key.pub, &w->node.ch), 0);
    w->node.s =
        cw_session_create_node(&w->node.ch, NULL, 0, w->node.epoch, CW_SESSIONWORLD_HEARTBEAT_MS,
                               &cw_sessionworld_ops, &w->node);
}

void cw_sessionworld_restart_node(struct cw_sessionworld *w)
{
    cw_session_destroy(w->node.s);
    w->n_restarts++;
    start_node(w);
}

void cw_sessionworld_restart_ctl(struct cw_sessionworld *w)
{
    cw_session_destroy(w->ctl.s);
    w->ctl.s = NULL;
    w->ctl.epoch++;
    w->ctl.applied = w->ctl.durable;
    w->node_epoch_known = 0;
    w->n_restarts++;
}

static void refuse(struct cw_sessionworld *w, const struct cw_frame *f)
{
    struct cw_frame r = {.type = CW_FRAME_REFUSAL, .epoch = w->ctl.epoch};
    cw_autobuf struct cw_buf out = {0};

    memcpy(r.channel_key, f->channel_key, 32);
    cw_frame_pack(&r, &out);
    carry(w, true, out.data, out.len, cw_sessionworld_rng(w->delay_ms + 1));
}

static void ctl_frame(struct cw_sessionworld *w, const struct cw_frame *f)
{
    struct cw_channel ch;
    struct cw_session *s;

    if (w->ctl.s != NULL && memcmp(w->ctl.ch.eph_pub, f->channel_key, 32) == 0) {
        if (cw_session_frame(w->ctl.s, f, w->now_ms, NULL) < 0)
            w->n_old++;
        return;
    }
    if (f->type != CW_FRAME_HELLO || f->epoch <= w->node_epoch_known) {
        if (cw_sessionworld_rng(2) == 0)
            refuse(w, f);
        return;
    }
    assert_int_equal(cw_channel_respond(&w->key, f->channel_key, &ch), 0);
    s = cw_session_create_controller(&ch, w->ctl.epoch, CW_SESSIONWORLD_HEARTBEAT_MS,
                                     &cw_sessionworld_ops, &w->ctl);
    if (cw_session_frame(s, f, w->now_ms, NULL) < 0) {
        cw_session_destroy(s);
        return;
    }
    cw_session_destroy(w->ctl.s);
    w->ctl.s = s;
    w->ctl.ch = ch;
    w->node_epoch_known = f->epoch;
}

static void deliver(struct cw_sessionworld *w, const struct cw_packet *p)
{
    struct cw_frame f;

    assert_int_equal(cw_frame_unpack(p->data, p->n, &f, NULL), 0);
    if (!p->to_node)
        ctl_frame(w, &f);
    else if (memcmp(f.channel_key, w->node.ch.eph_pub, 32) == 0 &&
             cw_session_frame(w->node.s, &f, w->now_ms, NULL) < 0)
        w->n_old++;
}

void cw_sessionworld_deliver_due(struct cw_sessionworld *w)
{
    for (unsigned i = 0; i < w->n;) {
        struct cw_packet p = w->p[i];

        if (p.at_ms > w->now_ms) {
            i++;
            continue;
        }
        w->p[i] = w->p[--w->n];
        deliver(w, &p);
        free(p.data);
    }
}

void cw_sessionworld_push_number(struct cw_side *a, uint64_t number)
{
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    Cw__TaskSignal sig = CW__TASK_SIGNAL__INIT;
    Cw__TaskKey k = CW__TASK_KEY__INIT;

    k.id = number;
    k.attempt = 1;
    sig.key = &k;
    m.signal = &sig;
    assert_int_equal(cw_session_push(a->s, &m, NULL), 0);
}

void cw_sessionworld_owner_turn(struct cw_side *a, uint64_t peer_applied)
{
    struct cw_sessionworld *w = a->w;

    if (a->s == NULL)
        return;
    if (a->commit_at_ms != 0 && w->now_ms >= a->commit_at_ms) {
        a->durable = a->applied;
        a->commit_at_ms = 0;
        cw_session_ack(a->s, a->newest_seq);
    }
    if (cw_session_up(a->s) && a->pushed < peer_applied + w->window)
        for (uint32_t i = cw_sessionworld_rng(w->burst);
             i > 0 && a->pushed < CW_SESSIONWORLD_RECORDS; i--)
            cw_sessionworld_push_number(a, ++a->pushed);
    cw_session_flush(a->s, w->now_ms);
    cw_session_tick(a->s, w->now_ms);
}

struct cw_sessionworld *cw_sessionworld_create(void)
{
    struct cw_sessionworld *w = cw_xcalloc(1, sizeof(*w));

    w->node.w = w->ctl.w = w;
    w->node.node = true;
    w->now_ms = 1000;
    w->ctl.epoch = 1;
    w->burst = 200;
    w->window = 3000;
    cw_keypair_make(&w->key);
    start_node(w);
    return w;
}

void cw_sessionworld_destroy(struct cw_sessionworld *w)
{
    cw_sessionworld_cut(w);
    cw_session_destroy(w->node.s);
    cw_session_destroy(w->ctl.s);
    free(w);
}
