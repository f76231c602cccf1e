/* req_prio.c: the rank of waiting jobs, term by term, in the order in which they will be looked at.
 * Jobs that cannot start yet (held, dependencies) have terms but no place. */
#include "ctld/requests.h"

#include "ctld/answer.h"
#include "base/clock.h"
#include "ctld/jobfilter.h"
#include "sched/order.h"

#define ROWS_MAX 2000u

struct prio {
    struct cw_ctld *c;
    struct cw_arena *a;
    struct cw_jobfilter filter;
    Cw__PrioReply *reply;
};

static void add_term(struct prio *p, Cw__PrioRow *row, const char *name, int64_t value)
{
    Cw__PrioTerm *t = cw_arena_alloc(p->a, sizeof *t);
    cw__prio_term__init(t);
    t->name = cw_arena_strdup(p->a, name);
    t->value = value;
    row->terms[row->n_terms++] = t;
}

static bool wanted(const struct prio *p, const struct cw_job *j)
{
    const struct cw_partition *part = cw_model_partition(p->c->model, j->partition);
    if (!cw_jobfilter_live(&p->filter, j, part != NULL ? part->name : NULL))
        return false;
    bool named = p->filter.n_sel == 0;
    for (size_t i = 0; i < p->filter.n_sel && !named; i++)
        named = p->filter.sel[i].first <= j->id && j->id <= p->filter.sel[i].last;
    return named;
}

static void add_row(struct prio *p, const struct cw_job *j, uint64_t place)
{
    struct cw_order_terms t;
    const struct cw_partition *part = cw_model_partition(p->c->model, j->partition);
    cw_order_explain(p->c->model, &p->c->policy, j, cw_clock_real_ns(), &t);
    Cw__PrioRow *row = cw_arena_alloc(p->a, sizeof *row);
    cw__prio_row__init(row);
    row->id = j->id;
    row->has_uid = true;
    row->uid = j->uid;
    row->user = cw_arena_strdup(p->a, j->user != NULL ? j->user : "");
    row->partition = cw_arena_strdup(p->a, part != NULL ? part->name : "");
    row->priority = t.priority;
    row->has_place = place != 0;
    row->place = place;
    row->terms = cw_arena_alloc(p->a, 3 * sizeof(Cw__PrioTerm *));
    add_term(p, row, "policy", t.policy);
    add_term(p, row, "nice", -(int64_t)j->nice);
    if (t.is_set)
        add_term(p, row, "set", t.priority);
    p->reply->rows[p->reply->n_rows++] = row;
}

static void add_list(struct prio *p, struct cw_list *list, bool ranked)
{
    uint64_t place = 0;
    cw_list_each(pos, list) {
        const struct cw_job *j = cw_list_entry(pos, struct cw_job, in_queue);
        place++;
        if (p->reply->n_rows < ROWS_MAX && wanted(p, j))
            add_row(p, j, ranked ? place : 0);
    }
}

void cw_req_prio(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    const Cw__PrioRequest *m = (const Cw__PrioRequest *)msg;
    struct cw_error err = {0};
    struct prio p = {.c = c, .a = cw_rpc_call_arena(call)};
    if (cw_jobfilter_init(&p.filter, m->filter, &err) < 0) {
        cw_answer_failure(c, call, &err);
        return;
    }
    cw_order_refresh(c->model, &c->policy, cw_clock_real_ns());
    p.reply = cw_arena_alloc(p.a, sizeof *p.reply);
    cw__prio_reply__init(p.reply);
    p.reply->rows = cw_arena_alloc(p.a, ROWS_MAX * sizeof *p.reply->rows);
    add_list(&p, cw_model_queue(c->model), true);
    add_list(&p, cw_model_parked(c->model), false);
    cw_jobfilter_fini(&p.filter);
    cw_answer(c, call, &p.reply->base);
}
