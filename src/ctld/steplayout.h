#pragma once
/* Where the tasks of a step go: which of the job's nodes, how many on each, which ranks, and which
 * cores and GPUs they may use there. Rules: a step takes all of the job's nodes but no more than it
 * has tasks; as many tasks as the job where it does not say; each node gets one task, then each
 * gets a second one, while there are cores; ranks are then numbered node by node (block) or in turn
 * (cyclic). Without `exact` a step may use every core of the job and keeps nobody out; with it, it
 * has only what it needs and no other exact step gets the same. Pure. Test: steplayout_test.c. */
#include "base/error.h"
#include "base/idset.h"
#include "base/mem.h"
#include "proto/wire.pb-c.h"

struct cw_stepask {
    const char *id;               /* of the job, for sentences */
    const Cw__AttemptRecord *rec; /* its nodes and what it has there */
    const Cw__JobSpec *job;
    const Cw__StepSpec *spec;
    /* By node of the job: what exact steps have of it. NULL: nothing. */
    const struct cw_idset *held_cores, *held_gpus;
    uint32_t n_held;
};
struct cw_stepnode {
    uint32_t job_node; /* number of the node in the job */
    uint32_t n_ranks;
    uint32_t *ranks;
    char *cores, *gpus; /* idsets as text; gpus: numbers in the node's inventory, "" for none */
};
struct cw_steplayout {
    uint32_t ntasks, n_nodes;
    struct cw_stepnode *nodes; /* in the order of the job's */
};
/* Everything returned lives in the arena. -EBUSY: it would fit, but exact steps have what is asked
 * for; -EINVAL: it never can. */
int cw_steplayout_make(const struct cw_stepask *ask, struct cw_arena *a,
                       struct cw_steplayout *ret, struct cw_error *err);
/* What the job has on its node k (0: the head). */
const Cw__Grant *cw_steplayout_grant(const Cw__AttemptRecord *rec, uint32_t k);
