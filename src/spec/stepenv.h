#pragma once
/* The environment of one task of a step: the step's own env, the job's CRUN_* variables over it
 * (jobenv.h), and over these what is the step's: CRUN_STEP_ID, its numbers of tasks and nodes, rank.
 * A command run by crun-exec keeps the job's numbers. With slurm_env the SLURM_* twins. Pure. Test:
 * stepenv_test.c. */
#include "spec/jobenv.h"

struct cw_stepenv_task {
    uint32_t step, rank, local;
    const char *cpus; /* OS processors of this task, NULL: of the grant */
};
/* job: the START of the task here; its payload is not looked at. */
void cw_stepenv_build(const Cw__TaskStart *job, const Cw__StepSpec *spec,
                      const Cw__StepLayout *layout, const struct cw_stepenv_task *t,
                      const struct cw_jobenv_node *n, struct cw_strv *ret);
