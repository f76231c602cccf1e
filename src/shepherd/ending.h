#pragma once
/* How a task ends: kill (TERM, grace, KILL), the leader's exit, emptying the box with a deadline,
 * the cause from what we did or the kernel reported, the exit record before the tear-down, and the
 * watch over what would not die. A task without a leader ends by a kill alone, when its box is empty.
 * Test: shepherd_test.c. */
#include "shepherd/task.h"

#define CW_ENDING_DEADLINE_MS 10000 /* SIGKILL to "not empty" */

/* Idempotent, legal in every phase; a later kill may only shorten the grace. */
void cw_ending_kill(struct cw_herd *h, struct cw_task *t, Cw__Cause cause, uint32_t grace_ms);
void cw_ending_leader(struct cw_herd *h, struct cw_task *t, int wait_status,
                      const struct rusage *ru);
/* Somebody died or time has passed: act on what is due. Adds the next due time to the herd. */
void cw_ending_due(struct cw_herd *h, struct cw_task *t, int64_t now_ms);
void cw_ending_recheck(struct cw_herd *h, struct cw_task *t, int64_t now_ms);
/* As far as it is known now, memory at this moment apart (0: not known); returns how many processes
 * are in the box, or a negative errno. */
int cw_ending_usage(struct cw_task *t, Cw__Usage *ret, uint64_t *ret_mem_bytes);
/* Its end comes when the last process of its box is gone. */
bool cw_ending_awaits_empty(const struct cw_task *t);
/* Could not start. */
void cw_ending_launch_failed(struct cw_herd *h, struct cw_task *t, const struct cw_error *why,
                             int exit_code);
