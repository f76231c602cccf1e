/* req_jobs.c: the queue and the history. Everyone may see all jobs (policy public). */
#include "ctld/requests.h"

#include "ctld/jobwalk.h"

void cw_req_jobs(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m)
{
    cw_jobwalk_start(c, call, (const Cw__JobsRequest *)m);
}
