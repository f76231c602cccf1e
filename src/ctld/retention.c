/* retention.c: what is older than retention_s goes: a job's row, its attempts with their steps, its
 * request key and its entries in DONE; events; and, after jobs went, payloads that no job names any
 * more. The entry (end, job, 0) of DONE goes last, so a stop in the middle continues at the next
 * start. One slice is one batch; the next one waits for its commit. Tested by retention_test.c. */
#include "ctld/retention.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ctld/jobview.h"
#include "ctld/payload.h"
#include "ctld/row.h"
#include "ctld/turn.h"

#define FIRST_MS 60000u
#define EVERY_MS 600000u
#define SLICE 500u

enum phase { PHASE_IDLE, PHASE_JOBS, PHASE_EVENTS, PHASE_MARK, PHASE_SWEEP };

struct cw_retention {
    struct cw_ctld *c;
    struct cw_loop_timer *timer;
    enum phase phase;
    int64_t limit_ns;   /* older than this goes */
    struct cw_buf from; /* key where the phase continues */
    struct cw_arena *arena;
    uint64_t expired, dropped, removed;
    size_t n;   /* rows of this slice */
    bool again; /* the phase is not at its end */
};

uint64_t cw_retention_expired(const struct cw_retention *r)
{
    return r->expired;
}

static struct cw_batch *batch(struct cw_retention *r)
{
    return cw_turn_batch(r->c->turn);
}

static void continue_behind(struct cw_retention *r, const void *key, size_t klen)
{
    cw_buf_clear(&r->from);
    cw_buf_add(&r->from, key, klen);
    cw_buf_add(&r->from, "", 1); /* the smallest key behind it */
}

/* ---- jobs ----------------------------------------------------------------------------------- */

struct attempts {
    struct cw_retention *r;
    uint64_t last;
    uint32_t owner; /* uid */
    size_t n;       /* rows that went */
    bool more;      /* one has more steps than a slice */
};
struct steps {
    struct attempts *of;
    const void *key; /* of the attempt */
    size_t n;
};

static bool step_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct steps *w = arg;
    struct cw_retention *r = w->of->r;
    ProtobufCMessage *m;
    if (klen != CW_ROW_STEP_KEY || memcmp(key, w->key, CW_ROW_ATTEMPT_KEY) != 0)
        return false;
    if (cw_row_unpack(&cw__step_record__descriptor, val, vlen, r->arena, &m, NULL) == 0 &&
        ((Cw__StepRecord *)m)->request_key.len == 16) {
        uint8_t reqkey[CW_ROW_REQKEY_KEY];
        cw_row_reqkey_key(reqkey, w->of->owner, ((Cw__StepRecord *)m)->request_key.data);
        cw_batch_del(batch(r), CW_TABLE_REQKEY, reqkey, sizeof reqkey);
    }
    cw_batch_del(batch(r), CW_TABLE_STEP, key, klen);
    w->n++;
    return true;
}

/* False: there are more of them, which go with the next slice. */
static bool expire_steps(struct attempts *of, uint64_t id, uint32_t attempt)
{
    struct steps w = {.of = of};
    uint8_t key[CW_ROW_STEP_KEY];
    cw_row_step_key(key, id, attempt, 0);
    w.key = key;
    cw_store_scan(of->r->c->store, CW_TABLE_STEP, key, sizeof key, false, SLICE, step_row, NULL, &w,
                  NULL);
    of->n += w.n;
    of->more = w.n >= SLICE;
    return !of->more;
}

static bool attempt_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct attempts *w = arg;
    uint64_t id;
    uint32_t attempt;
    if (klen != CW_ROW_ATTEMPT_KEY)
        return true;
    cw_row_attempt_parse(key, &id, &attempt);
    if (id > w->last || !expire_steps(w, id, attempt))
        return false;
    ProtobufCMessage *m;
    if (cw_row_unpack(&cw__attempt_record__descriptor, val, vlen, w->r->arena, &m, NULL) == 0) {
        uint8_t done[CW_ROW_DONE_KEY];
        cw_row_done_key(done, ((Cw__AttemptRecord *)m)->end_ns, id, attempt);
        cw_batch_del(batch(w->r), CW_TABLE_DONE, done, sizeof done);
    }
    cw_batch_del(batch(w->r), CW_TABLE_ATTEMPT, key, klen);
    return ++w->n < SLICE;
}

