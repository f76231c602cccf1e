/* jobview.c: rows for clients. A live job is described from memory (its unchanging part is unpacked
 * into the arena), a finished one from its row; finished elements of an array are looked up by
 * their newest attempt. Test: jobview_test.c. */
#include "ctld/jobview.h"

#include <string.h>

#include "ctld/row.h"
#include "ctld/turn.h"
#include "proto/walk.h"
#include "spec/outcome.h"

/* ---- finding -------------------------------------------------------------------------------- */

void cw_jobsrc_fini(struct cw_jobsrc *s)
{
    cw_idset_fini(&s->indices);
    cw_idset_fini(&s->pending);
    cw_idset_fini(&s->cancelled);
}

static void src_counts(struct cw_jobsrc *ret, const struct cw_job *j)
{
    Cw__JobRecord *r = ret->rec;
    const struct cw_jobarray *v = j->array;
    r->has_count = r->has_n_completed = r->has_n_failed = r->has_n_cancelled = r->has_worst_exit =
        true;
    r->count = j->count;
    r->n_completed = v->n_completed;
    r->n_failed = v->n_failed;
    r->n_cancelled = v->n_cancelled;
    r->worst_exit = v->worst_exit;
    cw_idset_copy(&ret->indices, &v->indices);
    cw_idset_copy(&ret->pending, &v->pending);
    cw_idset_copy(&ret->cancelled, &v->cancelled);
}

void cw_jobview_from_live(struct cw_job *j, struct cw_arena *a, struct cw_jobsrc *ret)
{
    memset(ret, 0, sizeof *ret);
    ProtobufCMessage *m = NULL;
    if (cw_walk_unpack_stored(&cw__job_record__descriptor, j->spec_packed, j->spec_len, a, &m,
                              NULL) < 0)
        abort(); /* we packed it ourselves */
    ret->live = j;
    ret->rec = (Cw__JobRecord *)m;
    ret->rec->id = j->id;
    ret->rec->state = j->state;
    ret->rec->has_held = true;
    ret->rec->held = j->held;
    ret->rec->submit_ns = j->submit_ns;
    ret->is_array = j->is_array;
    ret->count = j->count;
    if (j->is_array)
        src_counts(ret, j);
}

static int parse_set(const char *text, uint64_t max, struct cw_idset *ret, struct cw_error *err)
{
    return text == NULL || text[0] == '\0' ? 0 : cw_idset_parse(text, strlen(text), max, ret, err);
}

int cw_jobview_from_row(const void *val, size_t vlen, struct cw_arena *a, struct cw_jobsrc *ret,
                        struct cw_error *err)
{
    memset(ret, 0, sizeof *ret);
    ProtobufCMessage *m;
    int rc = cw_row_unpack(&cw__job_record__descriptor, val, vlen, a, &m, err);
    if (rc < 0)
        return rc;
    Cw__JobRecord *r = (Cw__JobRecord *)m;
    ret->rec = r;
    ret->is_array = r->spec->array != NULL;
    ret->count = ret->is_array ? r->count : 1;
    if (ret->is_array) {
        rc = parse_set(r->spec->array->indices, UINT64_MAX, &ret->indices, err);
        if (rc == 0)
            rc = parse_set(r->pending, UINT64_MAX, &ret->pending, err);
        if (rc == 0)
            rc = parse_set(r->cancelled, UINT64_MAX, &ret->cancelled, err);
        if (rc < 0)
            cw_jobsrc_fini(ret);
    }
    return rc < 0 ? rc : 0;
}

struct row_copy {
    struct cw_buf val;
    uint64_t id;
    bool found, damaged;
};

static bool row_take(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct row_copy *r = arg;
    if (klen == 8) {
        r->id = cw_store_u64_key(key);
        r->found = true;
        cw_buf_add(&r->val, val, vlen);
    }
    return false;
}

static bool row_bad(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct row_copy *r = arg;
    (void)key, (void)klen, (void)val, (void)vlen;
    r->damaged = true;
    return false;
}

