/* jobwalk.c: the walk behind JOBS. A cursor (id, attempt) says which rows are done; a slice looks
 * at SLICE_ROWS stored rows or jobs at most, then lets the loop run. Tested by the component test
 * and the command tests. */
#include "ctld/jobwalk.h"

#include "ctld/startplan.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ctld/answer.h"
#include "ctld/jobfilter.h"
#include "ctld/jobview.h"
#include "ctld/row.h"
#include "ctld/turn.h"
#include "model/node.h"
#include "proto/walk.h"
#include "spec/outcome.h"

#define LIMIT_MAX 2000u
#define SLICE_ROWS 2000u
#define REPLY_BYTES_MAX (800u * 1024u)

struct query {
    struct cw_ctld *c;
    struct cw_rpc_call *call;
    const Cw__JobsRequest *m;
    struct cw_jobfilter filter;
    struct cw_startplan *plan; /* estimates were asked for */
    struct cw_arena *arena;   /* of the call: the rows */
    struct cw_arena *scratch; /* of one job */
    Cw__JobsReply *reply;
    size_t limit, bytes;
    size_t spec_len; /* of the live job at hand, packed; 0: not known */
    bool full, end;
    bool newest; /* going back from the newest stored job */
    bool stored; /* every slice came from the store, because commits fail */
    const char *default_partition;
    size_t sel;    /* selector being worked on */
    uint64_t next; /* job id (or DONE key id) to look at next */
    uint64_t after_id;
    uint32_t after_attempt;
    int64_t next_end_ns; /* DONE order */
    uint32_t next_attempt;
    size_t looked; /* in this slice */
};

static bool both(const struct query *q)
{
    return q->filter.n_sel > 0 || q->m->filter->include_finished;
}

/* ---- rows of one job ------------------------------------------------------------------------ */

/* At most so much of the reply. A row of a waiting job is its spec and some numbers: to count them
 * would cost as much as to pack them. */
static size_t row_bytes(const struct query *q, const Cw__JobInfo *row)
{
    if (q->spec_len == 0 || row->attempt != NULL || row->n_steps + row->n_start_nodes > 0 ||
        row->reason_text != NULL)
        return cw__job_info__get_packed_size(row);
    size_t list = row->pending_indices != NULL ? strlen(row->pending_indices) : 0;
    size_t reason = row->reason != NULL ? strlen(row->reason) : 0;
    return q->spec_len + list + reason + 256;
}

static void add(struct query *q, Cw__JobInfo *row)
{
    if (!cw_jobfilter_nodes(&q->filter, row->attempt))
        return;
    if (q->plan != NULL)
        cw_startplan_fill(q->plan, row, q->scratch);
    if (q->m->steps && row->attempt != NULL)
        cw_jobview_steps(q->c, row, q->scratch);
    size_t n = row_bytes(q, row);
    if (q->reply->n_jobs >= q->limit || (q->reply->n_jobs > 0 && q->bytes + n > REPLY_BYTES_MAX)) {
        q->full = true;
        return;
    }
    q->bytes += n + 6;
    q->reply->jobs[q->reply->n_jobs++] =
        q->scratch == q->arena ? row : (Cw__JobInfo *)cw_walk_copy(&row->base, q->arena);
}

static void add_if(struct query *q, Cw__JobInfo *row)
{
    if (row->id > q->after_id && cw_jobfilter_state(&q->filter, row->state))
        add(q, row);
}

static void add_elements(struct query *q, const struct cw_jobsrc *s,
                         const struct cw_idset *ordinals)
{
    for (size_t r = 0; r < ordinals->n && !q->full; r++) {
        uint64_t k = ordinals->r[r].first;
        if (q->after_id >= s->rec->id + 1 + k)
            k = q->after_id - s->rec->id; /* the first behind the cursor */
        for (; k <= ordinals->r[r].last && !q->full; k++) {
            bool known;
            Cw__State st = cw_jobview_element_state(q->c, s, k, &known);
            if (known && !cw_jobfilter_state(&q->filter, st))
                continue;
            if (!both(q) && (!known || cw_state_terminal(st)))
                continue;
            add_if(q, cw_jobview_element(q->c, s, k, q->scratch));
        }
    }
}

