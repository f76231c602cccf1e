/* req_ticket.c: a signed right to talk to one of a job's nodes directly: to read its log, its usage,
 * or to attach to a step. Only for the owner and administrators; to anyone else the job does not
 * exist. */
#include "ctld/requests.h"

#include <string.h>

#include "ctld/answer.h"
#include "ctld/jobpick.h"
#include "ctld/nodeticket.h"
#include "ctld/stepbook.h"
#include "ctld/users.h"
#include "spec/outcome.h"

static int ticket_attempt(struct cw_ctld *c, const struct cw_jobpick *p, const Cw__TicketRequest *m,
                          struct cw_arena *a, Cw__AttemptRecord **ret, struct cw_error *err)
{
    if (p->src.is_array && !p->is_element)
        return cw_fail(err, -EINVAL, "job %s is an array: name one element, as %s_INDEX", m->id,
                       m->id);
    uint32_t attempt = m->has_attempt && m->attempt != 0 ? m->attempt : p->attempt;
    int rc = cw_jobview_attempt(c, p->element_id, attempt, a, ret, err);
    if (rc == -ENOENT && attempt != 0)
        return cw_fail(err, -ENOENT, "job %s has no attempt %u", m->id, attempt);
    if (rc != -ENOENT)
        return rc;
    if (p->src.live != NULL)
        return cw_fail(err, -EAGAIN, "job %s has not started yet", m->id);
    return cw_fail(err, -ENOENT, "job %s never started, it has no output", m->id);
}

/* ---- what each right needs ------------------------------------------------------------------- */

static int runs(const Cw__AttemptRecord *at, const char *id, struct cw_error *err)
{
    if (at->state == CW__STATE__RUNNING)
        return 0;
    if (cw_state_terminal(at->state))
        return cw_fail(err, -ESRCH, "job %s has ended", id);
    return cw_fail(err, -EAGAIN, "job %s does not run: it is %s", id, cw_state_name(at->state));
}

static int node_of_job(const Cw__AttemptRecord *at, const Cw__TicketRequest *m, const char **ret,
                       struct cw_error *err)
{
    uint32_t k = m->has_node ? m->node : 0;
    if (k > at->n_more_grants)
        return cw_fail(err, -EINVAL, "job %s has %zu nodes, there is no number %u", m->id,
                       at->n_more_grants + 1, k);
    *ret = cw_steplayout_grant(at, k)->node;
    return 0;
}

static int right_logs(struct cw_ctld *c, const Cw__AttemptRecord *at, const Cw__TicketRequest *m,
                      struct cw_arena *a, Cw__TicketBody *b, const char **ret_node,
                      struct cw_error *err)
{
    (void)c, (void)a;
    if (at->stdout_path == NULL && cw_state_terminal(at->state))
        return cw_fail(err, -ENOENT, "job %s never started, it has no output%s%.200s", m->id,
                       at->message != NULL ? ": " : "", at->message != NULL ? at->message : "");
    b->stdout_path = at->stdout_path;
    b->stderr_path = at->stderr_path;
    *ret_node = at->grant != NULL ? at->grant->node : "";
    return 0;
}

static int right_stat(struct cw_ctld *c, const Cw__AttemptRecord *at, const Cw__TicketRequest *m,
                      struct cw_arena *a, Cw__TicketBody *b, const char **ret_node,
                      struct cw_error *err)
{
    (void)c, (void)a, (void)b;
    int rc = runs(at, m->id, err);
    return rc < 0 ? rc : node_of_job(at, m, ret_node, err);
}

/* An existing step; node: its number in the step. Also one that has ended while its job runs: there
 * may be output that nobody has read. */
static int right_step(struct cw_ctld *c, const Cw__AttemptRecord *at, const Cw__TicketRequest *m,
                      struct cw_arena *a, Cw__TicketBody *b, const char **ret_node,
                      struct cw_error *err)
{
    Cw__StepRecord *s;
    uint32_t k = m->has_node ? m->node : 0;
    int rc = runs(at, m->id, err);
    if (rc < 0)
        return rc;
    if (!m->has_step ||
        cw_stepbook_find(c->stepbook, at->id, at->attempt, m->step, a, &s, NULL) < 0)
        return cw_fail(err, -ENOENT, "job %s has no step %u", m->id, m->step);
    if (k >= s->n_nodes)
        return cw_fail(err, -EINVAL, "step %s.%u has %zu nodes, there is no number %u", m->id,
                       m->step, s->n_nodes, k);
    b->has_step = true;
    b->step = m->step;
    *ret_node = s->nodes[k];
    return 0;
}

static const struct {
    const char *name;
    int (*make)(struct cw_ctld *c, const Cw__AttemptRecord *at, const Cw__TicketRequest *m,
                struct cw_arena *a, Cw__TicketBody *b, const char **ret_node,
                struct cw_error *err);
} rights[] = {{"logs", right_logs}, {"stat", right_stat}, {"step", right_step}};

static int ticket_make(struct cw_ctld *c, const struct cw_jobpick *p, const Cw__TicketRequest *m,
                       struct cw_arena *a, Cw__TicketReply *r, struct cw_error *err)
{
    size_t k = 0;
    while (k < CW_ARRAY_LEN(rights) && strcmp(m->right, rights[k].name) != 0)
        k++;
    if (k == CW_ARRAY_LEN(rights))
        return cw_fail(err, -EINVAL, "right '%s' is not known, there are: logs, stat, step",
                       m->right);
    int rc = ticket_attempt(c, p, m, a, &r->attempt, err);
    if (rc < 0)
        return rc;
    Cw__TicketBody b = CW__TICKET_BODY__INIT;
    struct cw_nodeticket t;
    const char *node;
    b.id = r->attempt->id;
    b.attempt = r->attempt->attempt;
    b.right = m->right;
    b.owner = p->src.rec->owner;
    rc = rights[k].make(c, r->attempt, m, a, &b, &node, err);
    if (rc < 0)
        return rc;
    struct cw_node *n = cw_model_node(c->model, node);
    rc = cw_nodeticket_make(c, n, m->id, &b, a, &t, err);
    if (rc < 0)
        return rc;
    r->node = cw_arena_strdup(a, n->name);
    r->address = t.address;
    r->public_key = t.public_key;
    r->ticket = t.ticket;
    return 0;
}

void cw_req_ticket(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    const Cw__TicketRequest *m = (const Cw__TicketRequest *)msg;
    struct cw_arena *a = cw_rpc_call_arena(call);
    struct cw_error err = {0};
    struct cw_jobpick p;
    Cw__TicketReply *r = cw_arena_alloc(a, sizeof *r);
    cw__ticket_reply__init(r);
    int rc = cw_jobpick(c, m->id, a, &p, &err);
    if (rc == 0) {
        if (!cw_users_may(c, cw_rpc_call_identity(call), p.src.rec->owner->uid))
            rc = cw_fail(&err, -ENOENT, "job %s does not exist", m->id);
        else
            rc = ticket_make(c, &p, m, a, r, &err);
        cw_jobsrc_fini(&p.src);
    }
    if (rc < 0)
        cw_answer_failure(c, call, &err);
    else
        cw_answer(c, call, &r->base);
}