static int find_stored(struct cw_ctld *c, uint64_t id, struct cw_arena *a, struct cw_jobsrc *ret,
                       struct cw_error *err)
{
    struct row_copy r = {0};
    uint8_t key[8];
    cw_store_key_u64(key, id);
    int rc =
        cw_store_scan(c->store, CW_TABLE_JOB, key, sizeof key, true, 1, row_take, row_bad, &r, err);
    if (rc >= 0 && r.damaged)
        rc = cw_fail(err, -EBADMSG, "the record of job %llu is damaged", (unsigned long long)id);
    if (rc >= 0 && !r.found)
        rc = -ENOENT;
    if (rc >= 0)
        rc = cw_jobview_from_row(r.val.data, r.val.len, a, ret, err);
    if (rc >= 0 && id != r.id && !(ret->is_array && id - r.id <= ret->count)) {
        cw_jobsrc_fini(ret);
        rc = -ENOENT;
    }
    cw_buf_fini(&r.val);
    return rc;
}

static bool only_stored(const struct cw_ctld *c)
{
    return cw_turn_failing(c->turn, NULL);
}

int cw_jobview_find(struct cw_ctld *c, uint64_t id, struct cw_arena *a, struct cw_jobsrc *ret,
                    bool *ret_is_element, uint64_t *ret_ordinal, struct cw_error *err)
{
    struct cw_job *j = only_stored(c) ? NULL : cw_model_job(c->model, id);
    int rc = 0;
    if (j != NULL)
        cw_jobview_from_live(j, a, ret);
    else
        rc = find_stored(c, id, a, ret, err);
    if (rc == -ENOENT)
        return cw_fail(err, -ENOENT, "job %llu does not exist", (unsigned long long)id);
    if (rc < 0)
        return rc;
    bool element = ret->is_array && id != ret->rec->id;
    if (ret_is_element != NULL)
        *ret_is_element = element;
    if (ret_ordinal != NULL)
        *ret_ordinal = element ? id - ret->rec->id - 1 : 0;
    return 0;
}

uint64_t cw_jobsrc_element_id(const struct cw_jobsrc *s, uint64_t ordinal)
{
    return s->is_array ? s->rec->id + 1 + ordinal : s->rec->id;
}

/* ---- attempts ------------------------------------------------------------------------------- */

struct attempt_row {
    struct cw_arena *a;
    uint64_t id;
    Cw__AttemptRecord *rec;
};

static bool attempt_take(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct attempt_row *r = arg;
    uint64_t id;
    uint32_t attempt;
    if (klen != CW_ROW_ATTEMPT_KEY)
        return false;
    cw_row_attempt_parse(key, &id, &attempt);
    ProtobufCMessage *m;
    if (id == r->id &&
        cw_row_unpack(&cw__attempt_record__descriptor, val, vlen, r->a, &m, NULL) == 0)
        r->rec = (Cw__AttemptRecord *)m;
    return false;
}

int cw_jobview_attempt(struct cw_ctld *c, uint64_t element_id, uint32_t attempt, struct cw_arena *a,
                       Cw__AttemptRecord **ret, struct cw_error *err)
{
    struct cw_attempt *live = only_stored(c) ? NULL : cw_model_attempt(c->model, element_id);
    if (live != NULL && (attempt == 0 || attempt == live->attempt)) {
        *ret = (Cw__AttemptRecord *)cw_walk_copy(&live->rec->base, a);
        return 0;
    }
    struct attempt_row r = {a, element_id, NULL};
    uint8_t key[CW_ROW_ATTEMPT_KEY];
    cw_row_attempt_key(key, element_id, attempt == 0 ? UINT32_MAX : attempt);
    int rc = cw_store_scan(c->store, CW_TABLE_ATTEMPT, key, sizeof key, true, 1, attempt_take, NULL,
                           &r, err);
    if (rc < 0)
        return rc;
    if (r.rec == NULL || (attempt != 0 && r.rec->attempt != attempt))
        return cw_fail(err, -ENOENT, "job %llu has no such attempt",
                       (unsigned long long)element_id);
    *ret = r.rec;
    return 0;
}

#define STEPS_MAX 1000u /* of one attempt in one answer: the first ones */

struct step_rows {
    struct cw_arena *a;
    const uint8_t *prefix; /* of the attempt */
    Cw__StepRecord **v;
    size_t n;
};

