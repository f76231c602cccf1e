/* Live usage of a job on one of its nodes: the controller's ticket names node, address and key, the
 * node reads the job's cgroup. No state is kept: each reading takes a ticket of its own. Contract:
 * client.h. Tested by t2530-diag.t. */
#include "client/client.h"

#include "wire/rpc_client.h"

#define NODE_TIMEOUT_MS 5000u

static int ask_node(struct cw_client *c, const Cw__TicketReply *t, struct cw_arena *a,
                    const Cw__StatReply **ret, struct cw_error *err)
{
    Cw__StatRequest q = CW__STAT_REQUEST__INIT;
    ProtobufCMessage *m = NULL;
    struct cw_rpc_client *node;
    if (t->public_key.len != 32)
        return cw_fail(err, -EPROTO, "node %s: the controller names no key for it", t->node);
    int rc = cw_rpc_client_open(t->address, t->public_key.data, NULL, NULL, &node, err);
    if (rc < 0)
        return rc;
    cw_rpc_client_set_interrupt(node, cw_client_interrupt(c));
    q.ticket = t->ticket;
    rc = cw_rpc_client_call(node, CW_KIND_STAT, &q.base, NODE_TIMEOUT_MS, a, &m, err);
    cw_rpc_client_close(node);
    if (rc == 0)
        *ret = (const Cw__StatReply *)(const void *)m;
    return rc;
}

int cw_statreader_read(struct cw_client *c, const char *id, uint32_t node, struct cw_arena *a,
                       const Cw__TicketReply **ret_ticket, const Cw__StatReply **ret,
                       struct cw_error *err)
{
    Cw__TicketRequest q = CW__TICKET_REQUEST__INIT;
    ProtobufCMessage *m = NULL;
    q.id = (char *)id;
    q.right = "stat";
    q.has_node = true;
    q.node = node;
    int rc = cw_client_call(c, CW_KIND_TICKET, &q.base, 0, a, &m, err);
    if (rc < 0)
        return rc;
    *ret_ticket = (const Cw__TicketReply *)(const void *)m;
    rc = ask_node(c, *ret_ticket, a, ret, err);
    return rc == -EHOSTUNREACH ? cw_fail(err, -EIO, "usage of job %s: node %s does not answer at %s",
                                         id, (*ret_ticket)->node, (*ret_ticket)->address)
                               : rc;
}
