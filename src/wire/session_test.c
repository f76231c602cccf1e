/* The session over a link in memory that loses, doubles, delays and reorders frames, cuts
 * connections, while either side restarts at times; then single promises, one by one. Time is
 * virtual. */
#include "config.h"

#include "wire/session.h"

#include "base/mem.h"
#include "proto/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define RECORDS      100000u
#define HEARTBEAT_MS 1000

static uint64_t rng_state = 88172645463325252ULL;
static uint32_t rng(uint32_t below)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return (uint32_t)(rng_state >> 33) % below;
}

/* ---- one side of the test: what it has stored and still has to tell ---- */
struct side {
    struct world *w;
    bool node;
    struct cw_session *s;
    struct cw_channel ch;
    uint64_t epoch;
    int64_t heartbeat_ms;
    uint64_t pushed;           /* newest number given to the session */
    uint64_t acked;            /* newest number the peer has stored */
    uint64_t applied, durable; /* of the peer's numbers: taken in, and stored */
    uint64_t pair_last;        /* 0: none of this pairing yet */
    uint64_t newest_seq;       /* session number of the newest record taken in */
    int64_t commit_at_ms;
    uint64_t n_taken, n_frames, n_silent, n_pairings;
};

struct packet {
    int64_t at_ms;
    bool to_node;
    uint8_t *data;
    size_t n;
};
#define PACKETS_MAX 4096
struct world {
    struct side node, ctl;
    struct cw_keypair key;
    int64_t now_ms;
    uint32_t loss_pct, double_pct, delay_ms;
    uint32_t burst, window; /* records an owner pushes in a turn, and ahead of its peer */
    struct packet p[PACKETS_MAX];
    unsigned n;
    uint64_t
        node_epoch_known; /* the controller's nodelink: newest node epoch it has a session for */
    uint64_t n_restarts, n_cuts, n_old;
};

static void carry(struct world *w, bool to_node, const void *frame, size_t n, int64_t delay_ms)
{
    struct packet *p = &w->p[w->n];

    if (w->n == PACKETS_MAX)
        return;
    w->n++;
    *p = (struct packet){
        .at_ms = w->now_ms + delay_ms, .to_node = to_node, .data = cw_xmemdup(frame, n), .n = n};
}

static void on_send(const void *frame, size_t n, void *arg)
{
    struct side *a = arg;
    struct world *w = a->w;

    a->n_frames++;
    if (rng(100) >= w->loss_pct)
        carry(w, !a->node, frame, n, rng(w->delay_ms + 1));
    if (rng(100) < w->double_pct)
        carry(w, !a->node, frame, n, rng(w->delay_ms * 20 + 1));
}

static void on_record(uint64_t seq, const Cw__NodeRecordMsg *m, void *arg)
{
    struct side *a = arg;
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
        a->commit_at_ms = a->w->now_ms + rng(20);
}

static void on_acked(uint64_t seq, void *arg)
{
    struct side *a = arg;

    (void)seq;
    a->acked++; /* counted by frames; the truth is in HELLO and WELCOME */
}

static void pair_again(struct side *a, uint64_t peer_stored)
{
    a->durable = a->applied;
    a->pushed = peer_stored;
    a->pair_last = 0;
    a->commit_at_ms = 0;
    a->n_pairings++;
}

