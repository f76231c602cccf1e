/* nodelink.c: links to nodes. A link is found by its channel's key and owned by its node's name; a
 * new channel that proves the same name (cluster key and a sealed HELLO) replaces the old one.
 * Frames of an unproven channel cost one key agreement and leave nothing behind.
 *
 * The route of a link is refreshed from every frame that opens. Sends are buffered until the end of
 * the turn. Reconciliation is in reconcile.c. */
#include "ctld/nodelink.h"

#include <string.h>

#include "base/clock.h"
#include "base/crashpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "ctld/reconcile.h"
#include "ctld/taskstart.h"
#include "ctld/turn.h"
#include "plug/plug.h"
#include "proto/walk.h"
#include "wire/rpc_server.h"
#include "wire/session.h"

#define TICK_MS 100u
#define LINKS_MAX 20000u

struct ack_later;
struct link {
    uint64_t serial; /* names the link in things done later */
    struct cw_ctld *c;
    struct cw_channel channel;
    struct cw_session *session;
    struct cw_route route;
    char name[64];        /* proven by the credential */
    struct cw_node *node; /* NULL until HELLO was understood */
    bool dirty;           /* on the list of links to flush */
    bool broken;          /* a record could not be queued: starts anew, HELLO settles it */
    struct cw_list on_dirty, on_all;
    struct ack_later *ack; /* of generation ack_generation */
    uint64_t ack_generation;
};
struct ack_later {
    struct cw_ctld *c;
    uint64_t serial, seq;
};

struct cw_nodelinks {
    struct cw_ctld *c;
    struct cw_idtable *by_serial;
    struct cw_idtable *by_channel; /* first 8 bytes of the key -> link */
    struct cw_strtable *by_node;
    struct cw_list dirty, all;
    struct cw_loop_timer *tick;
    uint64_t next_serial;
};

static uint64_t channel_word(const uint8_t key[32])
{
    uint64_t w;
    memcpy(&w, key, sizeof w);
    return w;
}

static void link_touch(struct link *l)
{
    if (l->dirty)
        return;
    l->dirty = true;
    cw_list_add_tail(&l->c->links->dirty, &l->on_dirty);
}

static void link_destroy(struct link *l)
{
    struct cw_nodelinks *k = l->c->links;
    cw_list_remove(&l->on_dirty);
    cw_list_remove(&l->on_all);
    cw_idtable_remove(k->by_serial, l->serial);
    if (cw_idtable_find(k->by_channel, channel_word(l->channel.eph_pub)) == l)
        cw_idtable_remove(k->by_channel, channel_word(l->channel.eph_pub));
    if (cw_strtable_find(k->by_node, l->name) == l)
        cw_strtable_remove(k->by_node, l->name);
    cw_session_destroy(l->session);
    cw_channel_clear(&l->channel);
    free(l);
}

/* ---- what the session tells us -------------------------------------------------------------- */

static void on_send(const void *frame, size_t n, void *arg)
{
    struct link *l = arg;
    cw_rpc_server_send(l->c->nodes, &l->route, frame, n); /* loss is the session's business */
}

static void ack_run(void *arg, bool committed)
{
    struct ack_later *k = arg;
    struct link *l = committed ? cw_idtable_find(k->c->links->by_serial, k->serial) : NULL;
    if (l != NULL) {
        if (l->ack == k)
            l->ack = NULL;
        cw_crashpoint("nodelink.before-ack");
        cw_session_ack(l->session, k->seq);
        link_touch(l);
    }
    free(k);
}

/* One acknowledgement per link and generation; it grows with the records of that generation. */
static void ack_after_commit(struct link *l, uint64_t seq)
{
    struct cw_turn *t = l->c->turn;
    if (l->ack != NULL && l->ack_generation == cw_turn_generation(t)) {
        l->ack->seq = seq;
        return;
    }
    l->ack = cw_xcalloc(1, sizeof *l->ack);
    *l->ack = (struct ack_later){l->c, l->serial, seq};
    l->ack_generation = cw_turn_generation(t);
    cw_turn_after(t, CW_TURN_EFFECT, ack_run, l->ack);
}

/* What has to be sent again, or killed because it is fenced. */
struct again {
    struct cw_ctld *c;
    uint32_t node, attempt, grace_ms;
    uint64_t id;
    bool kill;
    Cw__Cause cause;
};

