#pragma once
/* A query for jobs that is worked off in slices between other events: the loop stays responsive
 * however much history it looks through. Rows come in the order of their ids, or, for attempts
 * without named jobs, in the order of their ends. */
#include "ctld/ctld.h"
#include "proto/wire.pb-c.h"
#include "wire/rpc_server.h"

/* Takes the call over and answers it. */
void cw_jobwalk_start(struct cw_ctld *c, struct cw_rpc_call *call, const Cw__JobsRequest *m);
