#pragma once
/* A ticket for one node: signed with that node's key, and where the node listens. */
#include "base/mem.h"
#include "ctld/ctld.h"
#include "model/node.h"
#include "proto/wire.pb-c.h"

struct cw_nodeticket {
    char *address;
    ProtobufCBinaryData public_key, ticket;
};
/* Sets b's expiry. n NULL or one that has not registered: -EAGAIN with a sentence that names `id`;
 * -E2BIG: a ticket would be longer than nodes take. Lives in the arena. */
int cw_nodeticket_make(struct cw_ctld *c, const struct cw_node *n, const char *id,
                       Cw__TicketBody *b, struct cw_arena *a, struct cw_nodeticket *ret,
                       struct cw_error *err);