/* False: its attempts take more than one slice. */
static bool expire_job(struct cw_retention *r, uint64_t id)
{
    struct cw_jobsrc s;
    if (cw_jobview_find(r->c, id, r->arena, &s, NULL, NULL, NULL) < 0)
        return true; /* its row is gone or damaged: nothing hangs on this entry */
    struct attempts w = {.r = r, .last = s.rec->id + (s.is_array ? s.count : 0),
                         .owner = s.rec->owner->uid};
    uint8_t key[CW_ROW_ATTEMPT_KEY], jobkey[8];
    cw_row_attempt_key(key, s.rec->id, 0);
    cw_store_scan(r->c->store, CW_TABLE_ATTEMPT, key, sizeof key, false, SLICE, attempt_row, NULL,
                  &w, NULL);
    bool whole = w.n < SLICE && !w.more;
    r->n += w.n;
    if (whole && s.live == NULL) {
        cw_store_key_u64(jobkey, s.rec->id);
        cw_batch_del(batch(r), CW_TABLE_JOB, jobkey, sizeof jobkey);
        if (s.rec->request_key.len == 16) {
            uint8_t reqkey[CW_ROW_REQKEY_KEY];
            cw_row_reqkey_key(reqkey, s.rec->owner->uid, s.rec->request_key.data);
            cw_batch_del(batch(r), CW_TABLE_REQKEY, reqkey, sizeof reqkey);
        }
        r->expired++;
        r->removed++;
    }
    cw_jobsrc_fini(&s);
    cw_arena_reset(r->arena);
    return whole;
}

static bool done_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct cw_retention *r = arg;
    int64_t end_ns;
    uint64_t id;
    uint32_t attempt;
    (void)val, (void)vlen;
    if (klen != CW_ROW_DONE_KEY)
        return true;
    cw_row_done_parse(key, &end_ns, &id, &attempt);
    if (end_ns >= r->limit_ns)
        return false;
    r->n++;
    r->again = true;
    if (attempt == 0) {
        if (!expire_job(r, id)) {
            cw_buf_clear(&r->from);
            cw_buf_add(&r->from, key, klen); /* this one again */
            return false;
        }
        cw_batch_del(batch(r), CW_TABLE_DONE, key, klen);
    }
    continue_behind(r, key, klen);
    return r->n < SLICE;
}

/* ---- events --------------------------------------------------------------------------------- */

static bool event_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct cw_retention *r = arg;
    ProtobufCMessage *m;
    if (cw_row_unpack(&cw__event_record__descriptor, val, vlen, r->arena, &m, NULL) == 0 &&
        ((Cw__EventRecord *)m)->time_ns >= r->limit_ns)
        return false;
    cw_batch_del(batch(r), CW_TABLE_EVENT, key, klen);
    r->n++;
    r->again = true;
    continue_behind(r, key, klen);
    return r->n < SLICE;
}

/* ---- payloads ------------------------------------------------------------------------------- */

static bool mark_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct cw_retention *r = arg;
    ProtobufCMessage *m;
    if (cw_row_unpack(&cw__job_record__descriptor, val, vlen, r->arena, &m, NULL) == 0 &&
        ((Cw__JobRecord *)m)->payload_hash.len == 32)
        cw_payloads_sweep_keep(r->c->payloads, ((Cw__JobRecord *)m)->payload_hash.data);
    cw_arena_reset(r->arena);
    r->again = true;
    continue_behind(r, key, klen);
    return ++r->n < SLICE;
}

static bool sweep_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct cw_retention *r = arg;
    (void)val, (void)vlen;
    if (klen == 32 && cw_payloads_sweep_drop(r->c->payloads, batch(r), key))
        r->dropped++;
    r->again = true;
    continue_behind(r, key, klen);
    return ++r->n < SLICE;
}