/* One row for what waits (or for the whole, once it has ended), one for each live element. */
static void add_collapsed(struct query *q, const struct cw_jobsrc *s)
{
    struct cw_idset alive = {0};
    if (s->live != NULL)
        cw_list_each (p, &s->live->attempts) {
            struct cw_attempt *a = cw_list_entry(p, struct cw_attempt, on_job);
            if (!cw_state_terminal(a->rec->state))
                cw_idset_add(&alive, a->ordinal, a->ordinal);
        }
    if (!cw_idset_empty(&s->pending) || cw_idset_empty(&alive)) {
        Cw__JobInfo *row = cw_jobview_info(q->c, s, q->scratch);
        if (!cw_idset_empty(&s->pending))
            row->state = CW__STATE__PENDING;
        add_if(q, row);
    }
    add_elements(q, s, &alive);
    cw_idset_fini(&alive);
}

static bool attempt_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg);

struct attempt_walk {
    struct query *q;
    const struct cw_jobsrc *s;
    const struct cw_idset *ordinals;
    uint32_t only;
    uint64_t last_id;
    uint64_t n;
    bool more;
    uint8_t next[CW_ROW_ATTEMPT_KEY];
};

static bool attempt_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct attempt_walk *w = arg;
    struct query *q = w->q;
    uint64_t id;
    uint32_t attempt;
    if (klen != CW_ROW_ATTEMPT_KEY)
        return true;
    cw_row_attempt_parse(key, &id, &attempt);
    if (id > w->last_id)
        return false;
    if (id < q->after_id || (id == q->after_id && attempt <= q->after_attempt))
        return true;
    if (w->s->is_array &&
        (id == w->s->rec->id || !cw_idset_has(w->ordinals, id - w->s->rec->id - 1)))
        return true;
    if (w->only != 0 && attempt != w->only)
        return true;
    ProtobufCMessage *m;
    struct cw_attempt *live = q->stored ? NULL : cw_model_attempt(q->c->model, id);
    if (live != NULL && live->attempt == attempt)
        m = cw_walk_copy(&live->rec->base, q->scratch);
    else if (cw_row_unpack(&cw__attempt_record__descriptor, val, vlen, q->scratch, &m, NULL) < 0)
        return true;
    const Cw__AttemptRecord *rec = (const Cw__AttemptRecord *)m;
    w->n++;
    if (cw_jobfilter_state(&q->filter, rec->state))
        add(q, cw_jobview_with_attempt(q->c, w->s, rec, q->scratch));
    return !q->full;
}

static void add_attempts(struct query *q, const struct cw_jobsrc *s,
                         const struct cw_idset *ordinals, uint32_t only)
{
    uint64_t first = s->rec->id, last = s->rec->id + (s->is_array ? s->count : 0);
    struct attempt_walk w = {.q = q, .s = s, .ordinals = ordinals, .only = only, .last_id = last};
    uint8_t key[CW_ROW_ATTEMPT_KEY];
    cw_row_attempt_key(key, first > q->after_id ? first : q->after_id, 0);
    cw_store_scan(q->c->store, CW_TABLE_ATTEMPT, key, sizeof key, false, 0, attempt_row, NULL, &w,
                  NULL);
    if (w.n == 0 && !q->full && only == 0 && cw_state_terminal(s->rec->state) &&
        s->rec->id > q->after_id)
        add_if(q, cw_jobview_info(q->c, s, q->scratch)); /* ended without ever starting */
}

static void add_job(struct query *q, const struct cw_jobsrc *s, const struct cw_selector *sel,
                    bool is_element, uint64_t ordinal)
{
    q->spec_len = s->live != NULL ? s->live->spec_len : 0;
    if (!cw_jobfilter_job(&q->filter, s, q->default_partition))
        return;
    struct cw_idset ordinals = {0};
    bool some = sel != NULL && sel->has_indices;
    if (is_element)
        cw_idset_add(&ordinals, ordinal, ordinal);
    else if (s->is_array && sel != NULL)
        cw_jobfilter_ordinals(sel, &s->indices, &ordinals);
    else if (s->is_array && s->count > 0)
        cw_idset_add(&ordinals, 0, s->count - 1);
    if (!s->is_array && some)
        return; /* "12_3" of a plain job */
    if (q->m->attempts)
        add_attempts(q, s, &ordinals, sel != NULL ? sel->attempt : 0);
    else if (!s->is_array)
        add_if(q, cw_jobview_info(q->c, s, q->scratch));
    else if (is_element || some || q->m->expand)
        add_elements(q, s, &ordinals);
    else
        add_collapsed(q, s);
    cw_idset_fini(&ordinals);
}

