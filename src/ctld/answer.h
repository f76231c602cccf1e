#pragma once
/* How a request is answered: once, and not before everything that was decided until now is on disk.
 * Each function ends the call. Messages live in the call's arena.
 *
 * While commits fail (a full disk) nobody is left waiting: requests that change something are
 * refused at once (cw_answer_if_failing), questions are answered at once from the store instead of
 * from memory (jobview.h does that), so that still nothing leaves which is not on disk. Test:
 * component tests. */
#include "base/error.h"
#include "ctld/ctld.h"
#include "wire/rpc_server.h"

void cw_answer(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
/* For an answer that was put together over several turns: waits in any case. */
void cw_answer_after_commit(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);
/* True when commits fail: the call was refused with the reason. */
bool cw_answer_if_failing(struct cw_ctld *c, struct cw_rpc_call *call);
void cw_answer_failure(struct cw_ctld *c, struct cw_rpc_call *call,
                       const struct cw_error *err); /* retry for -EAGAIN */
void cw_answer_failuref(struct cw_ctld *c, struct cw_rpc_call *call, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* For what tells nothing of the state (ping, diag, a refusal before anything was looked at). */
void cw_answer_now(struct cw_rpc_call *call, const ProtobufCMessage *m);
