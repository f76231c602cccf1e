/* Records between controller and shepherds; see taskflow.h. */
#include "node/taskflow.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crashpoint.h"
#include "base/log.h"
#include "node/ctllink.h"
#include "node/logserver.h"
#include "node/stepreports.h"
#include "node/stepserver.h"
#include "node/task_table.h"
#include "proto/walk.h"

static unsigned n_starts, n_ends; /* of this turn, for the crash points */

/* ---- upwards -------------------------------------------------------------------------------- */

/* Unpacks what a shepherd sent; NULL and a log line when it is broken. */
static const ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *d, const void *p, size_t n,
                                      struct cw_arena *a)
{
    ProtobufCMessage *m = NULL;
    struct cw_error err;
    if (cw_walk_unpack(d, p, n, a, &m, &err) < 0) {
        cw_log_error("from a shepherd: %s", err.text);
        return NULL;
    }
    return m;
}

static void push_started(struct cw_node *n, const struct cw_tasktab_entry *e)
{
    struct cw_arena *a = cw_arena_create();
    const ProtobufCMessage *m = unpack(&cw__task_started__descriptor, e->started.data,
                                       e->started.len, a);
    if (m != NULL) {
        Cw__NodeRecordMsg r = CW__NODE_RECORD_MSG__INIT;
        r.started = (Cw__TaskStarted *)(uintptr_t)m;
        cw_ctllink_push(n->ctl, &r, NULL, NULL);
    }
    cw_arena_destroy(a);
}

static void push_end(struct cw_node *n, struct cw_tasktab_entry *e)
{
    struct cw_arena *a = cw_arena_create();
    const ProtobufCMessage *m = unpack(&cw__task_end__descriptor, e->end.data, e->end.len, a);
    if (m != NULL) {
        Cw__NodeRecordMsg r = CW__NODE_RECORD_MSG__INIT;
        r.end = (Cw__TaskEnd *)(uintptr_t)m;
        cw_ctllink_push(n->ctl, &r, cw_tasktab_final(e) && !e->emptied ? e : NULL,
                        &e->report_seq);
    }
    cw_arena_destroy(a);
}

static void push_emptied(struct cw_node *n, struct cw_tasktab_entry *e)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskEmptied m = CW__TASK_EMPTIED__INIT;
    Cw__NodeRecordMsg r = CW__NODE_RECORD_MSG__INIT;
    key.id = e->id;
    key.attempt = e->attempt;
    m.key = &key;
    r.emptied = &m;
    cw_ctllink_push(n->ctl, &r, e, &e->report_seq);
}

static void push_all(struct cw_node *n, struct cw_tasktab_entry *e)
{
    if (e->started.len > 0 && e->end.len == 0)
        push_started(n, e);
    cw_stepreports_tell(n, e); /* before the end that they belong to */
    if (e->end.len > 0)
        push_end(n, e);
    if (e->emptied)
        push_emptied(n, e);
}

void cw_taskflow_tell_all(struct cw_node *n)
{
    cw_list_each_safe(l, cw_tasktab_list(n->tasks))
        push_all(n, cw_list_entry(l, struct cw_tasktab_entry, link));
}

static void started(struct cw_node *n, struct cw_tasktab_entry *e, const Cw__TaskStarted *m,
                    const void *p, size_t len)
{
    if (cw_tasktab_started(e, m, p, len))
        push_started(n, e);
}

static void ended(struct cw_node *n, struct cw_tasktab_entry *e, const Cw__TaskEnd *m,
                  const void *p, size_t len)
{
    if (!cw_tasktab_ended(e, m, p, len))
        return;
    cw_crashpoint("node.before-end-forward");
    push_end(n, e);
    n_ends++;
    if (n->logs != NULL)
        cw_logserver_ended(n->logs, e->key);
}

static void emptied(struct cw_node *n, struct cw_tasktab_entry *e)
{
    if (e->emptied || !e->not_empty)
        return;
    e->emptied = true;
    push_emptied(n, e);
}