/* ---- walks ---------------------------------------------------------------------------------- */

static uint64_t last_id_of(const struct cw_jobsrc *s)
{
    return s->rec->id + (s->is_array ? s->count : 0);
}

struct scan {
    struct query *q;
    const struct cw_selector *sel;
    uint64_t last;
};

/* One stored job; what lives is shown from memory. */
static bool stored_job(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct scan *w = arg;
    struct query *q = w->q;
    if (klen != 8)
        return true;
    uint64_t id = cw_store_u64_key(key);
    if (id > w->last) {
        q->end = true;
        return false;
    }
    q->looked++;
    struct cw_jobsrc s;
    struct cw_job *j = q->stored ? NULL : cw_model_job(q->c->model, id);
    if (!both(q) && (cw_row_flags(val, vlen) & CW_ROW_FINAL)) {
        q->next = id + 1;
        return true;
    }
    if (j != NULL && j->id == id)
        cw_jobview_from_live(j, q->scratch, &s);
    else if (cw_jobview_from_row(val, vlen, q->scratch, &s, NULL) < 0) {
        q->next = id + 1;
        return true;
    }
    if (last_id_of(&s) > q->after_id || (q->m->attempts && last_id_of(&s) >= q->after_id))
        add_job(q, &s, w->sel, false, 0);
    cw_jobsrc_fini(&s);
    cw_arena_reset(q->scratch);
    if (!q->full)
        q->next = id + 1;
    return !q->full;
}

static void slice_stored(struct query *q, const struct cw_selector *sel, uint64_t last)
{
    struct scan w = {q, sel, last};
    uint8_t key[8];
    cw_store_key_u64(key, q->next);
    q->looked = 0;
    q->end = false;
    int rc = cw_store_scan(q->c->store, CW_TABLE_JOB, key, sizeof key, false, SLICE_ROWS,
                           stored_job, NULL, &w, NULL);
    if (rc < 0 || q->looked < SLICE_ROWS)
        q->end = true;
}

/* One stored job, going back. Rows of one job are not torn apart: after_id names the job. */
static bool newest_job(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct query *q = arg;
    if (klen != 8)
        return true;
    uint64_t id = cw_store_u64_key(key);
    q->looked++;
    struct cw_jobsrc s;
    struct cw_job *j = q->stored ? NULL : cw_model_job(q->c->model, id);
    bool skip = !both(q) && (cw_row_flags(val, vlen) & CW_ROW_FINAL);
    if (!skip && j != NULL && j->id == id)
        cw_jobview_from_live(j, q->scratch, &s);
    else if (skip || cw_jobview_from_row(val, vlen, q->scratch, &s, NULL) < 0)
        goto next;
    add_job(q, &s, NULL, false, 0);
    cw_jobsrc_fini(&s);
next:
    cw_arena_reset(q->scratch);
    q->next = id - 1;
    return !q->full && q->reply->n_jobs < q->limit && id > 1;
}

static void slice_newest(struct query *q)
{
    uint8_t key[8];
    cw_store_key_u64(key, q->next);
    q->looked = 0;
    q->end = false;
    int rc = cw_store_scan(q->c->store, CW_TABLE_JOB, key, sizeof key, true, SLICE_ROWS, newest_job,
                           NULL, q, NULL);
    if (q->reply->n_jobs >= q->limit)
        q->full = true;
    else if (rc < 0 || q->looked < SLICE_ROWS || q->next == 0)
        q->end = true;
}

static bool live_job(struct cw_job *j, void *arg)
{
    struct query *q = arg;
    uint64_t last = j->id + (j->is_array ? j->count : 0);
    if (j->id < q->next || last <= q->after_id)
        return true;
    const struct cw_partition *p = cw_model_partition(q->c->model, j->partition);
    if (++q->looked > SLICE_ROWS) {
        q->next = j->id;
        q->end = false;
        return false;
    }
    if (!cw_jobfilter_live(&q->filter, j, p != NULL ? p->name : NULL))
        return true;
    if (!j->is_array && !cw_jobfilter_state(&q->filter, j->state))
        return true;
    struct cw_jobsrc s;
    cw_jobview_from_live(j, q->scratch, &s);
    add_job(q, &s, NULL, false, 0);
    cw_jobsrc_fini(&s);
    return !q->full;
}

