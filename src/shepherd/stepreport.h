#pragma once
/* What the controller is told of a step, one node's part: that it runs, and how it ended. */
#include "shepherd/step.h"

void cw_stepreport_started(struct cw_step *s);
/* Decides the cause, too. */
void cw_stepreport_end(struct cw_step *s);
uint32_t cw_stepreport_oom(const struct cw_task *t); /* kills in the box so far */
/* How a rank ended; pointers into t. */
void cw_stepreport_rank(const struct cw_steptask *t, Cw__StepTaskEnd *ret);
