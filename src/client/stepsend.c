/* One word (a signal, a kill) to all nodes of a step, without joining it: a ticket and a request
 * each. Contract: client.h. Tested by t2400-run.t. */
#include "client/client.h"

#include "spec/outcome.h"
#include "wire/rpc_client.h"

#define NODE_TIMEOUT_MS 5000u

static int find_step(struct cw_client *c, const char *id, uint32_t step, struct cw_arena *a,
                     const Cw__StepRecord **ret, struct cw_error *err)
{
    Cw__JobsRequest q = CW__JOBS_REQUEST__INIT;
    Cw__JobFilter f = CW__JOB_FILTER__INIT;
    ProtobufCMessage *m;
    f.n_ids = 1;
    f.ids = (char **)&id;
    q.filter = &f;
    q.has_attempts = q.attempts = q.has_steps = q.steps = true;
    int rc = cw_client_call(c, CW_KIND_JOBS, &q.base, 0, a, &m, err);
    const Cw__JobsReply *r = rc == 0 ? (const Cw__JobsReply *)m : NULL;
    *ret = NULL;
    for (size_t i = 0; r != NULL && i < r->n_jobs; i++)
        for (size_t k = 0; k < r->jobs[i]->n_steps; k++)
            if (r->jobs[i]->steps[k]->step == step)
                *ret = r->jobs[i]->steps[k];
    if (rc == 0 && *ret == NULL)
        return cw_fail(err, -ENOENT, "step %s.%u does not exist", id, step);
    return rc;
}

static int send_to(struct cw_client *c, const char *id, const Cw__StepRecord *s, uint32_t node,
                   Cw__StepVerb verb, uint32_t signal, struct cw_arena *a, struct cw_error *err)
{
    Cw__TicketRequest q = CW__TICKET_REQUEST__INIT;
    Cw__StepCtlRequest k = CW__STEP_CTL_REQUEST__INIT;
    struct cw_rpc_client *rpc;
    ProtobufCMessage *m;
    q.id = (char *)id;
    q.right = "step";
    q.has_attempt = q.has_step = q.has_node = true;
    q.attempt = s->attempt;
    q.step = s->step;
    q.node = node;
    int rc = cw_client_call(c, CW_KIND_TICKET, &q.base, 0, a, &m, err);
    if (rc < 0)
        return rc;
    const Cw__TicketReply *t = (const Cw__TicketReply *)m;
    if (t->public_key.len != 32)
        return cw_fail(err, -EPROTO, "node %s: the controller names no key for it", t->node);
    rc = cw_rpc_client_open(t->address, t->public_key.data, NULL, NULL, &rpc, err);
    if (rc < 0)
        return rc;
    cw_rpc_client_set_interrupt(rpc, cw_client_interrupt(c));
    k.ticket = t->ticket;
    k.verb = verb;
    k.has_signal = signal != 0;
    k.signal = signal;
    rc = cw_rpc_client_call(rpc, CW_KIND_STEP_CTL, &k.base, NODE_TIMEOUT_MS, a, &m, err);
    cw_rpc_client_close(rpc);
    return rc == -EHOSTUNREACH
               ? cw_fail(err, -EIO, "step %s.%u: node %s does not answer", id, s->step, t->node)
               : rc;
}

int cw_stepsend(struct cw_client *c, const char *id, uint32_t step, Cw__StepVerb verb,
                uint32_t signal, struct cw_error *err)
{
    struct cw_arena *a = cw_arena_create();
    const Cw__StepRecord *s = NULL;
    int rc = find_step(c, id, step, a, &s, err);
    if (rc == 0 && cw_state_terminal(s->state))
        rc = cw_fail(err, -ESRCH, "step %s.%u has ended", id, step);
    int worst = rc;
    for (uint32_t i = 0; rc == 0 && i < s->n_nodes; i++) {
        struct cw_error one;
        int r = send_to(c, id, s, i, verb, signal, a, &one);
        if (r < 0 && r != -ENOENT && worst == 0) { /* -ENOENT: it is over there */
            *err = one;
            worst = r;
        }
    }
    cw_arena_destroy(a);
    return worst;
}
