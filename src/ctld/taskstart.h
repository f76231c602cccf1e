#pragma once
/* The message that starts an attempt on its node, made from the job as it is now. */
#include "base/mem.h"
#include "ctld/ctld.h"
#include "proto/wire.pb-c.h"

/* Lives in the arena, the payload until the next call. -ENOENT: the attempt is not there any more
 * or has left STARTING; -EBADMSG: its payload cannot be read. */
int cw_taskstart_build(struct cw_ctld *c, uint64_t id, uint32_t attempt, struct cw_arena *a,
                       Cw__TaskStart **ret, struct cw_error *err);
