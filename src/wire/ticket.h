#pragma once
/* Tickets: what the controller signs and a node checks: packed TicketBody, then BLAKE2b-256 keyed
 * with the node's key. node_key = BLAKE2b-256(cluster key, "node/" NAME). Pure. libsodium must have
 * been started (any channel does). Test: ticket_test.c. */
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "proto/wire.pb-c.h"

#define CW_TICKET_MAX 16384u /* with two paths in it */

void cw_ticket_node_key(const uint8_t cluster_key[32], const char *node, uint8_t ret[32]);
void cw_ticket_make(const uint8_t node_key[32], const Cw__TicketBody *b, struct cw_buf *out);
/* -EACCES: not signed for this node; -EKEYEXPIRED: ask the controller for a new one; -EBADMSG. */
int cw_ticket_open(const uint8_t node_key[32], const void *p, size_t n, int64_t now_ns,
                   struct cw_arena *a, Cw__TicketBody **ret, struct cw_error *err);