static bool on_hello(struct cw_buf *ret_body, void *arg)
{
    struct side *a = arg;
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
    struct side *a = arg;
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
static const struct cw_session_ops ops = {
    .send = on_send,
    .record = on_record,
    .acked = on_acked,
    .hello = on_hello,
    .hello_arrived = on_hello_arrived,
    .welcome_arrived = on_welcome,
    .silent = on_silent,
};

static void cut(struct world *w)
{
    for (unsigned i = 0; i < w->n; i++)
        free(w->p[i].data);
    w->n = 0;
    w->n_cuts++;
}

static void on_silent(void *arg)
{
    struct side *a = arg;

    a->n_silent++;
    if (a->node)
        cut(a->w); /* the node drops its endpoint and connects anew */
}

/* ---- the owners: crund and the controller's nodelink in short ---- */
static void start_node(struct world *w)
{
    w->node.epoch++;
    w->node.applied = w->node.durable;
    assert_int_equal(cw_channel_initiate(w->key.pub, &w->node.ch), 0);
    w->node.s =
        cw_session_create_node(&w->node.ch, NULL, 0, w->node.epoch, HEARTBEAT_MS, &ops, &w->node);
}

static void restart_node(struct world *w)
{
    cw_session_destroy(w->node.s);
    w->n_restarts++;
    start_node(w);
}

static void restart_ctl(struct world *w)
{
    cw_session_destroy(w->ctl.s);
    w->ctl.s = NULL;
    w->ctl.epoch++;
    w->ctl.applied = w->ctl.durable;
    w->node_epoch_known = 0;
    w->n_restarts++;
}

static void refuse(struct world *w, const struct cw_frame *f)
{
    struct cw_frame r = {.type = CW_FRAME_REFUSAL, .epoch = w->ctl.epoch};
    cw_autobuf struct cw_buf out = {0};

    memcpy(r.channel_key, f->channel_key, 32);
    cw_frame_pack(&r, &out);
    carry(w, true, out.data, out.len, rng(w->delay_ms + 1));
}

static void ctl_frame(struct world *w, const struct cw_frame *f)
{
    struct cw_channel ch;
    struct cw_session *s;

    if (w->ctl.s != NULL && memcmp(w->ctl.ch.eph_pub, f->channel_key, 32) == 0) {
        if (cw_session_frame(w->ctl.s, f, w->now_ms, NULL) < 0)
            w->n_old++;
        return;
    }
    if (f->type != CW_FRAME_HELLO || f->epoch <= w->node_epoch_known) {
        if (rng(2) == 0)
            refuse(w, f);
        return;
    }
    assert_int_equal(cw_channel_respond(&w->key, f->channel_key, &ch), 0);
    s = cw_session_create_controller(&ch, w->ctl.epoch, HEARTBEAT_MS, &ops, &w->ctl);
    if (cw_session_frame(s, f, w->now_ms, NULL) < 0) {
        cw_session_destroy(s);
        return;
    }
    cw_session_destroy(w->ctl.s);
    w->ctl.s = s;
    w->ctl.ch = ch;
    w->node_epoch_known = f->epoch;
}

static void deliver(struct world *w, const struct packet *p)
{
    struct cw_frame f;

    assert_int_equal(cw_frame_unpack(p->data, p->n, &f, NULL), 0);
    if (!p->to_node)
        ctl_frame(w, &f);
    else if (memcmp(f.channel_key, w->node.ch.eph_pub, 32) == 0 &&
             cw_session_frame(w->node.s, &f, w->now_ms, NULL) < 0)
        w->n_old++;
}

static void deliver_due(struct world *w)
{
    for (unsigned i = 0; i < w->n;) {
        struct packet p = w->p[i];

        if (p.at_ms > w->now_ms) {
            i++;
            continue;
        }
        w->p[i] = w->p[--w->n];
        deliver(w, &p);
        free(p.data);
    }
}

static void push_number(struct side *a, uint64_t number)
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

static void owner_turn(struct side *a, uint64_t peer_applied)
{
    struct world *w = a->w;

    if (a->s == NULL)
        return;
    if (a->commit_at_ms != 0 && w->now_ms >= a->commit_at_ms) {
        a->durable = a->applied;
        a->commit_at_ms = 0;
        cw_session_ack(a->s, a->newest_seq);
    }
    if (cw_session_up(a->s) && a->pushed < peer_applied + w->window)
        for (uint32_t i = rng(w->burst); i > 0 && a->pushed < RECORDS; i--)
            push_number(a, ++a->pushed);
    cw_session_flush(a->s, w->now_ms);
    cw_session_tick(a->s, w->now_ms);
}

static struct world *world_create(void)
{
    struct world *w = cw_xcalloc(1, sizeof(*w));

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

static void world_destroy(struct world *w)
{
    cut(w);
    cw_session_destroy(w->node.s);
    cw_session_destroy(w->ctl.s);
    free(w);
}

static void step(struct world *w, int64_t ms)
{
    w->now_ms += ms;
    deliver_due(w);
    owner_turn(&w->node, w->ctl.applied);
    owner_turn(&w->ctl, w->node.applied);
}

static bool finished(const struct world *w)
{
    return w->node.durable == RECORDS && w->ctl.durable == RECORDS;
}

static void run_hostile(struct world *w, bool restarts)
{
    int64_t limit_ms = w->now_ms + 4 * 3600 * 1000LL;

    while (!finished(w)) {
        assert_true(w->now_ms < limit_ms);
        step(w, 5);
        if (rng(1500) == 0)
            cut(w);
        if (restarts && rng(8000) == 0)
            restart_node(w);
        if (restarts && rng(8000) == 0)
            restart_ctl(w);
    }
    print_message("# %llu s of link time, %llu + %llu frames, %llu old ones refused, %llu cuts, "
                  "%llu restarts, %llu pairings\n",
                  (unsigned long long)w->now_ms / 1000, (unsigned long long)w->node.n_frames,
                  (unsigned long long)w->ctl.n_frames, (unsigned long long)w->n_old,
                  (unsigned long long)w->n_cuts, (unsigned long long)w->n_restarts,
                  (unsigned long long)w->node.n_pairings);
}

static void hostile_link_delivers_each_record_once_in_order(void **state)
{
    struct world *w = world_create();

    (void)state;
    w->loss_pct = 10;
    w->double_pct = 10;
    w->delay_ms = 40;
    w->burst = 10; /* small batches: thousands of frames */
    w->window = 40;
    run_hostile(w, false);
    assert_int_equal(w->node.n_taken, RECORDS); /* never one twice, even for the owner */
    assert_int_equal(w->ctl.n_taken, RECORDS);
    assert_int_equal(w->node.n_pairings, 1);
    assert_true(w->n_cuts > 20);
    world_destroy(w);
}

static void hostile_link_with_restarts_leaves_nothing_out(void **state)
{
    struct world *w = world_create();

    (void)state;
    w->loss_pct = 10;
    w->double_pct = 10;
    w->delay_ms = 40;
    w->burst = 10; /* small batches: thousands of frames */
    w->window = 40;
    run_hostile(w, true);
    assert_true(w->n_cuts > 20);
    assert_true(w->n_restarts > 10);
    assert_true(w->node.n_pairings > 10);
    world_destroy(w);
}

static void good_link_needs_no_resend(void **state)
{
    struct world *w = world_create();

    (void)state;
    w->delay_ms = 2;
    run_hostile(w, false);
    assert_true(w->node.n_frames < 2000);
    world_destroy(w);
}

/* ---- single promises ---- */
static void pump(struct world *w, int n)
{
    while (n-- > 0) {
        w->now_ms += 1;
        deliver_due(w);
    }
}

/* Both sides linked, nothing in flight, no owner at work. */
static struct world *linked(void)
{
    struct world *w = world_create();

    w->delay_ms = 0;
    cw_session_tick(w->node.s, w->now_ms);
    pump(w, 5);
    assert_true(cw_session_up(w->node.s));
    assert_non_null(w->ctl.s);
    assert_true(cw_session_up(w->ctl.s));
    assert_int_equal(w->n, 0);
    return w;
}

static unsigned count_type(const struct world *w, uint8_t type)
{
    unsigned n = 0;
    struct cw_frame f;

    for (unsigned i = 0; i < w->n; i++)
        n += cw_frame_unpack(w->p[i].data, w->p[i].n, &f, NULL) == 0 && f.type == type;
    return n;
}

static void only_durable_records_are_acknowledged(void **state)
{
    struct world *w = linked();

    (void)state;
    push_number(&w->node, 1);
    push_number(&w->node, 2);
    cw_session_flush(w->node.s, w->now_ms);
    pump(w, 3);
    assert_int_equal(w->ctl.applied, 2);
    cw_session_flush(w->ctl.s, w->now_ms);
    assert_int_equal(w->n, 0); /* taken in, not yet stored: not a word */
    cw_session_ack(w->ctl.s, 1);
    cw_session_flush(w->ctl.s, w->now_ms);
    assert_int_equal(count_type(w, CW_FRAME_ACK), 1);
    pump(w, 3);
    assert_int_equal(w->node.acked, 1);
    cw_session_ack(w->ctl.s, 99); /* never taken in: ignored */
    cw_session_flush(w->ctl.s, w->now_ms);
    assert_int_equal(w->n, 0);
    world_destroy(w);
}

static void one_data_frame_is_in_flight(void **state)
{
    struct world *w = linked();

    (void)state;
    push_number(&w->ctl, 1);
    cw_session_flush(w->ctl.s, w->now_ms);
    push_number(&w->ctl, 2);
    cw_session_flush(w->ctl.s, w->now_ms);
    assert_int_equal(count_type(w, CW_FRAME_DATA), 1);
    pump(w, 3);
    assert_int_equal(w->node.applied, 1);
    cw_session_ack(w->node.s, 1);
    cw_session_flush(w->node.s, w->now_ms);
    pump(w, 3); /* the acknowledgement lets the next one go, without a tick */
    assert_int_equal(w->node.applied, 2);
    world_destroy(w);
}

static void frames_hold_64_kib_or_one_record(void **state)
{
    struct world *w = linked();
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    Cw__TaskStarted st = CW__TASK_STARTED__INIT;
    Cw__TaskKey k = CW__TASK_KEY__INIT;
    char *path = cw_xcalloc(1, CW_FRAME_BODY_MAX + 1);

    (void)state;
    st.key = &k;
    st.stdout_path = path;
    m.started = &st;
    memset(path, 'p', CW_FRAME_BODY_MAX);
    assert_int_equal(cw_session_push(w->node.s, &m, NULL), -EMSGSIZE);
    path[200000] = '\0';
    assert_int_equal(cw_session_push(w->node.s, &m, NULL), 0);
    assert_int_equal(cw_session_push(w->node.s, &m, NULL), 0);
    cw_session_flush(w->node.s, w->now_ms);
    assert_int_equal(w->n, 1);
    assert_in_range(w->p[0].n, 200000, 201000);
    free(path);
    world_destroy(w);
}

static void full_queue_refuses(void **state)
{
    struct world *w = linked();
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;

    (void)state;
    for (unsigned i = 0; i < CW_SESSION_QUEUE_MAX; i++)
        assert_int_equal(cw_session_push(w->node.s, &m, NULL), 0);
    assert_int_equal(cw_session_push(w->node.s, &m, NULL), -ENOBUFS);
    world_destroy(w);
}

static void resend_waits_200_ms_doubling_to_2_s(void **state)
{
    struct world *w = linked();
    int64_t at[8], last;
    unsigned n = 0;
    uint64_t frames;

    (void)state;
    w->loss_pct = 100;
    push_number(&w->ctl, 1);
    cw_session_flush(w->ctl.s, w->now_ms);
    last = w->now_ms;
    frames = w->ctl.n_frames;
    while (n < 8) {
        w->now_ms += 10;
        cw_session_tick(w->ctl.s, w->now_ms);
        if (w->ctl.n_frames == frames)
            continue;
        frames = w->ctl.n_frames;
        at[n++] = w->now_ms - last;
        last = w->now_ms;
    }
    assert_int_equal(at[0], 200);
    assert_int_equal(at[1], 400);
    assert_int_equal(at[2], 800);
    assert_int_equal(at[3], 1600);
    assert_int_equal(at[4], 2000);
    assert_int_equal(at[7], 2000);
    world_destroy(w);
}

static void copied_and_changed_frames_are_refused(void **state)
{
    struct world *w = linked();
    struct cw_frame f;
    struct packet p;

    (void)state;
    push_number(&w->node, 1);
    cw_session_flush(w->node.s, w->now_ms);
    p = w->p[0];
    w->n = 0;
    for (size_t i = 3; i < p.n; i += 3) {
        p.data[i] ^= 0x10;
        if (cw_frame_unpack(p.data, p.n, &f, NULL) == 0)
            assert_true(cw_session_frame(w->ctl.s, &f, w->now_ms, NULL) < 0);
        p.data[i] ^= 0x10;
    }
    assert_int_equal(w->ctl.applied, 0);
    assert_int_equal(cw_frame_unpack(p.data, p.n, &f, NULL), 0);
    assert_int_equal(cw_session_frame(w->ctl.s, &f, w->now_ms, NULL), 0);
    assert_int_equal(cw_session_frame(w->ctl.s, &f, w->now_ms, NULL), -ESTALE);
    assert_int_equal(w->ctl.applied, 1);
    free(p.data);
    world_destroy(w);
}

static void idle_link_stays_up_by_heartbeats(void **state)
{
    struct world *w = linked();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        w->now_ms += 20;
        deliver_due(w);
        cw_session_tick(w->node.s, w->now_ms);
        cw_session_tick(w->ctl.s, w->now_ms);
    }
    assert_true(cw_session_up(w->node.s));
    assert_true(cw_session_up(w->ctl.s));
    assert_int_equal(w->node.n_silent + w->ctl.n_silent, 0);
    assert_in_range(w->node.n_frames, 15, 30); /* one PING a heartbeat */
    world_destroy(w);
}

static void silence_is_told_after_three_heartbeats(void **state)
{
    struct world *w = linked();
    int64_t from = w->now_ms;

    (void)state;
    w->loss_pct = 100;
    while (w->node.n_silent == 0 || w->ctl.n_silent == 0) {
        w->now_ms += 20;
        cw_session_tick(w->node.s, w->now_ms);
        cw_session_tick(w->ctl.s, w->now_ms);
        assert_true(w->now_ms - from < 3200);
    }
    assert_true(w->now_ms - from >= 2900);
    assert_false(cw_session_up(w->node.s));
    assert_false(cw_session_up(w->ctl.s));
    world_destroy(w);
}

static void restarted_controller_is_found_by_its_refusal(void **state)
{
    struct world *w = linked();
    int64_t from;

    (void)state;
    push_number(&w->node, 1);
    restart_ctl(w);
    cw_session_flush(w->node.s, w->now_ms); /* a DATA that the new controller does not know */
    from = w->now_ms;
    while (w->ctl.s == NULL || !cw_session_up(w->ctl.s)) {
        w->now_ms += 20;
        deliver_due(w);
        cw_session_tick(w->node.s, w->now_ms);
        assert_true(w->now_ms - from < 1600); /* with the refusal at once, without it after 1 s */
    }
    assert_int_equal(w->node.n_pairings, 2);
    assert_int_equal(w->ctl.applied,
                     0); /* the record was dropped: its owner has to push it again */
    world_destroy(w);
}

static bool say_no(const Cw__NodeHello *m, struct cw_buf *ret_welcome, void *arg)
{
    (void)m;
    (void)ret_welcome;
    (void)arg;
    return false;
}

static void refused_hello_is_eacces(void **state)
{
    struct world *w = world_create();
    struct cw_session_ops no = ops;
    struct cw_channel ch;
    struct cw_frame f;
    struct cw_session *s;

    (void)state;
    no.hello_arrived = say_no;
    cw_session_tick(w->node.s, w->now_ms);
    assert_int_equal(w->n, 1);
    assert_int_equal(cw_frame_unpack(w->p[0].data, w->p[0].n, &f, NULL), 0);
    assert_int_equal(cw_channel_respond(&w->key, f.channel_key, &ch), 0);
    s = cw_session_create_controller(&ch, 1, HEARTBEAT_MS, &no, &w->ctl);
    assert_int_equal(cw_session_frame(s, &f, w->now_ms, NULL), -EACCES);
    cw_session_destroy(s);
    world_destroy(w);
}

static void hello_carries_the_newest_credential(void **state)
{
    struct world *w = world_create();
    uint8_t cred[100];
    struct cw_frame f;

    (void)state;
    memset(cred, 5, sizeof(cred));
    cw_session_set_credential(w->node.s, cred, sizeof(cred));
    cw_session_tick(w->node.s, w->now_ms);
    assert_int_equal(cw_frame_unpack(w->p[0].data, w->p[0].n, &f, NULL), 0);
    assert_int_equal(f.cred_len, sizeof(cred));
    assert_memory_equal(f.cred, cred, sizeof(cred));
    world_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_link_needs_no_resend),
        cmocka_unit_test(hostile_link_delivers_each_record_once_in_order),
        cmocka_unit_test(hostile_link_with_restarts_leaves_nothing_out),
        cmocka_unit_test(only_durable_records_are_acknowledged),
        cmocka_unit_test(one_data_frame_is_in_flight),
        cmocka_unit_test(frames_hold_64_kib_or_one_record),
        cmocka_unit_test(full_queue_refuses),
        cmocka_unit_test(resend_waits_200_ms_doubling_to_2_s),
        cmocka_unit_test(copied_and_changed_frames_are_refused),
        cmocka_unit_test(idle_link_stays_up_by_heartbeats),
        cmocka_unit_test(silence_is_told_after_three_heartbeats),
        cmocka_unit_test(restarted_controller_is_found_by_its_refusal),
        cmocka_unit_test(refused_hello_is_eacces),
        cmocka_unit_test(hello_carries_the_newest_credential),
    };

    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
