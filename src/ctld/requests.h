#pragma once
/* The handlers of requests, one file each (req_NAME.c). Each gets a decoded message that lives in
 * the call's arena and ends the call through answer.h, now or later. Who may ask at all was decided
 * by dispatch.c; whose jobs one may touch is decided here. */
#include "ctld/ctld.h"
#include "proto/wire.pb-c.h"
#include "wire/rpc_server.h"

void cw_req_ping(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_submit(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_jobs(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_why(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_cancel(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_wait(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_nodes(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_node_set(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_ticket(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_ctl(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_update(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
/* The site's checks of a submit for a spec that was changed. */
int cw_submit_recheck(struct cw_ctld *c, const struct cw_identity *who, struct cw_arena *a,
                      Cw__JobSpec *s, struct cw_error *err);
void cw_req_prio(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_step_create(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_keep(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_release(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
void cw_req_events(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
