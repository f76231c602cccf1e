/* Requests to steps; see stepserver.h. */
#include "node/stepserver.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/table.h"
#include "proto/walk.h"
#include "shepherd/stepcall.h"
#include "wire/ticket.h"

#define CALLS_MAX   8192
#define PATIENCE_MS 90000 /* over the 60 s that a request may wait in the shepherd */
#define PAST_MS     70000 /* over the time that a shepherd keeps an ended step */
#define PAST_MAX    4096
#define TICK_MS     1000 /* looks at deadlines, only while somebody waits */

/* Served kinds: how the shepherd calls it, and the right that the ticket must give. */
static const struct served {
    enum cw_kind kind;
    enum cw_stepcall_kind call;
    const char *right;
} served[] = {
    { CW_KIND_STEP_START, CW_STEPCALL_START, "step" },
    { CW_KIND_STEP_READ, CW_STEPCALL_READ, "step" },
    { CW_KIND_STEP_WRITE, CW_STEPCALL_WRITE, "step" },
    { CW_KIND_STEP_CTL, CW_STEPCALL_CTL, "step" },
    { CW_KIND_STAT, CW_STEPCALL_STAT, "stat" },
};

struct pending {
    struct cw_list link;
    uint64_t token;
    struct cw_rpc_call *call;
    const struct cw_shepherd_link *shepherd;
    int64_t until_ms;
};

struct past {
    struct cw_list link; /* oldest first */
    char key[36], shepherd_id[48];
    int64_t until_ms;
};

struct cw_stepserver {
    struct cw_node *node;
    struct cw_idtable *by_token;
    struct cw_list pending, past;
    size_t n_past;
    uint64_t last_token;
    struct cw_loop_timer *tick;
};

static const struct served *find_served(enum cw_kind kind)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(served); i++)
        if (served[i].kind == kind)
            return &served[i];
    return NULL;
}

bool cw_stepserver_serves(enum cw_kind kind)
{
    return find_served(kind) != NULL;
}

/* ---- who waits ------------------------------------------------------------------------------ */

static struct cw_rpc_call *settle(struct cw_stepserver *s, struct pending *p)
{
    struct cw_rpc_call *call = p->call;
    cw_idtable_remove(s->by_token, p->token);
    cw_list_remove(&p->link);
    free(p);
    return call;
}

static void drop_past(struct cw_stepserver *s, struct past *p)
{
    cw_list_remove(&p->link);
    s->n_past--;
    free(p);
}

static void on_tick(void *arg)
{
    struct cw_stepserver *s = arg;
    int64_t now = cw_loop_now_ms(s->node->loop);
    cw_list_each_safe(l, &s->pending) {
        struct pending *p = cw_list_entry(l, struct pending, link);
        if (p->until_ms <= now)
            cw_rpc_reply_failure(settle(s, p), -EAGAIN, "the job's supervisor does not answer",
                                 true);
    }
    cw_list_each_safe(l, &s->past)
        if (cw_list_entry(l, struct past, link)->until_ms <= now)
            drop_past(s, cw_list_entry(l, struct past, link));
    if (cw_list_empty(&s->pending) && cw_list_empty(&s->past))
        cw_loop_timer_stop(s->tick);
}

static void arm(struct cw_stepserver *s)
{
    if (cw_list_empty(&s->pending) && cw_list_empty(&s->past))
        cw_loop_timer_start(s->tick, TICK_MS, TICK_MS);
}

