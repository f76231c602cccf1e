/* req_cancel.c: cancels or signals. Named jobs get a note each when there is nothing to do; a
 * filter without names touches only what the caller may touch. Somebody else's job answers like one
 * that does not exist. */
#include "ctld/requests.h"

#include "base/clock.h"
#include "ctld/answer.h"
#include "ctld/jobfilter.h"
#include "ctld/users.h"
#include "model/node.h"
#include "spec/outcome.h"

#define NOTES_MAX 1000u

struct cancel {
    struct cw_ctld *c;
    const Cw__CancelRequest *m;
    const struct cw_identity *who;
    struct cw_jobfilter filter;
    struct cw_arena *arena;
    struct cw_arena *scratch;
    Cw__CancelReply *reply;
};

static void note(struct cancel *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct cancel *x, const char *fmt, ...)
{
    if (x->reply->n_notes >= NOTES_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    cw_autofree char *text = cw_xvasprintf(fmt, ap);
    va_end(ap);
    x->reply->notes[x->reply->n_notes++] = cw_arena_strdup(x->arena, text);
}

/* Of an array: the elements whose state was asked for. */
static void narrow_by_state(struct cancel *x, const struct cw_job *j, struct cw_idset *set)
{
    bool on_nodes = x->filter.msg->n_nodes > 0; /* what waits is on none */
    if (x->filter.msg->n_states == 0 && !on_nodes)
        return;
    struct cw_idset out = {0};
    if (!on_nodes && cw_jobfilter_state(&x->filter, CW__STATE__PENDING))
        for (size_t r = 0; r < j->array->pending.n; r++)
            for (uint64_t k = j->array->pending.r[r].first; k <= j->array->pending.r[r].last; k++)
                if (cw_idset_has(set, k))
                    cw_idset_add(&out, k, k);
    cw_list_each (p, &j->attempts) {
        const struct cw_attempt *a = cw_list_entry(p, struct cw_attempt, on_job);
        if (cw_jobfilter_state(&x->filter, a->rec->state) &&
            cw_jobfilter_nodes(&x->filter, a->rec) && cw_idset_has(set, a->ordinal))
            cw_idset_add(&out, a->ordinal, a->ordinal);
    }
    cw_idset_fini(set);
    *set = out;
}

static uint64_t touch(struct cancel *x, struct cw_job *j, const struct cw_idset *ordinals)
{
    if (x->m->has_signal)
        return cw_model_signal(x->c->model, j, ordinals, x->m->signal);
    return cw_model_cancel(x->c->model, j, ordinals, x->who->uid, cw_clock_real_ns());
}

static uint64_t cancel_live(struct cancel *x, struct cw_job *j, const struct cw_selector *sel,
                            const uint64_t *element)
{
    if (!j->is_array) {
        if (!cw_jobfilter_state(&x->filter, j->state))
            return 0;
        return touch(x, j, NULL);
    }
    struct cw_idset set = {0};
    if (element != NULL)
        cw_idset_add(&set, *element, *element);
    else if (sel != NULL)
        cw_jobfilter_ordinals(sel, &j->array->indices, &set);
    else
        cw_idset_add(&set, 0, j->count - 1);
    narrow_by_state(x, j, &set);
    uint64_t n = cw_idset_empty(&set) ? 0 : touch(x, j, &set);
    cw_idset_fini(&set);
    return n;
}

static const char *partition_name(const struct cancel *x, const struct cw_job *j)
{
    const struct cw_partition *p = cw_model_partition(x->c->model, j->partition);
    return p != NULL ? p->name : NULL;
}

static bool each_live(struct cw_job *j, void *arg)
{
    struct cancel *x = arg;
    if (cw_users_may(x->c, x->who, j->uid) &&
        cw_jobfilter_live(&x->filter, j, partition_name(x, j)))
        x->reply->matched += cancel_live(x, j, NULL, NULL);
    return true;
}

/* One id of a selector. Silent for the ids of a range that do not exist. */
static void cancel_id(struct cancel *x, uint64_t id, const struct cw_selector *sel)
{
    struct cw_jobsrc s;
    bool is_element, single = sel->first == sel->last;
    uint64_t ordinal;
    unsigned long long n = id;
    int rc = cw_jobview_find(x->c, id, x->scratch, &s, &is_element, &ordinal, NULL);
    if (rc == 0 && !cw_users_may(x->c, x->who, s.rec->owner->uid)) {
        cw_jobsrc_fini(&s);
        rc = -ENOENT;
    }
    if (rc < 0) {
        if (single)
            note(x, rc == -ENOENT ? "job %llu does not exist" : "job %llu: its record is damaged",
                 n);
        return;
    }
    uint64_t touched = 0;
    if (s.live != NULL && cw_jobfilter_live(&x->filter, s.live, partition_name(x, s.live)))
        touched = cancel_live(x, s.live, sel, is_element ? &ordinal : NULL);
    x->reply->matched += touched;
    /* To cancel what has ended is harmless; a signal that reaches nobody is worth a word. */
    if (touched == 0 && single && x->m->has_signal)
        note(x, "job %llu: nothing of it runs", n);
    cw_jobsrc_fini(&s);
}

struct range {
    struct cancel *x;
    const struct cw_selector *sel;
};

static bool each_in_range(struct cw_job *j, void *arg)
{
    struct range *r = arg;
    if (j->id > r->sel->last)
        return false;
    if (j->id >= r->sel->first && cw_users_may(r->x->c, r->x->who, j->uid) &&
        cw_jobfilter_live(&r->x->filter, j, partition_name(r->x, j)))
        r->x->reply->matched += cancel_live(r->x, j, r->sel, NULL);
    return true;
}

static void cancel_named(struct cancel *x)
{
    for (size_t i = 0; i < x->filter.n_sel; i++) {
        const struct cw_selector *sel = &x->filter.sel[i];
        if (sel->first == sel->last)
            cancel_id(x, sel->first, sel);
        else
            cw_model_each_job(x->c->model, each_in_range, &(struct range){x, sel});
        cw_arena_reset(x->scratch);
    }
}

void cw_req_cancel(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    struct cw_error err = {0};
    if (cw_answer_if_failing(c, call))
        return;
    struct cancel x = {.c = c,
                       .m = (const Cw__CancelRequest *)msg,
                       .who = cw_rpc_call_identity(call),
                       .arena = cw_rpc_call_arena(call)};
    int rc = cw_jobfilter_init(&x.filter, x.m->filter, &err);
    if (rc == 0 && cw_jobfilter_is_empty(&x.filter))
        rc = cw_fail(&err, -EINVAL, "say which jobs: ids, states, users, names, partitions, accounts, nodes or labels");
    if (rc == 0 && x.m->has_signal && (x.m->signal < 1 || x.m->signal > 64))
        rc = cw_fail(&err, -EINVAL, "signal %u does not exist", x.m->signal);
    if (rc < 0) {
        cw_jobfilter_fini(&x.filter);
        cw_answer_failure(c, call, &err);
        return;
    }
    x.scratch = cw_arena_create();
    x.reply = cw_arena_alloc(x.arena, sizeof *x.reply);
    cw__cancel_reply__init(x.reply);
    x.reply->notes = cw_arena_alloc(x.arena, NOTES_MAX * sizeof *x.reply->notes);
    if (x.filter.n_sel > 0)
        cancel_named(&x);
    else
        cw_model_each_job(c->model, each_live, &x);
    cw_jobfilter_fini(&x.filter);
    cw_arena_destroy(x.scratch);
    cw_answer(c, call, &x.reply->base);
}
