/* eventlog.c: followers of the history. A follower that waits has seen everything up to its cursor;
 * a commit posts one step that reads the new rows once, offers each to every follower, answers those
 * that got something and moves the others' cursors. See eventlog.h. */
#include "ctld/eventlog.h"

#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "ctld/answer.h"
#include "ctld/row.h"
#include "ctld/turn.h"

#define STEP_COMPARES 20000u /* rows times followers of one step */
#define STEP_ROWS_MAX 500u
#define STEP_ROWS_MIN 8u

struct follower {
    struct cw_list on_log;
    struct cw_eventlog *log;
    struct cw_rpc_call *call;
    struct cw_loop_timer *timer;
    struct cw_eventsel sel;
    uint64_t cursor;
    size_t limit;
    Cw__EventsReply *reply; /* being filled; NULL: nothing yet */
};

struct stored {
    struct cw_eventlog *log;
    uint64_t seq; /* the last of its batch; grows until the batch is closed */
};

struct cw_eventlog {
    struct cw_ctld *c;
    uint64_t noted, committed, seen; /* seen: offered to the followers */
    uint64_t generation;             /* of open */
    struct stored *open;             /* hangs on the batch of that generation, gone when it is stored */
    bool stepping;
    struct cw_list followers;
    size_t n;
    struct cw_arena *rows; /* of one step */
};

bool cw_eventsel_match(const struct cw_eventsel *s, const Cw__EventRecord *r)
{
    if (!s->all && (!r->has_job_id || !r->has_owner || r->owner != s->uid))
        return false;
    if (s->has_ids && (!r->has_job_id || !cw_idset_has(&s->ids, r->job_id)))
        return false;
    for (size_t i = 0; i < s->n_kinds; i++)
        if (strcmp(s->kinds[i], r->kind) == 0)
            return true;
    return s->n_kinds == 0;
}

struct cw_eventlog *cw_eventlog_create(struct cw_ctld *c)
{
    struct cw_eventlog *l = cw_xcalloc(1, sizeof *l);
    l->c = c;
    cw_list_init(&l->followers);
    l->rows = cw_arena_create();
    return l;
}

static void follower_free(struct follower *f)
{
    cw_list_remove(&f->on_log);
    f->log->n--;
    cw_loop_timer_close(f->timer);
    cw_idset_fini(&f->sel.ids);
    free(f);
}

void cw_eventlog_drop(struct cw_eventlog *l)
{
    if (l == NULL)
        return;
    cw_list_each_safe (p, &l->followers) {
        struct follower *f = cw_list_entry(p, struct follower, on_log);
        cw_rpc_drop(f->call);
        follower_free(f);
    }
}

void cw_eventlog_destroy(struct cw_eventlog *l)
{
    if (l == NULL)
        return;
    cw_arena_destroy(l->rows);
    free(l);
}

void cw_eventlog_set(struct cw_eventlog *l, uint64_t seq)
{
    l->noted = l->committed = l->seen = seq;
}

uint64_t cw_eventlog_committed(const struct cw_eventlog *l)
{
    return l->committed;
}

uint64_t cw_eventlog_noted(const struct cw_eventlog *l)
{
    return l->noted;
}

size_t cw_eventlog_n_followers(const struct cw_eventlog *l)
{
    return l->n;
}

/* ---- answers -------------------------------------------------------------------------------- */

static Cw__EventsReply *reply_of(struct follower *f)
{
    if (f->reply != NULL)
        return f->reply;
    struct cw_arena *a = cw_rpc_call_arena(f->call);
    f->reply = cw_arena_alloc(a, sizeof *f->reply);
    cw__events_reply__init(f->reply);
    f->reply->events = cw_arena_alloc(a, f->limit * sizeof *f->reply->events);
    return f->reply;
}

/* What is told is on disk already: no need to wait for a commit. */
static void follower_answer(struct follower *f)
{
    Cw__EventsReply *r = reply_of(f);
    r->last_seq = f->cursor;
    cw_answer_now(f->call, &r->base);
    follower_free(f);
}

static void on_time_up(void *arg)
{
    follower_answer(arg);
}

/* ---- a step over new rows ------------------------------------------------------------------- */