void cw_stepserver_past(struct cw_stepserver *s, const struct cw_tasktab_entry *e)
{
    if (s == NULL || !e->had_steps || e->shepherd == NULL)
        return;
    if (s->n_past >= PAST_MAX)
        drop_past(s, cw_list_entry(s->past.next, struct past, link));
    struct past *p = cw_xcalloc(1, sizeof *p);
    arm(s);
    memcpy(p->key, e->key, sizeof p->key);
    memcpy(p->shepherd_id, e->shepherd_id, sizeof p->shepherd_id);
    p->until_ms = cw_loop_now_ms(s->node->loop) + PAST_MS;
    cw_list_add_tail(&s->past, &p->link);
    s->n_past++;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* The ticket is the first field of every request of these kinds. */
static int open_ticket(struct cw_stepserver *s, struct cw_rpc_call *call, const struct served *k,
                       Cw__TicketBody **ret, struct cw_error *err)
{
    const struct cw_buf *body = cw_rpc_call_body(call);
    struct cw_arena *a = cw_rpc_call_arena(call);
    ProtobufCMessage *m;
    int rc = cw_walk_unpack(cw_kind_find(k->kind)->request, body->data, body->len, a, &m, err);
    if (rc < 0)
        return rc;
    const ProtobufCBinaryData *ticket = &((const Cw__StatRequest *)m)->ticket;
    rc = cw_ticket_open(s->node->ticket_key, ticket->data, ticket->len, cw_clock_real_ns(), a, ret,
                        err);
    if (rc < 0)
        return rc;
    return strcmp((*ret)->right, k->right) == 0
               ? 0
               : cw_fail(err, -EACCES, "this ticket gives the right \"%s\", needed is \"%s\"",
                         (*ret)->right, k->right);
}

static struct cw_shepherd_link *shepherd_of(struct cw_stepserver *s, const Cw__TicketBody *t)
{
    const struct cw_tasktab_entry *e = cw_tasktab_find(s->node->tasks, t->id, t->attempt);
    char key[36];
    if (e != NULL)
        return e->shepherd;
    snprintf(key, sizeof key, "%llu.%u", (unsigned long long)t->id, t->attempt);
    cw_list_each(l, &s->past) {
        const struct past *p = cw_list_entry(l, struct past, link);
        if (strcmp(p->key, key) == 0)
            return cw_shepherds_find(s->node->shepherds, p->shepherd_id);
    }
    return NULL;
}

static int pass_on(struct cw_stepserver *s, struct cw_rpc_call *call, const struct served *k,
                   const Cw__TicketBody *t, struct cw_error *err)
{
    struct cw_shepherd_link *l = shepherd_of(s, t);
    if (l == NULL)
        return cw_fail(err, -ESRCH, "job %llu is not on node %s, or not any more",
                       (unsigned long long)t->id, s->node->name);
    if (cw_idtable_count(s->by_token) >= CALLS_MAX)
        return cw_fail(err, -EAGAIN, "too many requests wait on this node");
    const struct cw_buf *body = cw_rpc_call_body(call);
    cw_autobuf struct cw_buf facts = { 0 }, packet = { 0 };
    cw_walk_pack(&t->base, &facts);
    struct cw_stepcall c = { .token = ++s->last_token,
                             .kind = k->call,
                             .facts = facts.data,
                             .n_facts = facts.len,
                             .request = body->data,
                             .n_request = body->len };
    cw_stepcall_pack(&c, &packet);
    int rc = cw_packets_add(l->packets, CW_PACKET_STEP_CALL, packet.data, packet.len);
    if (rc < 0)
        return cw_fail(err, -EAGAIN, "the job's supervisor is busy: %s", strerror(-rc));
    struct pending *p = cw_xcalloc(1, sizeof *p);
    arm(s);
    p->token = c.token;
    p->call = call;
    p->shepherd = l;
    p->until_ms = cw_loop_now_ms(s->node->loop) + PATIENCE_MS;
    cw_list_add_tail(&s->pending, &p->link);
    cw_idtable_set(s->by_token, p->token, p);
    return 0;
}

void cw_stepserver_call(struct cw_stepserver *s, struct cw_rpc_call *call)
{
    const struct served *k = find_served(cw_rpc_call_kind(call));
    Cw__TicketBody *t = NULL;
    struct cw_error err = { 0 };
    int rc = open_ticket(s, call, k, &t, &err);
    if (rc == 0)
        rc = pass_on(s, call, k, t, &err);
    if (rc < 0)
        cw_rpc_reply_failure(call, rc, err.text, rc == -EAGAIN);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void reply(struct cw_rpc_call *call, const struct cw_stepanswer *a)
{
    ProtobufCMessage *m;
    struct cw_error err = { 0 };
    const struct cw_kind_row *row = cw_kind_find(cw_rpc_call_kind(call));
    if (a->code < 0) {
        cw_autofree char *text = cw_xstrndup(a->body, a->n);
        cw_rpc_reply_failure(call, a->code, text, a->retry);
    } else if (cw_walk_unpack(row->reply, a->body, a->n, cw_rpc_call_arena(call), &m, &err) < 0) {
        cw_rpc_reply_failure(call, -EIO, err.text, false);
    } else {
        cw_rpc_reply(call, m);
    }
}

void cw_stepserver_answer(struct cw_stepserver *s, const void *body, size_t n)
{
    struct cw_stepanswer a;
    if (cw_stepanswer_unpack(body, n, &a) < 0)
        return;
    struct pending *p = cw_idtable_find(s->by_token, a.token);
    if (p != NULL) /* else its time was over, or it was asked by a daemon before this one */
        reply(settle(s, p), &a);
}

void cw_stepserver_lost(struct cw_stepserver *s, const struct cw_shepherd_link *l)
{
    if (s == NULL)
        return;
    cw_list_each_safe(p, &s->pending) {
        struct pending *w = cw_list_entry(p, struct pending, link);
        if (w->shepherd == l)
            cw_rpc_reply_failure(settle(s, w), -ESRCH, "the job's supervisor has died", false);
    }
}

struct cw_stepserver *cw_stepserver_create(struct cw_node *n)
{
    struct cw_stepserver *s = cw_xcalloc(1, sizeof *s);
    s->node = n;
    s->by_token = cw_idtable_create();
    /* An answer for a daemon that was killed must not be taken for one of ours. */
    s->last_token = (uint64_t)cw_clock_real_ns();
    cw_list_init(&s->pending);
    cw_list_init(&s->past);
    s->tick = cw_loop_timer_open(n->loop, on_tick, s);
    return s;
}

void cw_stepserver_destroy(struct cw_stepserver *s)
{
    if (s == NULL)
        return;
    cw_list_each_safe(l, &s->pending)
        cw_rpc_drop(settle(s, cw_list_entry(l, struct pending, link)));
    cw_list_each_safe(l, &s->past)
        drop_past(s, cw_list_entry(l, struct past, link));
    cw_loop_timer_close(s->tick);
    cw_idtable_destroy(s->by_token);
    free(s);
}
