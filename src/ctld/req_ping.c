/* req_ping.c: are you there, and who are you. Answered at once: it tells nothing of the state. */
#include "config.h"

#include "ctld/requests.h"

#include <unistd.h>

#include "ctld/answer.h"

void cw_req_ping(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m)
{
    (void)m;
    Cw__PingReply r = CW__PING_REPLY__INIT;
    r.version = (char *)PACKAGE_VERSION;
    r.cluster = (char *)c->conf->cluster;
    r.has_start_ns = r.has_pid = true;
    r.start_ns = c->start_ns;
    r.pid = (uint32_t)getpid();
    cw_answer_now(call, &r.base);
}