/* ---- phases --------------------------------------------------------------------------------- */

static const struct {
    enum cw_table table;
    cw_store_row_fn row;
} phases[] = {
    [PHASE_JOBS] = {CW_TABLE_DONE, done_row},
    [PHASE_EVENTS] = {CW_TABLE_EVENT, event_row},
    [PHASE_MARK] = {CW_TABLE_JOB, mark_row},
    [PHASE_SWEEP] = {CW_TABLE_PAYLOAD, sweep_row},
};

static void phase_begin(struct cw_retention *r, enum phase p)
{
    r->phase = p;
    cw_buf_clear(&r->from);
    if (p == PHASE_MARK)
        cw_payloads_sweep_begin(r->c->payloads);
}

static void phase_next(struct cw_retention *r)
{
    if (r->phase == PHASE_JOBS) {
        phase_begin(r, PHASE_EVENTS);
    } else if (r->phase == PHASE_EVENTS && r->removed > 0) {
        phase_begin(r, PHASE_MARK);
    } else if (r->phase == PHASE_MARK) {
        phase_begin(r, PHASE_SWEEP);
    } else {
        cw_payloads_sweep_end(r->c->payloads);
        if (r->removed > 0)
            cw_log_info("retention: %llu finished jobs and %llu payloads removed",
                        (unsigned long long)r->removed, (unsigned long long)r->dropped);
        phase_begin(r, PHASE_IDLE);
    }
}

static void step(void *arg);

static void step_committed(void *arg, bool committed)
{
    struct cw_retention *r = arg;
    if (committed)
        cw_loop_post(r->c->loop, step, r);
    else
        r->c->busy--;
}

/* Behind the commit of what this slice removed, and with a turn of the loop in between. */
static void step_later(struct cw_retention *r)
{
    r->c->busy++;
    cw_turn_after(r->c->turn, CW_TURN_EFFECT, step_committed, r);
}

static void step(void *arg)
{
    struct cw_retention *r = arg;
    r->c->busy--;
    if (r->c->stopping || r->phase == PHASE_IDLE)
        return;
    r->n = 0;
    r->again = false;
    int rc =
        cw_store_scan(r->c->store, phases[r->phase].table, r->from.len > 0 ? r->from.data : NULL,
                      r->from.len, false, SLICE, phases[r->phase].row, NULL, r, NULL);
    cw_arena_reset(r->arena);
    if (rc < 0) {
        cw_payloads_sweep_end(r->c->payloads);
        phase_begin(r, PHASE_IDLE);
        return;
    }
    if (!r->again)
        phase_next(r);
    if (r->phase != PHASE_IDLE)
        step_later(r);
}

static void on_timer(void *arg)
{
    struct cw_retention *r = arg;
    cw_store_reader_check(r->c->store);
    if (r->phase != PHASE_IDLE || r->c->stopping)
        return;
    r->limit_ns = cw_clock_real_ns() - (int64_t)r->c->conf->retention_s * CW_NS_PER_S;
    r->removed = r->dropped = 0;
    phase_begin(r, PHASE_JOBS);
    step_later(r);
}

struct cw_retention *cw_retention_create(struct cw_ctld *c)
{
    struct cw_retention *r = cw_xcalloc(1, sizeof *r);
    r->c = c;
    r->arena = cw_arena_create();
    r->timer = cw_loop_timer_open(c->loop, on_timer, r);
    uint64_t s = c->conf->retention_s;
    uint64_t every = s < EVERY_MS / 1000 ? (s < 1 ? 1 : s) * 1000 : EVERY_MS;
    cw_loop_timer_start(r->timer, every < FIRST_MS ? every : FIRST_MS, every);
    return r;
}

void cw_retention_destroy(struct cw_retention *r)
{
    if (r == NULL)
        return;
    cw_loop_timer_close(r->timer);
    cw_arena_destroy(r->arena);
    cw_buf_fini(&r->from);
    free(r);
}