static void offer(struct follower *f, Cw__EventRecord *r)
{
    if (r->seq <= f->cursor || (f->reply != NULL && f->reply->n_events >= f->limit))
        return;
    f->cursor = r->seq;
    if (cw_eventsel_match(&f->sel, r)) {
        Cw__EventsReply *reply = reply_of(f);
        reply->events[reply->n_events++] = r; /* lives in l->rows until the step's answers are sent */
    }
}

static bool new_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct cw_eventlog *l = arg;
    ProtobufCMessage *m;
    if (klen != 8)
        return true;
    uint64_t seq = cw_store_u64_key(key);
    if (seq > l->committed)
        return false;
    l->seen = seq;
    if (cw_row_unpack(&cw__event_record__descriptor, val, vlen, l->rows, &m, NULL) < 0)
        return true;
    cw_list_each (p, &l->followers)
        offer(cw_list_entry(p, struct follower, on_log), (Cw__EventRecord *)m);
    return true;
}

static void step(void *arg)
{
    struct cw_eventlog *l = arg;
    l->stepping = false;
    l->c->busy--;
    if (l->n == 0) {
        l->seen = l->committed;
        return;
    }
    uint64_t max = STEP_COMPARES / l->n, before = l->seen;
    max = max > STEP_ROWS_MAX ? STEP_ROWS_MAX : max < STEP_ROWS_MIN ? STEP_ROWS_MIN : max;
    uint8_t key[8];
    cw_store_key_u64(key, l->seen + 1);
    if (cw_store_scan(l->c->store, CW_TABLE_EVENT, key, sizeof key, false, max, new_row, NULL, l,
                      NULL) < 0 ||
        l->seen == before)
        l->seen = l->committed; /* unreadable or expired rows */
    cw_list_each_safe (p, &l->followers) {
        struct follower *f = cw_list_entry(p, struct follower, on_log);
        if (f->reply != NULL)
            follower_answer(f);
    }
    cw_arena_reset(l->rows);
    if (l->seen < l->committed && !l->c->stopping) {
        l->stepping = true;
        l->c->busy++;
        cw_loop_post(l->c->loop, step, l);
    }
}

/* ---- commits -------------------------------------------------------------------------------- */

static void on_stored(void *arg, bool committed)
{
    struct stored *s = arg;
    struct cw_eventlog *l = s->log;
    if (committed) {
        l->committed = s->seq;
        if (l->n == 0)
            l->seen = l->committed;
        else if (!l->stepping) {
            l->stepping = true;
            l->c->busy++;
            cw_loop_post(l->c->loop, step, l);
        }
    }
    free(s);
}

void cw_eventlog_note(struct cw_eventlog *l, uint64_t seq)
{
    uint64_t generation = cw_turn_generation(l->c->turn);
    l->noted = seq;
    if (l->open != NULL && l->generation == generation) {
        l->open->seq = seq;
        return;
    }
    l->open = cw_xcalloc(1, sizeof *l->open);
    *l->open = (struct stored){l, seq};
    l->generation = generation;
    cw_turn_after(l->c->turn, CW_TURN_EFFECT, on_stored, l->open);
}

int cw_eventlog_follow(struct cw_eventlog *l, struct cw_rpc_call *call, struct cw_eventsel *sel,
                       uint64_t cursor, size_t limit, uint32_t wait_ms, struct cw_error *err)
{
    if (l->n >= CW_EVENTLOG_FOLLOWERS_MAX)
        return cw_fail(err, -EAGAIN, "%zu clients follow events already, at most %u may", l->n,
                       CW_EVENTLOG_FOLLOWERS_MAX);
    struct follower *f = cw_xcalloc(1, sizeof *f);
    f->log = l;
    f->call = call;
    f->sel = *sel;
    *sel = (struct cw_eventsel){0};
    f->cursor = cursor > l->committed ? cursor : l->committed;
    f->limit = limit;
    f->timer = cw_loop_timer_open(l->c->loop, on_time_up, f);
    cw_list_add_tail(&l->followers, &f->on_log);
    l->n++;
    cw_loop_timer_start(f->timer,
                        wait_ms < CW_EVENTLOG_WAIT_MAX_MS ? wait_ms : CW_EVENTLOG_WAIT_MAX_MS, 0);
    return 0;
}
