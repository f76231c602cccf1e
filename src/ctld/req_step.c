/* req_step.c: a further command inside a running job gets its number, its room and a ticket for
 * each of its nodes (STEP_CREATE). The row is stored before the answer; asking again with the same
 * key gives the same step. To anyone but the owner and administrators the job does not exist.
 * Tested by stepbook_test.c and t2400-run.t. */
#include "ctld/requests.h"

#include <string.h>

#include "base/clock.h"
#include "ctld/answer.h"
#include "ctld/jobpick.h"
#include "ctld/nodeticket.h"
#include "ctld/stepbook.h"
#include "ctld/users.h"
#include "proto/walk.h"
#include "spec/outcome.h"

struct making {
    struct cw_ctld *c;
    struct cw_arena *arena;
    const Cw__StepCreateRequest *m;
    struct cw_jobpick pick;
    struct cw_attempt *at;
    struct cw_steplayout layout;
    uint32_t step;
};

/* ---- messages of a layout ------------------------------------------------------------------- */

static void cpus_of_core(const struct cw_node *n, uint64_t logical, struct cw_idset *out)
{
    const Cw__Inventory *inv = n->rec->inventory;
    for (size_t i = 0; inv != NULL && i < inv->n_cores; i++)
        if (inv->cores[i]->logical == logical)
            for (size_t k = 0; k < inv->cores[i]->n_pus; k++)
                cw_idset_add(out, inv->cores[i]->pus[k], inv->cores[i]->pus[k]);
}

static char *cpus_of(struct making *x, const struct cw_node *n, const Cw__Grant *whole,
                     const char *cores)
{
    if (strcmp(cores, whole->cores) == 0)
        return whole->cpus;
    struct cw_idset set = {0}, cpus = {0};
    cw_autobuf struct cw_buf text = {0};
    cw_idset_parse(cores, strlen(cores), UINT32_MAX, &set, NULL);
    for (size_t i = 0; i < set.n; i++)
        for (uint64_t k = set.r[i].first; k <= set.r[i].last; k++)
            cpus_of_core(n, k, &cpus);
    cw_idset_format(&cpus, &text);
    cw_idset_fini(&set);
    cw_idset_fini(&cpus);
    return cw_arena_strdup(x->arena, cw_buf_str(&text));
}

static Cw__Grant *grant_of(struct making *x, const struct cw_stepnode *sn)
{
    const Cw__Grant *whole = cw_steplayout_grant(x->at->rec, sn->job_node);
    Cw__Grant *g = cw_arena_alloc(x->arena, sizeof *g);
    struct cw_idset gpus = {0};
    cw__grant__init(g);
    g->node = whole->node;
    g->cores = sn->cores;
    g->cpus = cpus_of(x, x->at->parts[sn->job_node].node, whole, sn->cores);
    g->mem_bytes = x->m->spec->has_mem_bytes ? x->m->spec->mem_bytes : whole->mem_bytes;
    g->has_ntasks = true;
    g->ntasks = sn->n_ranks;
    cw_idset_parse(sn->gpus, strlen(sn->gpus), UINT32_MAX, &gpus, NULL);
    g->gpus = cw_arena_alloc(x->arena, (whole->n_gpus + 1) * sizeof *g->gpus);
    for (size_t i = 0; i < whole->n_gpus; i++)
        if (cw_idset_has(&gpus, whole->gpus[i]->index))
            g->gpus[g->n_gpus++] = whole->gpus[i];
    cw_idset_fini(&gpus);
    return g;
}

static Cw__StepLayout *layout_of(struct making *x, uint32_t k)
{
    const struct cw_stepnode *sn = &x->layout.nodes[k];
    Cw__StepLayout *l = cw_arena_alloc(x->arena, sizeof *l);
    cw__step_layout__init(l);
    l->node = k;
    l->n_nodes = l->n_tasks_per_node = x->layout.n_nodes;
    l->nodes = cw_arena_alloc(x->arena, l->n_nodes * sizeof(char *));
    l->tasks_per_node = cw_arena_alloc(x->arena, l->n_nodes * sizeof *l->tasks_per_node);
    for (uint32_t i = 0; i < l->n_nodes; i++) {
        const struct cw_stepnode *other = &x->layout.nodes[i];
        l->nodes[i] = cw_steplayout_grant(x->at->rec, other->job_node)->node;
        l->tasks_per_node[i] = other->n_ranks;
    }
    l->n_ranks = sn->n_ranks;
    l->ranks = sn->ranks;
    l->grant = grant_of(x, sn);
    l->ntasks = x->layout.ntasks;
    l->has_exec = x->m->spec->has_exec;
    l->exec = x->m->spec->exec;
    l->has_job_node = true;
    l->job_node = sn->job_node;
    return l;
}