static void again_run(void *arg, bool committed)
{
    struct again *g = arg;
    struct cw_node *n = committed ? cw_model_node_at(g->c->model, g->node) : NULL;
    if (n != NULL && g->kill)
        cw_nodelink_send_kill(g->c, n, g->id, g->attempt, g->cause, g->grace_ms);
    else if (n != NULL)
        cw_nodelink_send_start(g->c, n, g->id, g->attempt);
    free(g);
}

static void again_later(struct cw_ctld *c, const struct again *g)
{
    cw_turn_after(c->turn, CW_TURN_EFFECT, again_run, cw_xmemdup(g, sizeof *g));
}

static void on_again(const struct cw_part *p, void *arg)
{
    const struct cw_attempt *a = p->attempt;
    struct cw_ctld *c = arg;
    struct again g = {.c = c,
                      .node = p->node->index,
                      .id = a->id,
                      .attempt = a->attempt,
                      .kill = a->kill_step != 0};
    g.cause = a->rec->has_kill_cause ? a->rec->kill_cause : CW__CAUSE__CAUSE_PEER;
    g.grace_ms = (a->job != NULL ? a->job->kill_grace_s : c->conf->kill_grace_s) * 1000u;
    again_later(c, &g);
}

static void on_record(uint64_t seq, const Cw__NodeRecordMsg *m, void *arg)
{
    struct link *l = arg;
    const Cw__TaskKey *key = NULL;
    if (cw_reconcile_record(l->c, l->node, m, &key) == -ESTALE) {
        struct again g = {.c = l->c,
                          .node = l->node->index,
                          .id = key->id,
                          .attempt = key->attempt,
                          .kill = true,
                          .cause = CW__CAUSE__CAUSE_NODE_LOST};
        again_later(l->c, &g);
    }
    ack_after_commit(l, seq);
}

static void on_acked(uint64_t seq, void *arg)
{
    (void)seq;
    (void)arg; /* what a node has is learned from its records and its HELLO */
}

static bool on_hello(const Cw__NodeHello *m, struct cw_buf *ret_welcome, void *arg)
{
    struct link *l = arg;
    struct cw_ctld *c = l->c;
    if (m->node == NULL || m->node->name == NULL || strcmp(m->node->name, l->name) != 0) {
        cw_log_warn("node %s: its HELLO names another node: refused", l->name);
        return false;
    }
    int64_t now = cw_clock_real_ns();
    l->node = cw_model_node(c->model, l->name);
    bool changed = l->node == NULL || cw_reconcile_node_changed(l->node->rec, m->node);
    l->node = cw_model_node_set(c->model, m->node, changed, now);
    if (l->node == NULL)
        return false;
    l->node->last_seen_ns = now;
    struct cw_arena *a = cw_arena_create();
    Cw__NodeWelcome w = CW__NODE_WELCOME__INIT;
    w.controller_epoch = (uint64_t)c->start_ns;
    w.has_heartbeat_ms = true;
    w.heartbeat_ms = c->conf->heartbeat_ms;
    cw_reconcile_hello(c, l->node, m, a, &w, on_again, c);
    cw_walk_pack(&w.base, ret_welcome);
    cw_arena_destroy(a);
    cw_model_node_up(c->model, l->node, true, now);
    cw_log_info("node %s: %s with %zu tasks", l->name, changed ? "registered" : "is back",
                m->n_tasks);
    return true;
}

static void on_silent(void *arg)
{
    struct link *l = arg;
    if (l->node == NULL || !l->node->up)
        return;
    cw_log_warn("node %s: silent, nothing new starts there", l->name);
    cw_model_node_up(l->c->model, l->node, false, cw_clock_real_ns());
}

static const struct cw_session_ops session_ops = {
    .send = on_send,
    .record = on_record,
    .acked = on_acked,
    .hello_arrived = on_hello,
    .silent = on_silent,
};

/* ---- frames --------------------------------------------------------------------------------- */

static int verify_hello(struct cw_ctld *c, const struct cw_frame *f, struct cw_identity *ret,
                        struct cw_error *err)
{
    struct cw_plugin_err perr = {{0}};
    memset(ret, 0, sizeof *ret);
    ret->size = sizeof *ret;
    int rc = CW_PLUG_OPS(auth, c->auth)
                 ->verify(cw_plug_ctx(c->auth), f->channel_key, f->cred, f->cred_len,
                          cw_clock_real_ns(), ret, &perr);
    if (rc < 0)
        return cw_fail(err, rc, "a node's HELLO is refused: %s", perr.text);
    if (ret->node[0] == '\0')
        return cw_fail(err, -EACCES, "a node's HELLO is refused: user %u is no node", ret->uid);
    return 0;
}

