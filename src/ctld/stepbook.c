/* stepbook.c: the steps of live attempts in memory, one set per attempt; see stepbook.h. */
#include "ctld/stepbook.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/table.h"
#include "ctld/deadline.h"
#include "ctld/effect.h"
#include "ctld/reqkey.h"
#include "ctld/row.h"
#include "ctld/stephold.h"
#include "ctld/stepmerge.h"
#include "ctld/turn.h"
#include "model/node.h"
#include "proto/walk.h"
#include "spec/outcome.h"

struct set { /* of one attempt */
    uint64_t id;
    uint32_t attempt, next;
    struct cw_list steps;
    size_t n;
};
struct step {
    struct cw_list on_set, on_unstarted;
    struct set *set;
    Cw__StepRecord *rec; /* heap */
    int64_t begin_by_ns;
};
struct cw_stepbook {
    struct cw_ctld *c;
    struct cw_idtable *sets;   /* by element id */
    struct cw_list unstarted;  /* in the order of begin_by_ns */
};

struct cw_stepbook *cw_stepbook_create(struct cw_ctld *c)
{
    struct cw_stepbook *b = cw_xcalloc(1, sizeof *b);
    b->c = c;
    b->sets = cw_idtable_create();
    cw_list_init(&b->unstarted);
    return b;
}

static void step_destroy(struct step *s)
{
    cw_list_remove(&s->on_set);
    cw_list_remove(&s->on_unstarted);
    s->set->n--;
    cw__step_record__free_unpacked(s->rec, NULL);
    free(s);
}

static void set_destroy(struct cw_stepbook *b, struct set *s)
{
    cw_list_each_safe (p, &s->steps)
        step_destroy(cw_list_entry(p, struct step, on_set));
    cw_idtable_remove(b->sets, s->id);
    free(s);
}

static bool each_set_destroy(uint64_t key, void *value, void *arg)
{
    (void)key;
    set_destroy(arg, value);
    return true;
}

void cw_stepbook_destroy(struct cw_stepbook *b)
{
    if (b == NULL)
        return;
    cw_idtable_each(b->sets, each_set_destroy, b);
    cw_idtable_destroy(b->sets);
    free(b);
}

static struct set *set_find(struct cw_stepbook *b, uint64_t id, uint32_t attempt)
{
    struct set *s = cw_idtable_find(b->sets, id);
    return s != NULL && s->attempt == attempt ? s : NULL;
}

/* An older attempt's set is gone: it was dropped when that attempt ended. */
static struct set *set_get(struct cw_stepbook *b, uint64_t id, uint32_t attempt)
{
    struct set *s = set_find(b, id, attempt);
    if (s != NULL)
        return s;
    s = cw_xcalloc(1, sizeof *s);
    s->id = id;
    s->attempt = attempt;
    cw_list_init(&s->steps);
    struct set *old = cw_idtable_find(b->sets, id);
    if (old != NULL)
        set_destroy(b, old);
    cw_idtable_set(b->sets, id, s);
    return s;
}

static struct step *step_find(struct set *set, uint32_t number)
{
    cw_list_each (p, &set->steps) {
        struct step *s = cw_list_entry(p, struct step, on_set);
        if (s->rec->step == number)
            return s;
    }
    return NULL;
}

static struct step *step_add(struct cw_stepbook *b, struct set *set, const Cw__StepRecord *rec)
{
    struct step *s = cw_xcalloc(1, sizeof *s);
    size_t n = cw__step_record__get_packed_size(rec);
    cw_autofree uint8_t *p = cw_xmalloc(n + 1);
    s->set = set;
    s->rec = cw__step_record__unpack(NULL, cw__step_record__pack(rec, p), p);
    cw_list_add_tail(&set->steps, &s->on_set);
    set->n++;
    if (rec->n_started == 0 && rec->n_ended == 0) {
        s->begin_by_ns = cw_clock_real_ns() + CW_STEPBOOK_PATIENCE_S * CW_NS_PER_S;
        cw_list_add_tail(&b->unstarted, &s->on_unstarted);
        cw_deadline_touch(b->c->deadline, s->begin_by_ns);
    }
    return s;
}