static void carry(struct cw_tasktab_entry *e, struct cw_shepherd_link *l)
{
    e->shepherd = l;
    memcpy(e->shepherd_id, l->id, sizeof e->shepherd_id);
}

static void on_packet(struct cw_shepherd_link *l, enum cw_packet_type type, const void *body,
                      size_t len, int fd, void *arg)
{
    struct cw_node *n = arg;
    const ProtobufCMessageDescriptor *d = type == CW_PACKET_STARTED ? &cw__task_started__descriptor
                                          : type == CW_PACKET_END   ? &cw__task_end__descriptor
                                          : type == CW_PACKET_EMPTIED
                                              ? &cw__task_emptied__descriptor
                                          : type == CW_PACKET_STEP_REPORT
                                              ? &cw__step_report__descriptor
                                              : NULL;
    if (type == CW_PACKET_OPENED && n->logs != NULL)
        cw_logserver_opened(n->logs, body, len, cw_steal_fd(fd));
    if (type == CW_PACKET_STEP_ANSWER && n->steps != NULL)
        cw_stepserver_answer(n->steps, body, len);
    if (fd >= 0)
        close(fd);
    if (d == NULL)
        return;
    struct cw_arena *a = cw_arena_create();
    const ProtobufCMessage *m = unpack(d, body, len, a);
    if (m != NULL && type == CW_PACKET_STEP_REPORT) {
        const Cw__StepReport *r = (const Cw__StepReport *)m;
        struct cw_tasktab_entry *e = cw_tasktab_add(n->tasks, r->step->id, r->step->attempt);
        carry(e, l);
        cw_stepreports_take(n, e, r, body, len);
    } else if (m != NULL) {
        /* The key is the first field of all three. */
        const Cw__TaskKey *k = ((const Cw__TaskEmptied *)m)->key;
        struct cw_tasktab_entry *e = cw_tasktab_add(n->tasks, k->id, k->attempt);
        carry(e, l);
        if (type == CW_PACKET_STARTED)
            started(n, e, (const Cw__TaskStarted *)m, body, len);
        else if (type == CW_PACKET_END)
            ended(n, e, (const Cw__TaskEnd *)m, body, len);
        else
            emptied(n, e);
    }
    cw_arena_destroy(a);
}

/* ---- downwards ------------------------------------------------------------------------------ */

static void send_packed(struct cw_shepherd_link *l, enum cw_packet_type type,
                        const ProtobufCMessage *m)
{
    cw_autobuf struct cw_buf b = { 0 };
    cw_walk_pack(m, &b);
    int rc = cw_packets_add(l->packets, type, b.data, b.len);
    if (rc < 0)
        cw_log_error("to shepherd %s: %s", l->id, strerror(-rc));
}

/* An end that this daemon itself knows: no process was ever made, or its supervisor is dead. */
static void end_here(struct cw_node *n, struct cw_tasktab_entry *e, Cw__Cause cause,
                     const char *why)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskEnd m = CW__TASK_END__INIT;
    cw_autobuf struct cw_buf b = { 0 };
    key.id = e->id;
    key.attempt = e->attempt;
    m.key = &key;
    m.cause = cause;
    m.end_ns = cw_clock_real_ns();
    m.empty = 1;
    m.message = (char *)(uintptr_t)why;
    cw_walk_pack(&m.base, &b);
    ended(n, e, &m, b.data, b.len);
}

static void on_start(struct cw_node *n, const Cw__TaskStart *m)
{
    struct cw_tasktab_entry *e = cw_tasktab_find(n->tasks, m->key->id, m->key->attempt);
    if (e != NULL) { /* said twice */
        push_all(n, e);
        return;
    }
    struct cw_error err = { 0 };
    cw_crashpoint("node.before-start-forward");
    e = cw_tasktab_add(n->tasks, m->key->id, m->key->attempt);
    struct cw_shepherd_link *l = cw_shepherds_pick(n->shepherds, m, &err);
    if (l == NULL) {
        end_here(n, e, CW__CAUSE__CAUSE_LAUNCH_NODE, err.text);
        return;
    }
    carry(e, l);
    send_packed(l, CW_PACKET_START, &m->base);
    n_starts++;
}