/* A channel that nobody knows yet says HELLO. It becomes the node's link only if its body opens. */
static void frame_of_stranger(struct cw_nodelinks *k, const struct cw_route *route,
                              const struct cw_frame *f)
{
    struct cw_ctld *c = k->c;
    struct cw_error err = {0};
    struct cw_identity who;
    if (f->type != CW_FRAME_HELLO) { /* we restarted: it shall say HELLO at once */
        cw_rpc_server_refuse(c->nodes, route, f, -ENOTCONN, "this link is not known: say HELLO");
        return;
    }
    if (cw_idtable_count(k->by_serial) >= LINKS_MAX)
        return; /* the node says HELLO again when nobody answers */
    if (verify_hello(c, f, &who, &err) < 0) {
        cw_log_warn("%s", err.text);
        return;
    }
    /* A recorded HELLO of an earlier life of the node must not push its present one aside. */
    const struct link *now = cw_strtable_find(k->by_node, who.node);
    if (now != NULL && f->epoch < cw_session_peer_epoch(now->session)) {
        cw_log_warn("node %s: a HELLO of an earlier life is refused", who.node);
        return;
    }
    struct link *l = cw_xcalloc(1, sizeof *l);
    l->c = c;
    l->serial = ++k->next_serial;
    l->route = *route;
    memcpy(l->name, who.node, sizeof l->name);
    if (cw_channel_respond(&c->key, f->channel_key, &l->channel) < 0) {
        free(l);
        return;
    }
    l->session = cw_session_create_controller(&l->channel, (uint64_t)c->start_ns,
                                              c->conf->heartbeat_ms, &session_ops, l);
    cw_list_add_tail(&k->all, &l->on_all);
    cw_idtable_set(k->by_serial, l->serial, l);
    int rc = cw_session_frame(l->session, f, cw_loop_now_ms(c->loop), &err);
    if (rc < 0 || l->node == NULL) {
        cw_log_warn("node %s: HELLO is not accepted: %s", l->name, rc < 0 ? err.text : "refused");
        link_destroy(l);
        return;
    }
    struct link *old = cw_strtable_find(k->by_node, l->name);
    if (old != NULL)
        link_destroy(old);
    cw_idtable_set(k->by_channel, channel_word(l->channel.eph_pub), l);
    cw_strtable_set(k->by_node, l->name, l);
    link_touch(l);
}

void cw_nodelinks_frame(const struct cw_route *route, const struct cw_frame *f, void *arg)
{
    struct cw_ctld *c = arg;
    struct cw_nodelinks *k = c->links;
    struct link *l = cw_idtable_find(k->by_channel, channel_word(f->channel_key));
    if (c->stopping)
        return;
    if (l == NULL || memcmp(l->channel.eph_pub, f->channel_key, 32) != 0) {
        frame_of_stranger(k, route, f);
        return;
    }
    struct cw_error err = {0};
    struct cw_route before = l->route;
    l->route = *route; /* answers inside go the new way */
    int rc = cw_session_frame(l->session, f, cw_loop_now_ms(c->loop), &err);
    if (rc < 0) {
        l->route = before;
        cw_log_debug("node %s: frame dropped: %s", l->name, err.text);
        return;
    }
    l->node->last_seen_ns = cw_clock_real_ns();
    if (!l->node->up && cw_session_up(l->session))
        cw_model_node_up(c->model, l->node, true, l->node->last_seen_ns);
    link_touch(l);
}

static void on_tick(void *arg)
{
    struct cw_nodelinks *k = arg;
    int64_t now = cw_loop_now_ms(k->c->loop);
    cw_list_each_safe (p, &k->all)
        cw_session_tick(cw_list_entry(p, struct link, on_all)->session, now);
}

struct cw_nodelinks *cw_nodelinks_create(struct cw_ctld *c)
{
    struct cw_nodelinks *k = cw_xcalloc(1, sizeof *k);
    k->c = c;
    k->by_serial = cw_idtable_create();
    k->by_channel = cw_idtable_create();
    k->by_node = cw_strtable_create();
    cw_list_init(&k->dirty);
    cw_list_init(&k->all);
    k->tick = cw_loop_timer_open(c->loop, on_tick, k);
    cw_loop_timer_start(k->tick, TICK_MS, TICK_MS);
    return k;
}

