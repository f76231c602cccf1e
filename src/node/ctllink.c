/* The session to the controller; see ctllink.h. */
#include "node/ctllink.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/readyfd.h"
#include "node/taskflow.h"
#include "proto/walk.h"
#include "wire/nnsock.h"
#include "wire/session.h"

#define TICK_MS       100
#define FRAMES_A_TURN 256

/* A record whose acknowledgement lets a task go. */
struct report {
    uint64_t seq, id;
    uint32_t attempt;
};

struct cw_ctllink {
    struct cw_node *node;
    const Cw__Inventory *inventory;
    struct cw_plug *auth;
    struct cw_channel channel;
    struct cw_nnsock *sock;
    struct cw_session *session;
    struct cw_loop_io *io;
    struct cw_loop_timer *tick;
    uint64_t established;
    bool welcomed, was_up;
    bool missed;              /* the queue was full: all is told again when it has drained */
    uint64_t received, acked; /* records from the controller */
    struct report *reports;   /* in order of seq, from first to n */
    size_t first, n, cap;
    struct cw_buf in;
};

static int64_t now_ms(const struct cw_ctllink *c)
{
    return cw_loop_now_ms(c->node->loop);
}

/* ---- reports -------------------------------------------------------------------------------- */

static void report_add(struct cw_ctllink *c, const struct report *r)
{
    if (c->n == c->cap && c->first > 0) {
        memmove(c->reports, c->reports + c->first, (c->n - c->first) * sizeof *c->reports);
        c->n -= c->first;
        c->first = 0;
    }
    if (c->n == c->cap) {
        c->cap = c->cap > 0 ? c->cap * 2 : 64;
        c->reports = cw_xrealloc(c->reports, c->cap, sizeof *c->reports);
    }
    c->reports[c->n++] = *r;
}

void cw_ctllink_push(struct cw_ctllink *c, const Cw__NodeRecordMsg *m,
                     const struct cw_tasktab_entry *of, uint64_t *ret_seq)
{
    uint64_t seq = 0;
    if (c == NULL || !c->welcomed)
        return;
    int rc = cw_session_push(c->session, m, &seq);
    if (rc < 0) {
        c->missed |= rc == -ENOBUFS;
        if (rc != -ENOBUFS)
            cw_log_error("record to the controller: %s", strerror(-rc));
        return;
    }
    if (of == NULL)
        return;
    *ret_seq = seq;
    report_add(c, &(struct report){ seq, of->id, of->attempt });
}

/* ---- what the session asks for -------------------------------------------------------------- */

static void op_send(const void *frame, size_t n, void *arg)
{
    struct cw_ctllink *c = arg;
    cw_nnsock_send(c->sock, NULL, frame, n); /* loss is the session's business */
}

static void op_record(uint64_t seq, const Cw__NodeRecordMsg *m, void *arg)
{
    struct cw_ctllink *c = arg;
    c->received = seq;
    cw_taskflow_record(c->node, m);
}

static void op_acked(uint64_t seq, void *arg)
{
    struct cw_ctllink *c = arg;
    while (c->first < c->n && c->reports[c->first].seq <= seq) {
        struct report r = c->reports[c->first++];
        cw_taskflow_acked(c->node, r.id, r.attempt, r.seq);
    }
    if (c->first == c->n)
        c->first = c->n = 0;
    if (c->missed && c->n == 0) {
        c->missed = false;
        cw_taskflow_tell_all(c->node);
    }
}

static int make_credential(struct cw_ctllink *c, uint8_t *buf, size_t *ret_len,
                           struct cw_error *err)
{
    struct cw_plugin_err perr = { "" };
    if (!CW_PLUG_HAS(auth, c->auth, node_credential))
        return cw_fail_node(err, -ENOTSUP, "plugin auth/%s: gives node daemons no credential",
                            cw_plug_desc(c->auth)->name);
    int rc = CW_PLUG_OPS(auth, c->auth)
                 ->node_credential(cw_plug_ctx(c->auth), c->node->name, c->channel.eph_pub, buf,
                                   CW_AUTH_CRED_MAX, ret_len, &perr);
    return rc < 0 ? cw_fail_node(err, rc, "credential: %s",
                                 perr.text[0] != '\0' ? perr.text : strerror(-rc))
                  : 0;
}

static void refresh_credential(struct cw_ctllink *c)
{
    uint8_t cred[CW_AUTH_CRED_MAX];
    size_t len = 0;
    struct cw_error err;
    if (make_credential(c, cred, &len, &err) < 0)
        cw_log_error("%s", err.text);
    else
        cw_session_set_credential(c->session, cred, len);
}

static bool op_hello(struct cw_buf *ret_body, void *arg)
{
    struct cw_ctllink *c = arg;
    struct cw_node *n = c->node;
    struct cw_arena *a = cw_arena_create();
    Cw__NodeHello h = CW__NODE_HELLO__INIT;
    Cw__NodeRecord rec = CW__NODE_RECORD__INIT;
    size_t count = 0, i = 0;
    refresh_credential(c);
    rec.name = (char *)(uintptr_t)n->name;
    rec.inventory = (Cw__Inventory *)(uintptr_t)c->inventory;
    rec.address = n->address;
    rec.has_public_key = 1;
    rec.public_key = (ProtobufCBinaryData){ sizeof n->key.pub, n->key.pub };
    cw_list_each(l, cw_tasktab_list(n->tasks))
        count++;
    h.node = &rec;
    h.epoch = n->epoch;
    h.n_tasks = count;
    h.tasks = cw_arena_alloc(a, (count + 1) * sizeof *h.tasks);
    cw_list_each(l, cw_tasktab_list(n->tasks)) {
        const struct cw_tasktab_entry *e = cw_list_entry(l, struct cw_tasktab_entry, link);
        Cw__TaskStatus *s = cw_arena_alloc(a, sizeof *s);
        Cw__TaskKey *k = cw_arena_alloc(a, sizeof *k);
        cw__task_status__init(s);
        cw__task_key__init(k);
        k->id = e->id;
        k->attempt = e->attempt;
        s->key = k;
        s->state = e->state;
        h.tasks[i++] = s;
    }
    cw_walk_pack(&h.base, ret_body);
    cw_arena_destroy(a);
    return true;
}

