#pragma once
/* Estimated starts of waiting jobs for one request: the queue planned once, then looked up by job.
 * Bounded: so many jobs of the front of the queue and so many milliseconds of the loop. Test:
 * testsuite/t2230-entries.t. */
#include "base/mem.h"
#include "ctld/ctld.h"
#include "proto/wire.pb-c.h"

#define CW_STARTPLAN_JOBS 1000u
#define CW_STARTPLAN_MS   50u

struct cw_startplan;
struct cw_startplan *cw_startplan_create(struct cw_ctld *c);
void cw_startplan_destroy(struct cw_startplan *p); /* NULL allowed */
/* start_ns and start_nodes of a row of a waiting job, into arena a; nothing when not planned. */
void cw_startplan_fill(const struct cw_startplan *p, Cw__JobInfo *row, struct cw_arena *a);