/* Nearly every job that passed the conditions becomes a row: no scratch copy. */
static void slice_live(struct query *q)
{
    struct cw_arena *scratch = q->scratch;
    q->looked = 0;
    q->end = true;
    q->scratch = q->arena;
    cw_model_each_job_from(q->c->model, q->next, live_job, q);
    q->scratch = scratch;
}

static bool done_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct query *q = arg;
    (void)val, (void)vlen;
    int64_t end_ns;
    uint64_t id;
    uint32_t attempt;
    if (klen != CW_ROW_DONE_KEY)
        return true;
    cw_row_done_parse(key, &end_ns, &id, &attempt);
    if (q->m->filter->has_ended_before_ns && end_ns >= q->m->filter->ended_before_ns) {
        q->end = true;
        return false;
    }
    q->looked++;
    struct cw_jobsrc s;
    if (cw_jobview_find(q->c, id, q->scratch, &s, NULL, NULL, NULL) == 0) {
        Cw__AttemptRecord *rec = NULL;
        bool wanted = cw_jobfilter_job(&q->filter, &s, q->default_partition);
        if (wanted && attempt != 0 &&
            cw_jobview_attempt(q->c, id, attempt, q->scratch, &rec, NULL) == 0) {
            if (cw_jobfilter_state(&q->filter, rec->state))
                add(q, cw_jobview_with_attempt(q->c, &s, rec, q->scratch));
        } else if (wanted && attempt == 0 && !s.is_array &&
                   cw_jobview_attempt(q->c, id, 0, q->scratch, &rec, NULL) == -ENOENT) {
            if (cw_jobfilter_state(&q->filter, s.rec->state))
                add(q, cw_jobview_info(q->c, &s, q->scratch));
        }
        cw_jobsrc_fini(&s);
    }
    cw_arena_reset(q->scratch);
    if (q->full)
        return false;
    q->next_end_ns = end_ns;
    q->next = id;
    q->next_attempt = attempt + 1;
    return true;
}

static void slice_done(struct query *q)
{
    uint8_t key[CW_ROW_DONE_KEY];
    cw_row_done_key(key, q->next_end_ns, q->next, q->next_attempt);
    q->looked = 0;
    q->end = false;
    int rc = cw_store_scan(q->c->store, CW_TABLE_DONE, key, sizeof key, false, SLICE_ROWS, done_row,
                           NULL, q, NULL);
    if (rc < 0 || q->looked < SLICE_ROWS)
        q->end = true;
}

/* Nothing that is looked at is left out: rows need no copy, and garbage is bounded by the page. */
static bool every_element_fits(const struct query *q)
{
    return !q->m->attempts && q->m->filter->n_states + q->m->filter->n_nodes == 0;
}

/* A single id may name an element; ranges and all others are walked by their jobs' rows. */
static void slice_selector(struct query *q)
{
    const struct cw_selector *sel = &q->filter.sel[q->sel];
    q->end = true;
    if (sel->first == sel->last) {
        struct cw_jobsrc s;
        bool is_element;
        uint64_t ordinal;
        struct cw_arena *scratch = q->scratch;
        if (every_element_fits(q))
            q->scratch = q->arena;
        if (cw_jobview_find(q->c, sel->first, q->scratch, &s, &is_element, &ordinal, NULL) == 0) {
            add_job(q, &s, sel, is_element, ordinal);
            cw_jobsrc_fini(&s);
        }
        q->scratch = scratch;
        cw_arena_reset(q->scratch);
    } else {
        if (q->next < sel->first)
            q->next = sel->first;
        slice_stored(q, sel, sel->last);
    }
    if (q->end && !q->full) {
        q->sel++;
        q->next = 0;
        q->end = q->sel >= q->filter.n_sel;
    }
}

static void slice(struct query *q)
{
    if (q->filter.n_sel > 0)
        slice_selector(q);
    else if (q->newest)
        slice_newest(q);
    else if (q->m->attempts)
        slice_done(q);
    else if (both(q) || q->stored)
        slice_stored(q, NULL, UINT64_MAX);
    else
        slice_live(q);
}

