/* effect.c: rows and sends of what the model decided. Runs inside model steps, so it never steps
 * the model and keeps no pointers: rows are packed at once (jobs at the end of the turn or when
 * they leave memory), sends remember (id, attempt) and look again after the commit. Tested by the
 * component test. */
#include "ctld/effect.h"

#include <string.h>

#include "base/clock.h"
#include "base/crashpoint.h"
#include "base/mem.h"
#include "base/table.h"
#include "ctld/cycle.h"
#include "ctld/deadline.h"
#include "ctld/eventlog.h"
#include "ctld/nodelink.h"
#include "ctld/row.h"
#include "ctld/stepbook.h"
#include "ctld/turn.h"
#include "ctld/waiter.h"
#include "model/node.h"
#include "spec/outcome.h"

struct cw_effects {
    struct cw_ctld *c;
    struct cw_idtable *changed; /* job id -> struct cw_job: rows to pack at the end of the turn */
    struct cw_idtable *attempts; /* address -> struct cw_attempt on several nodes, likewise: its row
                                  * grows with its nodes, and all of them report at once */
    uint64_t event_seq;
    struct cw_buf scratch;
};

struct send {
    struct cw_ctld *c;
    enum cw_effect_kind kind;
    uint64_t id;
    uint32_t attempt, node, signal, grace_ms;
    Cw__Cause cause;
};

struct cw_effects *cw_effects_create(struct cw_ctld *c)
{
    struct cw_effects *fx = cw_xcalloc(1, sizeof *fx);
    fx->c = c;
    fx->changed = cw_idtable_create();
    fx->attempts = cw_idtable_create();
    return fx;
}

void cw_effects_destroy(struct cw_effects *fx)
{
    if (fx == NULL)
        return;
    cw_idtable_destroy(fx->changed);
    cw_idtable_destroy(fx->attempts);
    cw_buf_fini(&fx->scratch);
    free(fx);
}

uint64_t cw_effects_event_seq(const struct cw_effects *fx)
{
    return fx->event_seq;
}

