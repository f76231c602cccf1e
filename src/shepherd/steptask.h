#pragma once
/* Starts the ranks of a step on this node: environment, descriptors, processors, process. A rank
 * that cannot be started is an end with a sentence, not a failure of the step. Test: step_test.c. */
#include "shepherd/step.h"

/* Makes and starts all tasks of s (layout and sizes are set). */
void cw_steptask_start_all(struct cw_step *s, const Cw__StepSpec *spec);
/* To the process group of each rank that lives. SIGKILL: to its whole session. */
void cw_steptask_signal(const struct cw_step *s, int signo);