static int part_of(struct making *x, uint32_t k, Cw__StepPart **ret, struct cw_error *err)
{
    struct cw_nodeticket t;
    Cw__TicketBody b = CW__TICKET_BODY__INIT;
    Cw__StepPart *p = cw_arena_alloc(x->arena, sizeof *p);
    cw__step_part__init(p);
    p->layout = layout_of(x, k);
    b.id = x->at->id;
    b.attempt = x->at->attempt;
    b.right = "step";
    b.owner = x->pick.src.rec->owner;
    b.has_step = true;
    b.step = x->step;
    b.layout = p->layout;
    int rc = cw_nodeticket_make(x->c, x->at->parts[p->layout->job_node].node, x->m->id, &b,
                                x->arena, &t, err);
    if (rc < 0)
        return rc;
    p->address = t.address;
    p->public_key = t.public_key;
    p->ticket = t.ticket;
    *ret = p;
    return 0;
}

/* Messages point into the model no longer than this turn: names of nodes are copied by packing only
 * when the answer is sent. */
static Cw__StepPart *own(struct making *x, const Cw__StepPart *p, struct cw_error *err)
{
    cw_autobuf struct cw_buf b = {0};
    ProtobufCMessage *m;
    cw_walk_pack(&p->base, &b);
    int rc = cw_walk_unpack(&cw__step_part__descriptor, b.data, b.len, x->arena, &m, err);
    return rc < 0 ? NULL : (Cw__StepPart *)m;
}

/* ---- checks --------------------------------------------------------------------------------- */

/* A running attempt, or why there is none. */
static int find_attempt(struct making *x, struct cw_error *err)
{
    const struct cw_jobpick *p = &x->pick;
    const char *id = x->m->id;
    if (p->src.is_array && !p->is_element)
        return cw_fail(err, -EINVAL, "job %s is an array: name one element, as %s_INDEX", id, id);
    x->at = cw_model_attempt(x->c->model, p->element_id);
    if (x->at != NULL && p->attempt != 0 && p->attempt != x->at->attempt)
        return cw_fail(err, -ESRCH, "attempt %u of job %s does not run", p->attempt, id);
    if (x->at == NULL || cw_state_terminal(x->at->state)) {
        bool waits = p->src.live != NULL && p->src.live->state == CW__STATE__PENDING;
        return cw_fail(err, -ESRCH, "job %s does not run: it %s", id,
                       waits ? "waits" : "has ended");
    }
    if (x->at->kill_step != 0 || x->at->state == CW__STATE__COMPLETING)
        return cw_fail(err, -ESRCH, "job %s is about to end", id);
    if (x->at->state != CW__STATE__RUNNING)
        return cw_fail(err, -EAGAIN, "job %s is about to start", id);
    return 0;
}

static int check_spec(const Cw__StepCreateRequest *m, struct cw_error *err)
{
    if (m->request_key.len != 16)
        return cw_fail(err, -EINVAL, "request key has %zu bytes, 16 are wanted",
                       m->request_key.len);
    if (m->spec->name != NULL && strlen(m->spec->name) > 255)
        return cw_fail(err, -EINVAL, "step name: more than 255 bytes");
    return 0;
}

static int create(struct making *x, Cw__StepCreateReply *r, struct cw_error *err)
{
    int rc = find_attempt(x, err);
    if (rc == 0)
        rc = cw_stepbook_add(x->c->stepbook, x->at, x->m->id, x->pick.src.rec->spec, x->m->spec,
                             x->m->request_key.data, x->arena, &x->layout, &x->step, &r->busy, err);
    if (rc == -EBUSY && r->busy != NULL)
        return 0;
    if (rc < 0)
        return rc;
    r->has_id = r->has_attempt = r->has_step = true;
    r->id = x->at->id;
    r->attempt = x->at->attempt;
    r->step = x->step;
    r->parts = cw_arena_alloc(x->arena, x->layout.n_nodes * sizeof(Cw__StepPart *));
    for (uint32_t k = 0; rc == 0 && k < x->layout.n_nodes; k++) {
        Cw__StepPart *p = NULL;
        rc = part_of(x, k, &p, err);
        if (rc == 0 && (p = own(x, p, err)) == NULL)
            rc = -EIO;
        if (rc == 0)
            r->parts[r->n_parts++] = p;
    }
    return rc;
}

void cw_req_step_create(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    struct cw_error err = {0};
    if (cw_answer_if_failing(c, call))
        return;
    struct making x = {.c = c,
                       .arena = cw_rpc_call_arena(call),
                       .m = (const Cw__StepCreateRequest *)msg};
    Cw__StepCreateReply *r = cw_arena_alloc(x.arena, sizeof *r);
    cw__step_create_reply__init(r);
    int rc = check_spec(x.m, &err);
    if (rc == 0)
        rc = cw_jobpick(c, x.m->id, x.arena, &x.pick, &err);
    if (rc == 0) {
        if (!cw_users_may(c, cw_rpc_call_identity(call), x.pick.src.rec->owner->uid))
            rc = cw_fail(&err, -ENOENT, "job %s does not exist", x.m->id);
        else
            rc = create(&x, r, &err);
        cw_jobsrc_fini(&x.pick.src);
    }
    if (rc < 0)
        cw_answer_failure(c, call, &err);
    else
        cw_answer(c, call, &r->base);
}
