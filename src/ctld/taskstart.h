#pragma once
/* The message that starts an attempt on one of its nodes, made from the job as it is now. */
#include "base/mem.h"
#include "ctld/ctld.h"
#include "proto/wire.pb-c.h"

/* Lives in the arena, the payload until the next call. -ENOENT: its part is not there any more or
 * not to be started (now); -EBADMSG: its payload cannot be read. */
int cw_taskstart_build(struct cw_ctld *c, const struct cw_node *n, uint64_t id, uint32_t attempt,
                       struct cw_arena *a, Cw__TaskStart **ret, struct cw_error *err);