/* ---- rows and events ------------------------------------------------------------------------ */

static void put(struct cw_stepbook *b, const Cw__StepRecord *rec)
{
    uint8_t key[CW_ROW_STEP_KEY];
    cw_row_step_key(key, rec->id, rec->attempt, rec->step);
    cw_row_put(cw_turn_batch(b->c->turn), CW_TABLE_STEP, key, sizeof key,
               cw_state_terminal(rec->state) ? CW_ROW_FINAL : 0, &rec->base);
}

static void tell(struct cw_stepbook *b, const struct step *s, const char *event)
{
    const Cw__StepRecord *r = s->rec;
    struct cw_effect e = {.kind = CW_EFFECT_EVENT};
    e.attempt = cw_model_attempt_numbered(b->c->model, r->id, r->attempt);
    if (e.attempt == NULL)
        return;
    e.node = e.attempt->parts[0].node;
    e.job = e.attempt->job;
    snprintf(e.event, sizeof e.event, "%s", event);
    cw_stepmerge_text(r, e.text, sizeof e.text);
    cw_effects_on(&e, b->c->effects);
}

static void finish(struct cw_stepbook *b, struct step *s)
{
    put(b, s->rec);
    tell(b, s, "step-end");
    step_destroy(s);
}

/* ---- adding --------------------------------------------------------------------------------- */

static void holds_of(struct set *set, const struct cw_attempt *at, struct cw_stephold *h)
{
    cw_stephold_init(h, at->rec);
    cw_list_each (p, &set->steps)
        cw_stephold_add(h, cw_list_entry(p, struct step, on_set)->rec);
}

/* "step 12.3 (mpirun) has cores 0-3 of n1" for each that keeps something. */
static char *who_has(const struct set *set, const char *id, struct cw_arena *a)
{
    cw_autobuf struct cw_buf b = {0};
    cw_list_each (p, &set->steps) {
        const Cw__StepRecord *r = cw_list_entry(p, struct step, on_set)->rec;
        if (r->cores == NULL || b.len > 2000)
            continue;
        cw_buf_addf(&b, "%sstep %s.%u (%s) has cores %s%s%s", b.len > 0 ? ", " : "", id, r->step,
                    r->name != NULL ? r->name : "?", r->cores, r->gpus != NULL ? ", GPUs " : "",
                    r->gpus != NULL ? r->gpus : "");
    }
    return cw_arena_strdup(a, cw_buf_str(&b));
}

/* As much of it as is known before a node says anything. */
static Cw__StepRecord *make_record(const struct set *set, const struct cw_attempt *at,
                                   const Cw__StepSpec *spec, const struct cw_steplayout *l,
                                   const uint8_t key[16], struct cw_arena *a)
{
    Cw__StepRecord *r = cw_arena_alloc(a, sizeof *r);
    cw__step_record__init(r);
    r->id = set->id;
    r->attempt = set->attempt;
    r->step = set->next;
    r->name = spec->name != NULL ? spec->name : spec->n_argv > 0 ? spec->argv[0] : (char *)"";
    const char *slash = strrchr(r->name, '/');
    if (slash != NULL && slash[1] != '\0')
        r->name += slash + 1 - r->name;
    r->has_ntasks = true;
    r->ntasks = l->ntasks;
    r->nodes = cw_arena_alloc(a, (l->n_nodes + 1) * sizeof(char *));
    for (uint32_t i = 0; i < l->n_nodes; i++)
        r->nodes[r->n_nodes++] = cw_steplayout_grant(at->rec, l->nodes[i].job_node)->node;
    r->state = CW__STATE__STARTING;
    r->has_create_ns = true;
    r->create_ns = cw_clock_real_ns();
    r->has_request_key = true;
    r->request_key = (ProtobufCBinaryData){16, cw_arena_alloc(a, 16)};
    memcpy(r->request_key.data, key, 16);
    r->has_exec = r->exec = spec->has_exec && spec->exec;
    if (spec->has_exact && spec->exact && !r->exec)
        cw_stephold_write(l, r, spec->has_gpus && spec->gpus > 0, a);
    return r;
}