void cw_nodelinks_destroy(struct cw_nodelinks *k)
{
    if (k == NULL)
        return;
    cw_loop_timer_close(k->tick);
    cw_list_each_safe (p, &k->all)
        link_destroy(cw_list_entry(p, struct link, on_all));
    cw_idtable_destroy(k->by_serial);
    cw_idtable_destroy(k->by_channel);
    cw_strtable_destroy(k->by_node);
    free(k);
}

void cw_nodelinks_flush(struct cw_nodelinks *k)
{
    int64_t now = cw_loop_now_ms(k->c->loop);
    while (!cw_list_empty(&k->dirty)) {
        struct link *l = cw_list_entry(k->dirty.next, struct link, on_dirty);
        cw_list_remove(&l->on_dirty);
        l->dirty = false;
        if (l->broken)
            link_destroy(l); /* its next frame is refused, and it says HELLO */
        else
            cw_session_flush(l->session, now);
    }
}

void cw_nodelink_drop(struct cw_ctld *c, const struct cw_node *n)
{
    struct link *l = cw_strtable_find(c->links->by_node, n->name);
    if (l != NULL)
        link_destroy(l);
}

size_t cw_nodelinks_count(const struct cw_nodelinks *k)
{
    return cw_strtable_count(k->by_node);
}

/* ---- sends ---------------------------------------------------------------------------------- */

static void push(struct cw_ctld *c, struct cw_node *n, const Cw__NodeRecordMsg *m)
{
    struct link *l = cw_strtable_find(c->links->by_node, n->name);
    if (l == NULL)
        return;
    uint64_t seq;
    int rc = cw_session_push(l->session, m, &seq);
    if (rc < 0) {
        cw_log_warn("node %s: cannot queue a record: %s", n->name, strerror(-rc));
        l->broken = true;
    }
    link_touch(l);
}

void cw_nodelink_send_start(struct cw_ctld *c, struct cw_node *n, uint64_t id, uint32_t attempt)
{
    struct cw_arena *a = cw_arena_create();
    struct cw_error err = {0};
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    int rc = cw_taskstart_build(c, n, id, attempt, a, &m.start, &err);
    struct cw_attempt *at = cw_model_attempt(c->model, id);
    if (rc == 0) {
        push(c, n, &m);
    } else if (rc != -ENOENT) {
        cw_log_error("job %llu attempt %u: cannot be started: %s", (unsigned long long)id, attempt,
                     err.text);
        cw_reconcile_unstartable(c, cw_attempt_part(at, n), err.text);
    }
    cw_arena_destroy(a);
}

void cw_nodelink_send_kill(struct cw_ctld *c, struct cw_node *n, uint64_t id, uint32_t attempt,
                           Cw__Cause cause, uint32_t grace_ms)
{
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    Cw__TaskKill kill = CW__TASK_KILL__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    key.id = id;
    key.attempt = attempt;
    kill.key = &key;
    kill.cause = cause;
    kill.grace_ms = grace_ms;
    m.kill = &kill;
    push(c, n, &m);
}

void cw_nodelink_send_signal(struct cw_ctld *c, struct cw_node *n, uint64_t id, uint32_t attempt,
                             uint32_t signal)
{
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    Cw__TaskSignal sig = CW__TASK_SIGNAL__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    key.id = id;
    key.attempt = attempt;
    sig.key = &key;
    sig.signal = signal;
    m.signal = &sig;
    push(c, n, &m);
}

void cw_nodelink_send_limit(struct cw_ctld *c, struct cw_node *n, uint64_t id, uint32_t attempt)
{
    Cw__NodeRecordMsg m = CW__NODE_RECORD_MSG__INIT;
    Cw__TaskLimit limit = CW__TASK_LIMIT__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    struct cw_attempt *a = cw_model_attempt_numbered(c->model, id, attempt);
    if (a == NULL || a->state != CW__STATE__RUNNING || a->kill_step != 0)
        return;
    key.id = id;
    key.attempt = attempt;
    limit.key = &key;
    if (a->deadline_ns != INT64_MAX) {
        int64_t left = a->deadline_ns - cw_clock_real_ns();
        limit.has_time_left_ms = true;
        limit.time_left_ms = left > 0 ? (uint64_t)(left / CW_NS_PER_MS) : 0;
    }
    m.limit = &limit;
    push(c, n, &m);
}
