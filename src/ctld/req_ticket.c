/* req_ticket.c: a signed right to talk to a job's node directly (logs). Only for the owner and
 * administrators; to anyone else the job does not exist. */
#include "ctld/requests.h"

#include <string.h>

#include "base/clock.h"
#include "ctld/answer.h"
#include "ctld/jobpick.h"
#include "ctld/users.h"
#include "model/node.h"
#include "spec/outcome.h"
#include "wire/ticket.h"

#define TICKET_LIFE_NS (300 * CW_NS_PER_S)

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

static int ticket_make(struct cw_ctld *c, const struct cw_jobpick *p, const Cw__TicketRequest *m,
                       struct cw_arena *a, Cw__TicketReply *r, struct cw_error *err)
{
    if (strcmp(m->right, "logs") != 0)
        return cw_fail(err, -EINVAL, "right '%s' is not known, there is: logs", m->right);
    int rc = ticket_attempt(c, p, m, a, &r->attempt, err);
    if (rc < 0)
        return rc;
    if (r->attempt->stdout_path == NULL && cw_state_terminal(r->attempt->state))
        return cw_fail(err, -ENOENT, "job %s never started, it has no output%s%.200s", m->id,
                       r->attempt->message != NULL ? ": " : "",
                       r->attempt->message != NULL ? r->attempt->message : "");
    struct cw_node *n =
        cw_model_node(c->model, r->attempt->grant != NULL ? r->attempt->grant->node : "");
    if (n == NULL || n->rec->address == NULL || n->rec->public_key.len != 32)
        return cw_fail(err, -EAGAIN, "the node of job %s has not registered", m->id);
    Cw__TicketBody b = CW__TICKET_BODY__INIT;
    b.id = r->attempt->id;
    b.attempt = r->attempt->attempt;
    b.right = m->right;
    b.expires_ns = cw_clock_real_ns() + TICKET_LIFE_NS;
    b.owner = p->src.rec->owner;
    b.stdout_path = r->attempt->stdout_path;
    b.stderr_path = r->attempt->stderr_path;
    uint8_t key[32];
    cw_autobuf struct cw_buf out = {0};
    cw_ticket_node_key(c->cluster_key, n->name, key);
    cw_ticket_make(key, &b, &out);
    r->node = cw_arena_strdup(a, n->name);
    r->address = cw_arena_strdup(a, n->rec->address);
    r->public_key.len = 32;
    r->public_key.data = memcpy(cw_arena_alloc(a, 32), n->rec->public_key.data, 32);
    r->ticket.len = out.len;
    r->ticket.data = memcpy(cw_arena_alloc(a, out.len), out.data, out.len);
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
