/* req_events.c: the history, page by page, and what comes next. The stored rows behind the cursor
 * are looked at in slices on the loop; at their end the call becomes a follower (eventlog.h). Users
 * see the events of their own jobs, administrators all. Only stored rows are told, so no answer has
 * to wait for a commit. */
#include "ctld/requests.h"

#include "base/mem.h"
#include "ctld/answer.h"
#include "ctld/eventlog.h"
#include "ctld/jobfilter.h"
#include "ctld/row.h"
#include "ctld/users.h"
#include "proto/walk.h"

#define SLICE_ROWS 2000u
#define PAGE_BYTES_MAX (800u * 1024u)
#define IDS_MAX 10000u

struct history {
    struct cw_ctld *c;
    struct cw_rpc_call *call;
    const Cw__EventsRequest *m;
    struct cw_eventsel sel;
    Cw__EventsReply *reply;
    struct cw_arena *arena, *scratch;
    size_t limit, bytes;
    uint64_t cursor;
    size_t looked;
    bool full, end;
};

/* ---- which jobs ----------------------------------------------------------------------------- */

static int add_elements(const struct cw_jobsrc *s, const struct cw_selector *sel, const char *text,
                        struct cw_idset *ids, struct cw_error *err)
{
    struct cw_idset ordinals = {0};
    if (!s->is_array || !cw_jobfilter_ordinals(sel, &s->indices, &ordinals))
        return cw_fail(err, -ENOENT, "job %s does not exist", text);
    for (size_t r = 0; r < ordinals.n; r++)
        cw_idset_add(ids, cw_jobsrc_element_id(s, ordinals.r[r].first),
                     cw_jobsrc_element_id(s, ordinals.r[r].last));
    cw_idset_fini(&ordinals);
    return 0;
}

/* A job, an array with its elements, some of them, or a range of jobs. */
static int add_selector(struct history *h, const char *text, struct cw_error *err)
{
    struct cw_selector sel = {0};
    struct cw_jobsrc s;
    bool is_element;
    int rc = cw_selector_parse(text, &sel, err);
    if (rc < 0)
        return rc;
    struct cw_idset *ids = &h->sel.ids;
    rc = cw_jobview_find(h->c, sel.last, h->scratch, &s, &is_element, NULL, err);
    if (rc == -ENOENT && sel.first != sel.last) {
        cw_idset_add(ids, sel.first, sel.last);
        rc = 0;
    } else if (rc == 0) {
        if (sel.first == sel.last && !h->sel.all && s.rec->owner->uid != h->sel.uid)
            rc = cw_fail(err, -ENOENT, "job %s does not exist", text);
        else if (sel.has_indices)
            rc = add_elements(&s, &sel, text, ids, err);
        else
            cw_idset_add(ids, sel.first, sel.last + (s.is_array && !is_element ? s.count : 0));
        cw_jobsrc_fini(&s);
    }
    cw_arena_reset(h->scratch);
    cw_selector_fini(&sel);
    return rc;
}

/* ---- where to begin ------------------------------------------------------------------------- */

struct probe {
    uint64_t seq;
    int64_t time_ns;
    bool found;
    struct cw_arena *arena;
};

static bool probe_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct probe *p = arg;
    ProtobufCMessage *m;
    if (klen != 8 || cw_row_unpack(&cw__event_record__descriptor, val, vlen, p->arena, &m, NULL) < 0)
        return true;
    p->seq = cw_store_u64_key(key);
    p->time_ns = ((const Cw__EventRecord *)m)->time_ns;
    p->found = true;
    return false;
}

static bool probe_at(struct history *h, uint64_t seq, struct probe *ret)
{
    uint8_t key[8];
    *ret = (struct probe){.arena = h->scratch};
    cw_store_key_u64(key, seq);
    cw_store_scan(h->c->store, CW_TABLE_EVENT, key, sizeof key, false, 16, probe_row, NULL, ret,
                  NULL);
    cw_arena_reset(h->scratch);
    return ret->found;
}

/* The event behind which those since then begin: numbers and times rise together, so halving
 * finds it. */
static uint64_t seek_time(struct history *h, int64_t since_ns)
{
    struct probe p;
    uint64_t low, high = cw_eventlog_committed(h->c->eventlog);
    if (!probe_at(h, 0, &p) || p.time_ns >= since_ns)
        return 0;
    low = p.seq; /* is older */
    while (low < high) {
        uint64_t mid = low + (high - low + 1) / 2;
        if (probe_at(h, mid, &p) && p.time_ns < since_ns)
            low = p.seq > mid ? p.seq : mid;
        else
            high = mid - 1;
    }
    return low;
}