/* The same step again: as its row says it was laid out. */
static int again(struct cw_stepbook *b, struct cw_attempt *at, const struct cw_stepask *ask,
                 uint64_t id, uint64_t number, struct cw_arena *a,
                 struct cw_steplayout *ret_layout, uint32_t *ret_step, struct cw_error *err)
{
    if (id != at->id || number >> 32 != at->attempt)
        return cw_fail(err, -EINVAL, "this request key belongs to another request");
    struct set *set = set_find(b, at->id, at->attempt);
    struct step *s = set != NULL ? step_find(set, (uint32_t)number) : NULL;
    if (s == NULL)
        return cw_fail(err, -EINVAL, "step %s.%u has ended", ask->id, (uint32_t)number);
    struct cw_stephold h;
    cw_stephold_init(&h, at->rec);
    if (s->rec->cores != NULL)
        cw_stephold_all_but(&h, s->rec);
    cw_autobuf struct cw_buf names = {0};
    for (size_t i = 0; i < s->rec->n_nodes; i++)
        cw_buf_addf(&names, "%s%s", i > 0 ? "," : "", s->rec->nodes[i]);
    Cw__StepSpec spec = *ask->spec;
    spec.has_ntasks = true;
    spec.ntasks = s->rec->ntasks;
    spec.has_nodes = false;
    spec.nodelist = (char *)cw_buf_str(&names);
    struct cw_stepask same = *ask;
    same.spec = &spec;
    same.held_cores = h.cores;
    same.held_gpus = h.gpus;
    same.n_held = h.n;
    int rc = cw_steplayout_make(&same, a, ret_layout, err);
    cw_stephold_fini(&h);
    *ret_step = s->rec->step;
    return rc;
}

static int check_room(const struct set *set, const char *id, struct cw_error *err)
{
    if (set->n >= CW_STEPBOOK_LIVE_MAX)
        return cw_fail(err, -EAGAIN, "job %s has %zu steps at once, more than %u are not allowed",
                       id, set->n, CW_STEPBOOK_LIVE_MAX);
    if (set->next >= CW_STEPBOOK_NUMBER_MAX)
        return cw_fail(err, -EINVAL, "job %s has had %u steps, more are not allowed", id,
                       set->next);
    return 0;
}

int cw_stepbook_add(struct cw_stepbook *b, struct cw_attempt *at, const char *id,
                    const Cw__JobSpec *job, const Cw__StepSpec *spec, const uint8_t key[16],
                    struct cw_arena *a, struct cw_steplayout *ret_layout, uint32_t *ret_step,
                    char **ret_busy, struct cw_error *err)
{
    struct cw_stepask ask = {.id = id, .rec = at->rec, .job = job, .spec = spec};
    uint64_t known_id, known;
    int rc = cw_reqkeys_find(b->c->reqkeys, at->job->uid, key, &known_id, &known, err);
    if (rc < 0)
        return rc;
    if (rc == 1)
        return again(b, at, &ask, known_id, known, a, ret_layout, ret_step, err);
    struct set *set = set_get(b, at->id, at->attempt);
    rc = check_room(set, id, err);
    if (rc < 0)
        return rc;
    struct cw_stephold h;
    holds_of(set, at, &h);
    ask.held_cores = h.cores;
    ask.held_gpus = h.gpus;
    ask.n_held = h.n;
    rc = cw_steplayout_make(&ask, a, ret_layout, err);
    cw_stephold_fini(&h);
    if (rc == -EBUSY)
        *ret_busy = who_has(set, id, a);
    if (rc < 0)
        return rc;
    Cw__StepRecord *rec = make_record(set, at, spec, ret_layout, key, a);
    *ret_step = set->next++;
    put(b, step_add(b, set, rec)->rec);
    cw_reqkeys_put(b->c->reqkeys, at->job->uid, key, at->id,
                   (uint64_t)at->attempt << 32 | rec->step);
    return 0;
}