/* ---- life of a query ------------------------------------------------------------------------ */

static void query_finish(struct query *q)
{
    q->c->busy--;
    q->reply->has_more = true;
    q->reply->more = q->full;
    q->reply->has_now_ns = true;
    q->reply->now_ns = cw_clock_real_ns();
    if (q->stored)
        cw_answer(q->c, q->call, &q->reply->base);
    else
        cw_answer_after_commit(q->c, q->call, &q->reply->base);
    cw_jobfilter_fini(&q->filter);
    cw_startplan_destroy(q->plan);
    cw_arena_destroy(q->scratch);
    free(q);
}

static void query_step(void *arg)
{
    struct query *q = arg;
    q->stored = q->stored && cw_turn_failing(q->c->turn, NULL);
    if (!q->c->stopping)
        slice(q);
    if (q->full || q->end || q->c->stopping)
        query_finish(q);
    else
        cw_loop_post(q->c->loop, query_step, q);
}

/* Where the page begins. */
static void query_seek(struct query *q)
{
    q->newest = q->m->newest_first && !q->m->attempts && q->filter.n_sel == 0;
    if (q->newest) {
        q->next = q->m->has_after_id ? q->m->after_id - 1 : UINT64_MAX;
        return;
    }
    q->after_id = q->m->has_after_id ? q->m->after_id : 0;
    q->after_attempt = q->m->has_after_attempt ? q->m->after_attempt : 0;
    if (q->m->has_after_id && !q->m->has_after_attempt)
        q->after_attempt = UINT32_MAX;
    if (q->m->attempts && q->filter.n_sel == 0) {
        q->next_end_ns = q->m->filter->has_ended_after_ns ? q->m->filter->ended_after_ns : 0;
        Cw__AttemptRecord *rec = NULL;
        struct cw_jobsrc s;
        if (!q->m->has_after_id)
            return;
        q->next = q->after_id;
        q->next_attempt = q->after_attempt == UINT32_MAX ? UINT32_MAX : q->after_attempt + 1;
        if (q->after_attempt != 0 &&
            cw_jobview_attempt(q->c, q->after_id, q->after_attempt, q->scratch, &rec, NULL) == 0) {
            q->next_end_ns = rec->end_ns;
        } else if (cw_jobview_find(q->c, q->after_id, q->scratch, &s, NULL, NULL, NULL) == 0) {
            q->next_end_ns = s.rec->end_ns;
            cw_jobsrc_fini(&s);
        }
        cw_arena_reset(q->scratch);
        return;
    }
    struct cw_jobsrc s;
    q->next = q->after_id;
    if (q->after_id != 0 &&
        cw_jobview_find(q->c, q->after_id, q->scratch, &s, NULL, NULL, NULL) == 0) {
        q->next = s.rec->id; /* the rest of an array's elements */
        cw_jobsrc_fini(&s);
        cw_arena_reset(q->scratch);
    }
}

void cw_jobwalk_start(struct cw_ctld *c, struct cw_rpc_call *call, const Cw__JobsRequest *m)
{
    struct cw_error err = {0};
    struct query *q = cw_xcalloc(1, sizeof *q);
    q->c = c;
    q->call = call;
    q->m = m;
    int rc = cw_jobfilter_init(&q->filter, m->filter, &err);
    if (rc < 0) {
        cw_answer_failure(c, call, &err);
        free(q);
        return;
    }
    const struct cw_partition *p = cw_model_partition_find(c->model, NULL);
    q->default_partition = p != NULL ? p->name : NULL;
    q->plan = m->has_estimate && m->estimate ? cw_startplan_create(c) : NULL;
    q->arena = cw_rpc_call_arena(call);
    q->scratch = cw_arena_create();
    q->limit = m->has_limit && m->limit > 0 && m->limit < LIMIT_MAX ? m->limit : LIMIT_MAX;
    q->reply = cw_arena_alloc(q->arena, sizeof *q->reply);
    cw__jobs_reply__init(q->reply);
    q->reply->jobs = cw_arena_alloc(q->arena, q->limit * sizeof *q->reply->jobs);
    c->busy++;
    q->stored = cw_turn_failing(c->turn, NULL);
    query_seek(q);
    query_step(q);
}