static void on_kill(struct cw_node *n, const Cw__TaskKill *m)
{
    struct cw_tasktab_entry *e = cw_tasktab_find(n->tasks, m->key->id, m->key->attempt);
    if (e != NULL && e->shepherd != NULL && e->end.len == 0)
        send_packed(e->shepherd, CW_PACKET_KILL, &m->base);
    else if (e != NULL)
        push_all(n, e); /* ended already: the controller may have missed it */
    else {
        /* Never came here, or gone and forgotten: the answer that frees what is held for it. */
        e = cw_tasktab_add(n->tasks, m->key->id, m->key->attempt);
        end_here(n, e, m->cause, "was not running on this node");
    }
}

static void on_signal(struct cw_node *n, const Cw__TaskSignal *m)
{
    struct cw_tasktab_entry *e = cw_tasktab_find(n->tasks, m->key->id, m->key->attempt);
    if (e != NULL && e->shepherd != NULL)
        send_packed(e->shepherd, CW_PACKET_SIGNAL, &m->base);
}

static void on_limit(struct cw_node *n, const Cw__TaskLimit *m)
{
    struct cw_tasktab_entry *e = cw_tasktab_find(n->tasks, m->key->id, m->key->attempt);
    if (e != NULL && e->shepherd != NULL)
        send_packed(e->shepherd, CW_PACKET_LIMIT, &m->base);
}

void cw_taskflow_record(struct cw_node *n, const Cw__NodeRecordMsg *m)
{
    if (m->start != NULL)
        on_start(n, m->start);
    if (m->signal != NULL)
        on_signal(n, m->signal);
    if (m->limit != NULL)
        on_limit(n, m->limit);
    if (m->kill != NULL)
        on_kill(n, m->kill);
}

void cw_taskflow_sent(void)
{
    for (; n_starts > 0; n_starts--)
        cw_crashpoint("node.after-start-forward");
    for (; n_ends > 0; n_ends--)
        cw_crashpoint("node.after-end-forward");
}

/* ---- letting go ----------------------------------------------------------------------------- */

static bool anyone_of(struct cw_node *n, const char *shepherd)
{
    cw_list_each(l, cw_tasktab_list(n->tasks))
        if (strcmp(cw_list_entry(l, struct cw_tasktab_entry, link)->shepherd_id, shepherd) == 0)
            return true;
    return false;
}

static void let_go(struct cw_node *n, struct cw_tasktab_entry *e)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    char shepherd[48];
    bool dead = e->shepherd == NULL;
    key.id = e->id;
    key.attempt = e->attempt;
    memcpy(shepherd, e->shepherd_id, sizeof shepherd);
    if (!dead)
        send_packed(e->shepherd, CW_PACKET_FORGET, &key.base);
    cw_stepserver_past(n->steps, e);
    cw_tasktab_remove(n->tasks, e);
    if (dead && shepherd[0] != '\0' && !anyone_of(n, shepherd))
        cw_graves_close(n->graves, shepherd);
}

void cw_taskflow_acked(struct cw_node *n, uint64_t id, uint32_t attempt, uint64_t seq)
{
    struct cw_tasktab_entry *e = cw_tasktab_find(n->tasks, id, attempt);
    if (e == NULL)
        return;
    if (!cw_stepreports_acked(e, seq) && e->report_seq == seq && cw_tasktab_final(e))
        e->end_acked = true;
    if (e->end_acked && cw_list_empty(&e->steps))
        let_go(n, e);
}

