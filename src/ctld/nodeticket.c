/* nodeticket.c: signs what a client shows to a node. Tested through the component tests. */
#include "ctld/nodeticket.h"

#include <string.h>

#include "base/clock.h"
#include "wire/ticket.h"

#define LIFE_NS (300 * CW_NS_PER_S)

int cw_nodeticket_make(struct cw_ctld *c, const struct cw_node *n, const char *id,
                       Cw__TicketBody *b, struct cw_arena *a, struct cw_nodeticket *ret,
                       struct cw_error *err)
{
    if (n == NULL || n->rec->address == NULL || n->rec->public_key.len != 32)
        return cw_fail(err, -EAGAIN, "node %s of job %s has not registered",
                       n != NULL ? n->name : "?", id);
    uint8_t key[32];
    cw_autobuf struct cw_buf out = {0};
    b->expires_ns = cw_clock_real_ns() + LIFE_NS;
    cw_ticket_node_key(c->cluster_key, n->name, key);
    cw_ticket_make(key, b, &out);
    if (out.len > CW_TICKET_MAX)
        return cw_fail(err, -E2BIG, "the ticket for node %s takes %zu bytes, at most %u may be",
                       n->name, out.len, CW_TICKET_MAX);
    ret->address = cw_arena_strdup(a, n->rec->address);
    ret->public_key.len = 32;
    ret->public_key.data = memcpy(cw_arena_alloc(a, 32), n->rec->public_key.data, 32);
    ret->ticket.len = out.len;
    ret->ticket.data = memcpy(cw_arena_alloc(a, out.len), out.data, out.len);
    return 0;
}