/* ---- the walk ------------------------------------------------------------------------------- */

static bool event_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct history *h = arg;
    ProtobufCMessage *m;
    if (klen != 8)
        return true;
    h->looked++;
    uint64_t seq = cw_store_u64_key(key);
    if (cw_row_unpack(&cw__event_record__descriptor, val, vlen, h->scratch, &m, NULL) == 0 &&
        cw_eventsel_match(&h->sel, (const Cw__EventRecord *)m)) {
        if (h->reply->n_events >= h->limit || h->bytes + vlen > PAGE_BYTES_MAX) {
            h->full = true;
            return false;
        }
        h->bytes += vlen + 8;
        h->reply->events[h->reply->n_events++] =
            (Cw__EventRecord *)cw_walk_copy(m, h->arena);
    }
    cw_arena_reset(h->scratch);
    h->cursor = seq;
    return true;
}

static void history_free(struct history *h)
{
    h->c->busy--;
    cw_idset_fini(&h->sel.ids);
    cw_arena_destroy(h->scratch);
    free(h);
}

static void history_finish(struct history *h)
{
    struct cw_error err = {0};
    bool wait = h->end && h->reply->n_events == 0 && h->m->wait_ms > 0 && !h->c->stopping;
    if (!wait) {
        h->reply->last_seq = h->cursor;
        h->reply->has_more = true;
        h->reply->more = !h->end;
        cw_answer_now(h->call, &h->reply->base);
    } else if (cw_eventlog_follow(h->c->eventlog, h->call, &h->sel, h->cursor, h->limit,
                                  h->m->wait_ms, &err) < 0) {
        cw_answer_failure(h->c, h->call, &err);
    }
    history_free(h);
}

static void history_step(void *arg)
{
    struct history *h = arg;
    uint8_t key[8];
    cw_store_key_u64(key, h->cursor + 1);
    h->looked = 0;
    int rc = cw_store_scan(h->c->store, CW_TABLE_EVENT, key, sizeof key, false, SLICE_ROWS,
                           event_row, NULL, h, NULL);
    h->end = !h->full && (rc < 0 || h->looked < SLICE_ROWS);
    if (h->full || h->end || h->c->stopping)
        history_finish(h);
    else
        cw_loop_post(h->c->loop, history_step, h);
}

static int history_begin(struct history *h, struct cw_error *err)
{
    const Cw__EventsRequest *m = h->m;
    uint64_t newest = cw_eventlog_noted(h->c->eventlog);
    if (m->n_ids > IDS_MAX)
        return cw_fail(err, -E2BIG, "%zu jobs in one request, at most %u are allowed", m->n_ids,
                       IDS_MAX);
    if (m->has_after_seq && m->after_seq > newest)
        return cw_fail(err, -ERANGE, "event %llu has not happened, the newest is %llu",
                       (unsigned long long)m->after_seq, (unsigned long long)newest);
    h->sel.has_ids = m->n_ids > 0;
    for (size_t i = 0; i < m->n_ids; i++) {
        int rc = add_selector(h, m->ids[i], err);
        if (rc < 0)
            return rc;
    }
    h->cursor = m->has_after_seq ? m->after_seq
                : m->has_since_ns ? seek_time(h, m->since_ns)
                                      : cw_eventlog_committed(h->c->eventlog);
    return 0;
}

void cw_req_events(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    const Cw__EventsRequest *m = (const Cw__EventsRequest *)msg;
    const struct cw_identity *who = cw_rpc_call_identity(call);
    struct cw_error err = {0};
    struct history *h = cw_xcalloc(1, sizeof *h);
    *h = (struct history){.c = c, .call = call, .m = m, .arena = cw_rpc_call_arena(call)};
    h->scratch = cw_arena_create();
    h->limit = m->limit > 0 && m->limit < CW_EVENTLOG_PAGE_MAX ? m->limit : CW_EVENTLOG_PAGE_MAX;
    h->sel.uid = who->uid;
    h->sel.all = cw_users_is_admin(c, who);
    h->sel.kinds = m->kinds;
    h->sel.n_kinds = m->n_kinds;
    h->reply = cw_arena_alloc(h->arena, sizeof *h->reply);
    cw__events_reply__init(h->reply);
    h->reply->events = cw_arena_alloc(h->arena, h->limit * sizeof *h->reply->events);
    c->busy++;
    if (history_begin(h, &err) < 0) {
        cw_answer_failure(c, call, &err);
        history_free(h);
        return;
    }
    history_step(h);
}