void cw_effects_set_event_seq(struct cw_effects *fx, uint64_t seq)
{
    fx->event_seq = seq;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void put_job(struct cw_effects *fx, const struct cw_job *j)
{
    uint8_t key[8];
    cw_store_key_u64(key, j->id);
    cw_buf_clear(&fx->scratch);
    uint8_t head[2] = {CW_ROW_SCHEMA, cw_state_terminal(j->state) ? CW_ROW_FINAL : 0};
    cw_buf_add(&fx->scratch, head, sizeof head);
    cw_job_row(j, &fx->scratch);
    cw_batch_put(cw_turn_batch(fx->c->turn), CW_TABLE_JOB, key, sizeof key, fx->scratch.data,
                 fx->scratch.len);
}

static void put_done(struct cw_effects *fx, int64_t end_ns, uint64_t id, uint32_t attempt)
{
    uint8_t key[CW_ROW_DONE_KEY];
    cw_row_done_key(key, end_ns, id, attempt);
    cw_batch_put(cw_turn_batch(fx->c->turn), CW_TABLE_DONE, key, sizeof key, NULL, 0);
}

static bool is_final(const struct cw_attempt *a)
{
    return cw_state_terminal(a->rec->state) && a->rec->ledger_freed;
}

static void put_attempt(struct cw_effects *fx, const struct cw_attempt *a)
{
    uint8_t key[CW_ROW_ATTEMPT_KEY];
    cw_row_attempt_key(key, a->id, a->attempt);
    bool final = is_final(a);
    cw_row_put(cw_turn_batch(fx->c->turn), CW_TABLE_ATTEMPT, key, sizeof key,
               final ? CW_ROW_FINAL : 0, &a->rec->base);
}

/* One that is final leaves memory behind this call. */
static void attempt_changed(struct cw_effects *fx, struct cw_attempt *a)
{
    uint64_t key = (uint64_t)(uintptr_t)a;
    if (a->n_parts > 1 && !is_final(a)) {
        cw_idtable_set(fx->attempts, key, a);
        return;
    }
    if (a->n_parts > 1)
        cw_idtable_remove(fx->attempts, key);
    put_attempt(fx, a);
}

static void put_node(struct cw_effects *fx, const struct cw_node *n)
{
    cw_row_put(cw_turn_batch(fx->c->turn), CW_TABLE_NODE, n->rec->name, strlen(n->rec->name), 0,
               &n->rec->base);
}

/* Whose job, and which element of an array. */
static void event_job(Cw__EventRecord *r, const struct cw_effect *e)
{
    const struct cw_job *j = e->job != NULL ? e->job : e->attempt != NULL ? e->attempt->job : NULL;
    if (j == NULL)
        return;
    r->has_owner = true;
    r->owner = j->uid;
    if (!j->is_array || e->attempt == NULL)
        return;
    r->has_array_id = r->has_index = true;
    r->array_id = j->id;
    r->index = cw_job_index(j, e->attempt->ordinal);
}

static void put_event(struct cw_effects *fx, const struct cw_effect *e)
{
    Cw__EventRecord r = CW__EVENT_RECORD__INIT;
    r.seq = ++fx->event_seq;
    r.time_ns = cw_clock_real_ns();
    r.kind = (char *)e->event;
    if (e->attempt != NULL) {
        r.has_job_id = r.has_attempt = true;
        r.job_id = e->attempt->id;
        r.attempt = e->attempt->attempt;
    } else if (e->job != NULL) {
        r.has_job_id = true;
        r.job_id = e->job->id;
    }
    if (e->node != NULL)
        r.node = (char *)e->node->name;
    r.has_uid = true;
    r.uid = e->uid;
    if (e->text[0] != '\0')
        r.text = (char *)e->text;
    event_job(&r, e);
    uint8_t key[8];
    cw_store_key_u64(key, r.seq);
    cw_row_put(cw_turn_batch(fx->c->turn), CW_TABLE_EVENT, key, sizeof key, 0, &r.base);
    cw_eventlog_note(fx->c->eventlog, r.seq);
}

static void job_final(struct cw_effects *fx, struct cw_job *j)
{
    cw_idtable_remove(fx->changed, j->id);
    put_job(fx, j);
    put_done(fx, j->end_ns, j->id, 0);
    cw_waits_job_final(fx->c->waits, j);
}

/* ---- sends ---------------------------------------------------------------------------------- */

static void send_run(void *arg, bool committed)
{
    struct send *s = arg;
    struct cw_node *n = committed ? cw_model_node_at(s->c->model, s->node) : NULL;
    if (n != NULL) {
        if (s->kind == CW_EFFECT_SEND_START) {
            cw_crashpoint("effect.before-send-start");
            cw_nodelink_send_start(s->c, n, s->id, s->attempt);
            cw_crashpoint("effect.after-send-start");
        } else if (s->kind == CW_EFFECT_SEND_KILL) {
            cw_nodelink_send_kill(s->c, n, s->id, s->attempt, s->cause, s->grace_ms);
        } else if (s->kind == CW_EFFECT_SEND_LIMIT) {
            cw_nodelink_send_limit(s->c, n, s->id, s->attempt);
        } else {
            cw_nodelink_send_signal(s->c, n, s->id, s->attempt, s->signal);
        }
    }
    free(s);
}

static void send_later(struct cw_effects *fx, const struct cw_effect *e)
{
    struct send *s = cw_xcalloc(1, sizeof *s);
    s->c = fx->c;
    s->kind = e->kind;
    s->id = e->attempt->id;
    s->attempt = e->attempt->attempt;
    s->node = e->node->index;
    s->signal = e->signal;
    s->cause = e->cause;
    uint32_t grace_s =
        e->attempt->job != NULL ? e->attempt->job->kill_grace_s : fx->c->conf->kill_grace_s;
    s->grace_ms = grace_s > UINT32_MAX / 1000 ? UINT32_MAX : grace_s * 1000;
    cw_turn_after(fx->c->turn, CW_TURN_EFFECT, send_run, s);
}

void cw_effects_on(const struct cw_effect *e, void *arg)
{
    struct cw_effects *fx = arg;
    switch (e->kind) {
    case CW_EFFECT_PUT_JOB:
        cw_idtable_set(fx->changed, e->job->id, e->job);
        if (e->job->timer_pos != UINT32_MAX)
            cw_deadline_touch(fx->c->deadline, e->job->timer_ns);
        break;
    case CW_EFFECT_PUT_ATTEMPT:
        attempt_changed(fx, e->attempt);
        cw_deadline_touch(fx->c->deadline, e->attempt->deadline_ns);
        break;
    case CW_EFFECT_PUT_NODE: put_node(fx, e->node); break;
    case CW_EFFECT_EVENT: put_event(fx, e); break;
    case CW_EFFECT_DONE:
        cw_stepbook_attempt_ended(fx->c->stepbook, e->attempt);
        put_done(fx, e->attempt->rec->end_ns, e->attempt->id, e->attempt->attempt);
        break;
    case CW_EFFECT_SEND_START:
    case CW_EFFECT_SEND_KILL:
    case CW_EFFECT_SEND_LIMIT:
    case CW_EFFECT_SEND_SIGNAL: send_later(fx, e); break;
    case CW_EFFECT_JOB_FINAL: job_final(fx, e->job); break;
    case CW_EFFECT_RUN_CYCLE: cw_cycle_want(fx->c->cycle); break;
    }
}

static bool settle_one(uint64_t key, void *value, void *arg)
{
    struct cw_effects *fx = arg;
    struct cw_job *j = value;
    (void)key;
    put_job(fx, j);
    if (!cw_list_empty(&j->waiters))
        cw_waits_job_changed(fx->c->waits, j);
    cw_idtable_remove(fx->changed, j->id);
    return true;
}

static bool settle_attempt(uint64_t key, void *value, void *arg)
{
    struct cw_effects *fx = arg;
    put_attempt(fx, value);
    cw_idtable_remove(fx->attempts, key);
    return true;
}

void cw_effects_settle(struct cw_effects *fx)
{
    if (cw_idtable_count(fx->attempts) > 0)
        cw_idtable_each(fx->attempts, settle_attempt, fx);
    if (cw_idtable_count(fx->changed) > 0)
        cw_idtable_each(fx->changed, settle_one, fx);
}
