#pragma once
/* An allocation of our own: submitted, waited for, given back. Test: t2400-run.t. */
#include "cmds/cli.h"
#include "spec/options.h"

#define CW_ALLOCGET_LEASE_S 60

/* r is finished. Waits until the allocation runs and tells once per change what it waits for. -1
 * with *ret_id set, or the exit code; when interrupted the job is given back. */
int cw_allocget(struct cw_cli *c, struct cw_request *r, uint64_t *ret_id, Cw__JobInfo **ret_job);
/* Best effort: a controller that does not answer ends it by its lease. */
void cw_allocget_release(struct cw_cli *c, uint64_t id, int exit_code);
uint32_t cw_allocget_lease(void);
