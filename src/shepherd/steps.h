#pragma once
/* The set-up of a task as a list of steps, undone backwards when one fails. Order: what can be the
 * user's mistake comes before what costs the node. Test: herd_test.c. */
#include "shepherd/task.h"

/* Runs all steps; afterwards the process lives and t->pid is set. On failure everything is undone
 * and ret_exit says 126/127 when the command could not be executed. */
int cw_steps_run(struct cw_herd *h, struct cw_task *t, int *ret_exit, struct cw_error *err);
/* What is needed only until the process lives. */
void cw_steps_finish(struct cw_task *t);
/* Undoes what lasts as long as the task: volumes, script, box. 0, or -EBUSY: the box is not empty
 * or not gone; call again. Other failures are logged and final. */
int cw_steps_tear_down(struct cw_herd *h, struct cw_task *t);
/* Loads isolation NAME; the same for reclaim. */
int cw_steps_isolation(struct cw_herd *h, const char *name, struct cw_plug **ret,
                       struct cw_error *err);