void cw_taskflow_forget(struct cw_node *n, const Cw__TaskKey *k)
{
    struct cw_tasktab_entry *e = cw_tasktab_find(n->tasks, k->id, k->attempt);
    if (e != NULL && cw_tasktab_final(e) && !e->emptied)
        let_go(n, e); /* what was not empty goes by EMPTIED alone */
}

void cw_taskflow_fence(struct cw_node *n, const Cw__TaskKey *k)
{
    struct cw_tasktab_entry *e = cw_tasktab_find(n->tasks, k->id, k->attempt);
    Cw__TaskKill m = CW__TASK_KILL__INIT;
    if (e == NULL || e->shepherd == NULL || e->end.len > 0)
        return;
    m.key = (Cw__TaskKey *)(uintptr_t)k;
    m.cause = CW__CAUSE__CAUSE_CANCEL;
    m.grace_ms = 0;
    cw_log_info("task %s: unknown to the controller or fenced, killed", e->key);
    send_packed(e->shepherd, CW_PACKET_KILL, &m.base);
}

/* ---- dead shepherds ------------------------------------------------------------------------- */

static void on_lost(struct cw_shepherd_link *l, void *arg)
{
    struct cw_node *n = arg;
    char id[48];
    memcpy(id, l->id, sizeof id);
    cw_stepserver_lost(n->steps, l);
    cw_list_each(p, cw_tasktab_list(n->tasks)) {
        struct cw_tasktab_entry *e = cw_list_entry(p, struct cw_tasktab_entry, link);
        if (e->shepherd == l)
            e->shepherd = NULL;
    }
    cw_graves_bury(n->graves, id);
}

static void on_grave_task(const char *shepherd, const struct cw_journal_task *t, bool done,
                          void *arg)
{
    struct cw_node *n = arg;
    struct cw_arena *a = cw_arena_create();
    struct cw_tasktab_entry *e = cw_tasktab_add(n->tasks, t->id, t->attempt);
    const ProtobufCMessage *m;
    if (e->shepherd_id[0] == '\0')
        memcpy(e->shepherd_id, shepherd, strnlen(shepherd, sizeof e->shepherd_id - 1) + 1);
    if (t->started.len > 0 &&
        (m = unpack(&cw__task_started__descriptor, t->started.data, t->started.len, a)) != NULL)
        started(n, e, (const Cw__TaskStarted *)m, t->started.data, t->started.len);
    /* Before the helper has been there a written end does not prove an empty box. */
    if (done && t->end.len > 0 &&
        (m = unpack(&cw__task_end__descriptor, t->end.data, t->end.len, a)) != NULL)
        ended(n, e, (const Cw__TaskEnd *)m, t->end.data, t->end.len);
    if (done && t->emptied)
        emptied(n, e);
    cw_arena_destroy(a);
}

/* Tasks that the dead shepherd was given and of which its journal is silent (it had not come to
 * them, or the journal is gone): their end too needs the proof that no process is left. */
static void on_settled(const char *shepherd, void *arg)
{
    struct cw_node *n = arg;
    bool silent = false;
    cw_list_each(p, cw_tasktab_list(n->tasks)) {
        struct cw_tasktab_entry *e = cw_list_entry(p, struct cw_tasktab_entry, link);
        if (e->shepherd != NULL || e->end.len > 0 || strcmp(e->shepherd_id, shepherd) != 0)
            continue;
        silent = true;
        cw_graves_claim(n->graves, shepherd, e->id, e->attempt);
    }
    if (silent)
        cw_graves_again(n->graves, shepherd);
    else if (!anyone_of(n, shepherd))
        cw_graves_close(n->graves, shepherd);
}

void cw_taskflow_dead(const char *shepherd, void *node)
{
    cw_graves_bury(((struct cw_node *)node)->graves, shepherd);
}

const struct cw_shepherds_ops cw_taskflow_shepherds_ops = { .packet = on_packet, .lost = on_lost };
const struct cw_graves_ops cw_taskflow_graves_ops = { .task = on_grave_task,
                                                      .settled = on_settled };
