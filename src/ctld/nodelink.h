#pragma once
/* The sessions with nodes: one verified link per node, records in both directions, and what both
 * sides know compared whenever a link (re)starts. Records of a node are acknowledged only when what
 * they changed is on disk. Tested by ctld_component_test.c. */
#include "ctld/ctld.h"
#include "model/node.h"
#include "wire/frame.h"
#include "wire/nnsock.h"

struct cw_nodelinks;
struct cw_nodelinks *cw_nodelinks_create(struct cw_ctld *c);
void cw_nodelinks_destroy(struct cw_nodelinks *k); /* NULL allowed */
/* A frame that is no request, from the nodes' socket (an rpc_server `other`). arg: the ctld. */
void cw_nodelinks_frame(const struct cw_route *route, const struct cw_frame *f, void *arg);
void cw_nodelinks_flush(struct cw_nodelinks *k); /* end of a turn: sends what is queued */
/* Forgets the node's link: its next frame is refused, so that it says HELLO and both compare notes.
 */
void cw_nodelink_drop(struct cw_ctld *c, const struct cw_node *n);
size_t cw_nodelinks_count(const struct cw_nodelinks *k);

/* Each only after the commit of what it tells. Without a link nothing is sent: HELLO settles it. */
void cw_nodelink_send_start(struct cw_ctld *c, struct cw_node *n, uint64_t id, uint32_t attempt);
void cw_nodelink_send_kill(struct cw_ctld *c, struct cw_node *n, uint64_t id, uint32_t attempt,
                           Cw__Cause cause, uint32_t grace_ms);
/* What is left of the time limit of an attempt that runs. */
void cw_nodelink_send_limit(struct cw_ctld *c, struct cw_node *n, uint64_t id, uint32_t attempt);
void cw_nodelink_send_signal(struct cw_ctld *c, struct cw_node *n, uint64_t id, uint32_t attempt,
                             uint32_t signal);