/* A controller that is new to us has dropped all that we said: tell it again. */
static void op_welcome(const Cw__NodeWelcome *m, void *arg)
{
    struct cw_ctllink *c = arg;
    c->welcomed = true;
    c->received = c->acked = 0;
    c->first = c->n = 0;
    cw_log_info("welcome by the controller: %zu of our tasks recorded, %zu to kill", m->n_forget,
                m->n_kill);
    for (size_t i = 0; i < m->n_forget; i++)
        cw_taskflow_forget(c->node, m->forget[i]);
    for (size_t i = 0; i < m->n_kill; i++)
        cw_taskflow_fence(c->node, m->kill[i]);
    cw_taskflow_tell_all(c->node);
    cw_readyfd_tell();
}

static void op_silent(void *arg)
{
    struct cw_ctllink *c = arg;
    if (c->was_up)
        cw_log_warn("the controller is silent, connecting again");
    c->was_up = false;
    int rc = cw_nnsock_reconnect(c->sock);
    if (rc < 0)
        cw_log_error("connect to %s: %s", c->node->conf->node_connect, strerror(-rc));
}

/* ---- the wire ------------------------------------------------------------------------------- */

static void on_frame(struct cw_ctllink *c)
{
    struct cw_frame f;
    struct cw_error err;
    int rc = cw_frame_unpack(c->in.data, c->in.len, &f, &err);
    if (rc == 0)
        rc = cw_session_frame(c->session, &f, now_ms(c), &err);
    if (rc < 0 && rc != -ESTALE)
        cw_log_warn("frame from the controller: %s", err.text);
    else
        c->was_up = true;
}

static void on_io(int fd, int events, void *arg)
{
    struct cw_ctllink *c = arg;
    (void)fd;
    (void)events;
    for (int i = 0; i < FRAMES_A_TURN; i++) {
        cw_buf_clear(&c->in);
        int rc = cw_nnsock_recv(c->sock, NULL, &c->in);
        if (rc == -EAGAIN)
            return;
        if (rc == 0)
            on_frame(c);
    }
}

static void on_tick(void *arg)
{
    struct cw_ctllink *c = arg;
    uint64_t established = cw_nnsock_established(c->sock);
    if (established != c->established) {
        c->established = established;
        cw_session_reconnected(c->session, now_ms(c));
    }
    cw_session_tick(c->session, now_ms(c));
}

void cw_ctllink_turn_end(struct cw_ctllink *c, bool sent)
{
    if (sent && c->received > c->acked) {
        cw_session_ack(c->session, c->received);
        c->acked = c->received;
    }
    cw_session_flush(c->session, now_ms(c));
}

static const struct cw_session_ops ops = {
    .send = op_send,
    .record = op_record,
    .acked = op_acked,
    .hello = op_hello,
    .welcome_arrived = op_welcome,
    .silent = op_silent,
};

static int open_all(struct cw_ctllink *c, struct cw_error *err)
{
    const struct cw_conf *conf = c->node->conf;
    uint8_t pub[32], cred[CW_AUTH_CRED_MAX];
    size_t len = 0;
    int rc = cw_plug_load(c->node->plugs, "auth", conf->auth, &c->auth, err);
    if (rc < 0)
        return rc;
    rc = cw_public_key_load(conf->public_key_file, pub, err);
    if (rc < 0)
        return cw_wrap(err, rc, "the controller's public key");
    rc = cw_channel_initiate(pub, &c->channel);
    if (rc < 0)
        return cw_fail(err, rc, "%s: not a usable public key", conf->public_key_file);
    rc = make_credential(c, cred, &len, err);
    if (rc < 0)
        return rc;
    rc = cw_nnsock_connect(conf->node_connect, &c->sock, err);
    if (rc < 0)
        return rc;
    c->session = cw_session_create_node(&c->channel, cred, len, c->node->epoch, conf->heartbeat_ms,
                                        &ops, c);
    c->io = cw_loop_io_open(c->node->loop, cw_nnsock_fd(c->sock), CW_LOOP_READ, on_io, c);
    c->tick = cw_loop_timer_open(c->node->loop, on_tick, c);
    cw_loop_timer_start(c->tick, 1, TICK_MS);
    return 0;
}

int cw_ctllink_open(struct cw_node *n, const Cw__Inventory *inventory, struct cw_ctllink **ret,
                    struct cw_error *err)
{
    struct cw_ctllink *c = cw_xcalloc(1, sizeof *c);
    c->node = n;
    c->inventory = inventory;
    int rc = open_all(c, err);
    if (rc < 0) {
        cw_ctllink_close(c);
        return rc;
    }
    *ret = c;
    return 0;
}

void cw_ctllink_close(struct cw_ctllink *c)
{
    if (c == NULL)
        return;
    cw_loop_timer_close(c->tick);
    cw_loop_io_close(c->io);
    cw_session_destroy(c->session);
    cw_nnsock_close(c->sock);
    cw_channel_clear(&c->channel);
    cw_buf_fini(&c->in);
    free(c->reports);
    free(c);
}