/* ---- what the nodes say --------------------------------------------------------------------- */

void cw_stepbook_report(struct cw_stepbook *b, const struct cw_node *n, const Cw__StepReport *r)
{
    struct set *set = r->step != NULL ? set_find(b, r->step->id, r->step->attempt) : NULL;
    struct step *s = set != NULL ? step_find(set, r->step->step) : NULL;
    if (s == NULL) {
        cw_log_debug("node %s: report of a step that is not known", n->name);
        return;
    }
    enum cw_stepmerge_news news = cw_stepmerge(s->rec, n->name, r, cw_clock_real_ns());
    if (news == CW_STEPMERGE_NOTHING)
        return;
    cw_list_remove(&s->on_unstarted);
    if (news == CW_STEPMERGE_ENDED) {
        finish(b, s);
        return;
    }
    put(b, s->rec);
    if (news == CW_STEPMERGE_STARTED)
        tell(b, s, "step-start");
}

void cw_stepbook_attempt_ended(struct cw_stepbook *b, const struct cw_attempt *at)
{
    struct set *set = set_find(b, at->id, at->attempt);
    if (set == NULL)
        return;
    cw_list_each_safe (p, &set->steps) {
        struct step *s = cw_list_entry(p, struct step, on_set);
        cw_stepmerge_close(s->rec, at->rec->cause,
                           at->rec->state == CW__STATE__COMPLETED ? CW__STATE__CANCELLED
                                                                  : at->rec->state,
                           NULL, at->rec->end_ns);
        finish(b, s);
    }
    set_destroy(b, set);
}

int64_t cw_stepbook_due(struct cw_stepbook *b, int64_t now_ns)
{
    cw_list_each_safe (p, &b->unstarted) {
        struct step *s = cw_list_entry(p, struct step, on_unstarted);
        if (s->begin_by_ns > now_ns)
            return s->begin_by_ns;
        cw_stepmerge_close(s->rec, CW__CAUSE__CAUSE_CANCEL, CW__STATE__CANCELLED,
                           "its command never began it", now_ns);
        finish(b, s);
    }
    return INT64_MAX;
}

/* ---- the store ------------------------------------------------------------------------------ */

int cw_stepbook_find(struct cw_stepbook *b, uint64_t id, uint32_t attempt, uint32_t step,
                     struct cw_arena *a, Cw__StepRecord **ret, struct cw_error *err)
{
    uint8_t key[CW_ROW_STEP_KEY];
    ProtobufCMessage *m;
    struct set *set = set_find(b, id, attempt);
    struct step *s = set != NULL ? step_find(set, step) : NULL;
    cw_autobuf struct cw_buf packed = {0};
    if (s != NULL) {
        cw_walk_pack(&s->rec->base, &packed);
        int rc = cw_walk_unpack_stored(&cw__step_record__descriptor, packed.data, packed.len, a,
                                       &m, err);
        if (rc == 0)
            *ret = (Cw__StepRecord *)m;
        return rc;
    }
    cw_row_step_key(key, id, attempt, step);
    int rc = cw_row_get(b->c->store, CW_TABLE_STEP, key, sizeof key, &cw__step_record__descriptor,
                        a, &m, err);
    if (rc == 0)
        *ret = (Cw__StepRecord *)m;
    return rc;
}

int cw_stepbook_restore(struct cw_stepbook *b, uint64_t id, uint32_t attempt, uint32_t step,
                        const Cw__StepRecord *rec)
{
    const struct cw_attempt *at = cw_model_attempt_numbered(b->c->model, id, attempt);
    if (at == NULL || cw_state_terminal(at->state))
        return rec != NULL ? -ESTALE : 0;
    struct set *set = set_get(b, id, attempt);
    if (step >= set->next)
        set->next = step + 1;
    if (rec != NULL)
        step_add(b, set, rec);
    return 0;
}