static bool step_take(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct step_rows *r = arg;
    ProtobufCMessage *m;
    if (klen != CW_ROW_STEP_KEY || memcmp(key, r->prefix, CW_ROW_ATTEMPT_KEY) != 0)
        return false;
    if (cw_row_unpack(&cw__step_record__descriptor, val, vlen, r->a, &m, NULL) < 0)
        return true;
    if (r->v == NULL)
        r->v = cw_arena_alloc(r->a, STEPS_MAX * sizeof(Cw__StepRecord *));
    r->v[r->n++] = (Cw__StepRecord *)m;
    ((Cw__StepRecord *)m)->has_request_key = false; /* a retry's secret */
    return r->n < STEPS_MAX;
}

void cw_jobview_steps(struct cw_ctld *c, Cw__JobInfo *i, struct cw_arena *a)
{
    uint8_t key[CW_ROW_STEP_KEY];
    struct step_rows r = {.a = a, .prefix = key};
    cw_row_step_key(key, i->attempt->id, i->attempt->attempt, 0);
    cw_store_scan(c->store, CW_TABLE_STEP, key, sizeof key, false, STEPS_MAX, step_take, NULL, &r,
                  NULL);
    i->steps = r.v;
    i->n_steps = r.n;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static Cw__JobInfo *info_create(const struct cw_jobsrc *s, struct cw_arena *a)
{
    Cw__JobInfo *i = cw_arena_alloc(a, sizeof *i);
    cw__job_info__init(i);
    i->id = s->rec->id;
    i->spec = s->rec->spec;
    i->owner = s->rec->owner;
    i->state = s->rec->state;
    i->submit_ns = s->rec->submit_ns;
    return i;
}

static void info_reason(struct cw_ctld *c, Cw__JobInfo *i, const struct cw_jobsrc *s,
                        struct cw_arena *a)
{
    if (i->state == CW__STATE__PENDING && only_stored(c))
        i->reason = cw_arena_strdup(a, cw_reason_word(CW_REASON_DISK));
    else if (i->state == CW__STATE__PENDING && s->live != NULL)
        i->reason = cw_arena_strdup(a, cw_reason_word(cw_job_reason(s->live)));
    else if (cw_state_terminal(i->state) && s->rec->reason != NULL)
        i->reason = s->rec->reason;
}

/* Which has no attempt that could say why. */
static int exit_without_attempt(const Cw__JobInfo *i, const Cw__JobRecord *rec)
{
    Cw__AttemptRecord none = CW__ATTEMPT_RECORD__INIT;
    none.state = i->state;
    none.has_cause = true;
    none.cause = CW__CAUSE__CAUSE_DEPENDENCY;
    bool never = rec->reason != NULL && strcmp(rec->reason, CW_OUTCOME_DEPENDENCY) == 0;
    return cw_outcome_exit_status_job(i->state, never ? &none : NULL);
}

static void info_exit(Cw__JobInfo *i, const Cw__JobRecord *rec)
{
    if (!cw_state_terminal(i->state))
        return;
    i->has_exit_status = true;
    i->exit_status = i->attempt != NULL ? cw_outcome_exit_status_job(i->state, i->attempt)
                                        : exit_without_attempt(i, rec);
}

/* Which array indices these ordinals have: walks both sorted sets once. */
static char *indices_of(const struct cw_idset *indices, const struct cw_idset *ordinals,
                        struct cw_arena *a)
{
    struct cw_idset out = {0};
    uint64_t base = 0;
    size_t o = 0;
    for (size_t i = 0; i < indices->n && o < ordinals->n; i++) {
        uint64_t len = indices->r[i].last - indices->r[i].first + 1, end = base + len - 1;
        while (o < ordinals->n && ordinals->r[o].first <= end) {
            uint64_t first = ordinals->r[o].first > base ? ordinals->r[o].first : base;
            uint64_t last = ordinals->r[o].last < end ? ordinals->r[o].last : end;
            cw_idset_add(&out, indices->r[i].first + (first - base),
                         indices->r[i].first + (last - base));
            if (ordinals->r[o].last > end)
                break;
            o++;
        }
        base += len;
    }
    struct cw_buf text = {0};
    cw_idset_format(&out, &text);
    char *copy = cw_arena_strdup(a, cw_buf_str(&text));
    cw_buf_fini(&text);
    cw_idset_fini(&out);
    return copy;
}

static void info_array(Cw__JobInfo *i, const struct cw_jobsrc *s, struct cw_arena *a)
{
    i->has_count = i->has_n_completed = i->has_n_failed = i->has_n_cancelled = true;
    i->count = s->count;
    i->n_completed = s->rec->n_completed;
    i->n_failed = s->rec->n_failed;
    i->n_cancelled = s->rec->n_cancelled;
    if (s->live != NULL) {
        i->has_n_running = true;
        i->n_running = s->live->array->n_running;
    }
    if (!cw_idset_empty(&s->pending))
        i->pending_indices = indices_of(&s->indices, &s->pending, a);
}

static void info_end(Cw__JobInfo *i, const struct cw_jobsrc *s)
{
    if (!cw_state_terminal(i->state))
        return;
    i->has_end_ns = s->rec->has_end_ns;
    i->end_ns = s->rec->end_ns;
}

Cw__JobInfo *cw_jobview_info(struct cw_ctld *c, const struct cw_jobsrc *s, struct cw_arena *a)
{
    Cw__JobInfo *i = info_create(s, a);
    info_end(i, s);
    info_reason(c, i, s, a);
    if (s->is_array) {
        info_array(i, s, a);
        if (cw_state_terminal(i->state)) {
            i->has_exit_status = true;
            i->exit_status = (int32_t)s->rec->worst_exit;
            if (i->exit_status == 0 && i->state != CW__STATE__COMPLETED)
                i->exit_status = exit_without_attempt(i, s->rec);
        }
        return i;
    }
    bool waits_first_time =
        s->live != NULL && i->state == CW__STATE__PENDING && s->live->next_attempt <= 1;
    if (!waits_first_time)
        cw_jobview_attempt(c, s->rec->id, 0, a, &i->attempt, NULL);
    info_exit(i, s->rec);
    return i;
}

Cw__State cw_jobview_element_state(struct cw_ctld *c, const struct cw_jobsrc *s, uint64_t ordinal,
                                   bool *ret_known)
{
    *ret_known = true;
    if (!s->is_array)
        return s->rec->state;
    if (cw_idset_has(&s->pending, ordinal))
        return CW__STATE__PENDING;
    if (cw_idset_has(&s->cancelled, ordinal))
        return CW__STATE__CANCELLED;
    struct cw_attempt *at =
        s->live == NULL ? NULL : cw_model_attempt(c->model, cw_jobsrc_element_id(s, ordinal));
    if (at != NULL)
        return at->requeue ? CW__STATE__PENDING : at->rec->state;
    *ret_known = false;
    return CW__STATE__PENDING;
}

static void info_is_element(Cw__JobInfo *i, const struct cw_jobsrc *s, uint64_t ordinal)
{
    if (!s->is_array)
        return;
    i->id = cw_jobsrc_element_id(s, ordinal);
    i->has_array_id = i->has_index = true;
    i->array_id = s->rec->id;
    cw_idset_nth(&s->indices, ordinal, &i->index);
}

Cw__JobInfo *cw_jobview_element(struct cw_ctld *c, const struct cw_jobsrc *s, uint64_t ordinal,
                                struct cw_arena *a)
{
    if (!s->is_array)
        return cw_jobview_info(c, s, a);
    Cw__JobInfo *i = info_create(s, a);
    info_is_element(i, s, ordinal);
    bool known;
    i->state = cw_jobview_element_state(c, s, ordinal, &known);
    if (!known || (i->state != CW__STATE__PENDING && i->state != CW__STATE__CANCELLED))
        cw_jobview_attempt(c, i->id, 0, a, &i->attempt, NULL);
    if (!known && i->attempt != NULL)
        i->state = i->attempt->state;
    if (cw_state_terminal(i->state) && i->attempt != NULL && i->attempt->has_end_ns) {
        i->has_end_ns = true;
        i->end_ns = i->attempt->end_ns;
    }
    info_reason(c, i, s, a);
    info_exit(i, s->rec);
    return i;
}

Cw__JobInfo *cw_jobview_with_attempt(struct cw_ctld *c, const struct cw_jobsrc *s,
                                     const Cw__AttemptRecord *rec, struct cw_arena *a)
{
    (void)c;
    Cw__JobInfo *i = info_create(s, a);
    info_is_element(i, s, s->is_array ? rec->id - s->rec->id - 1 : 0);
    i->attempt = (Cw__AttemptRecord *)rec;
    i->state = rec->state;
    i->has_end_ns = rec->has_end_ns;
    i->end_ns = rec->end_ns;
    info_exit(i, s->rec);
    return i;
}
