#pragma once
/* What of a job decides where it can run, apart from its partition: kept once per distinct wish and
 * counted, so that 100,000 equal jobs cost a pointer each and a pass can remember by pointer what
 * did not fit. Never changes while anybody holds it. Pure. Test: pass_test.c in
 * src/sched, by the case files. */
#include <stdbool.h>
#include <stdint.h>

#include "proto/job.pb-c.h"

struct cw_model;

struct cw_want {
    uint32_t ntasks, cpus;         /* cores of a task */
    uint32_t nodes_min, nodes_max; /* 0, UINT32_MAX: as few as hold the tasks */
    uint32_t per_node;             /* most tasks of a node; UINT32_MAX: any number */
    uint64_t mem_node, mem_cpu, mem_gpu; /* at most one is not 0; all 0: the partition's default */
    uint32_t gpus, gpus_node, gpus_task; /* at most one is not 0: of the job, a node, a task */
    bool exclusive;                      /* whole nodes that nobody uses */
    /* NULL: not asked. Texts live as long as the want. */
    const char *gpu_type, *isolation;
    const char *nodelist, *exclude, *constraint, *prefer;
    uint32_t n_listed; /* hosts of nodelist */
    uint64_t number; /* unique among all of this model ever */
    uint32_t refs;
    struct cw_wantmiss { /* the scheduler's: what the last pass that looked found */
        uint64_t pass;   /* number of the pass; 0: none */
        int64_t len_ns;  /* what is longer does not fit either */
        uint16_t partition;
        uint8_t reason;
    } miss;
    char key[];
};

/* Takes a reference; never NULL. */
struct cw_want *cw_want_get(struct cw_model *m, const Cw__JobSpec *s);
void cw_want_put(struct cw_model *m, struct cw_want *w); /* NULL allowed */
/* A want of its own, for a question about a spec that is no job (free it with cw_want_free). */
struct cw_want *cw_want_make(const Cw__JobSpec *s);
void cw_want_free(struct cw_want *w);
/* All tasks on one node: what they need there together. */
uint32_t cw_want_gpus(const struct cw_want *w);  /* of the whole job, on n_nodes 1 */
uint32_t cw_want_cores(const struct cw_want *w); /* of all tasks */
