#pragma once
/* For tests of model and sched: a model whose effects are kept as the rows that a store would hold,
 * and short ways to make nodes and jobs. Steps that a test takes go to the model itself. */
#include "base/buf.h"
#include "base/table.h"
#include "model/job.h"
#include "model/node.h"

struct fix {
    struct cw_model *m;
    struct cw_idtable *jobs, *attempts; /* stored rows: id, id << 20 | attempt -> struct cw_buf */
    struct cw_buf trail; /* effects since fix_trail, one word each: "put-job event:start ..." */
    struct cw_buf taken;
    uint64_t n_effects, n_done, n_final, n_start;
    uint64_t last_final;
    Cw__State last_final_state;
    char last_reason[64]; /* of the last final job */
};
struct fix_job {
    const char *array, *partition, *isolation, *gpu_type, *name;
    const char *nodelist, *exclude, *constraint, *prefer;
    uint32_t cores, gpus, throttle, uid;
    uint32_t ntasks, nodes_min, nodes_max, per_node, gpus_node, gpus_task; /* 0: not asked */
    uint64_t mem_cpu, time_est_s;
    bool exclusive;
    int64_t begin_ns, deadline_ns; /* 0: not asked */
    uint32_t retries, retry_delay_s;
    uint64_t delay_s; /* of the first dependency */
    bool any;         /* one dependency is enough */
    uint64_t mem_bytes, time_limit_s;
    bool hold, no_requeue;
    struct {
        Cw__DependencyKind kind;
        uint64_t id;
        bool satisfied;
    } deps[4]; /* kind 0 ends */
};

void fix_init(struct fix *f);
void fix_fini(struct fix *f);
const char *fix_trail(struct fix *f); /* the trail up to now; the next starts empty. Valid until
                                       * the next call */
void fix_partition(struct fix *f, const struct cw_partition *p);
/* Cores 0..n-1, two threads each (cpus 2i, 2i+1), an L3 per 4 cores, a NUMA node and package per 8;
 * GPUs alternate between NUMA 0 and 1 when there are two. Up. */
/* What of a spec decides where it can run. */
void fix_spec(const struct fix_job *j, Cw__JobSpec *s, Cw__Settings *t);
void fix_labels(struct fix *f, struct cw_node *n, const char *labels); /* "a,b" */
struct cw_node *fix_node(struct fix *f, const char *name, uint32_t cores, uint64_t mem,
                         uint32_t gpus, const char *gpu_model);
int fix_try_submit(struct fix *f, const struct fix_job *j, struct cw_job **ret,
                   struct cw_error *err);
struct cw_job *fix_submit(struct fix *f, const struct fix_job *j); /* must succeed */
/* Grants the first free cores of n to the element that comes next; NULL when it does not fit. */
struct cw_attempt *fix_grant(struct fix *f, struct cw_job *j, struct cw_node *n, int64_t now_ns);
/* The same on each of n nodes (at most 8), the first is the head. */
struct cw_attempt *fix_grant_on(struct fix *f, struct cw_job *j, struct cw_node *const *nodes,
                                size_t n, int64_t now_ns);
/* What the head says; what one node says. */
int fix_emptied(struct fix *f, uint64_t id, uint32_t attempt, int64_t now_ns);
int fix_part_started(struct fix *f, const struct cw_node *n, uint64_t id, uint32_t attempt,
                     int64_t now_ns);
int fix_part_ended(struct fix *f, const struct cw_node *n, uint64_t id, uint32_t attempt,
                   Cw__Cause cause, uint32_t code, bool empty, int64_t now_ns);
int fix_started(struct fix *f, uint64_t id, uint32_t attempt, int64_t now_ns);
int fix_ended(struct fix *f, uint64_t id, uint32_t attempt, Cw__Cause cause, uint32_t code,
              bool empty, int64_t now_ns);
/* A second model made from the stored rows only, with a store of its own that holds the same. */
void fix_restore(const struct fix *f, struct fix *ret);
/* Rows and ledgers of both are the same; the first difference goes to ret. */
bool fix_same(struct fix *a, struct fix *b, struct cw_buf *ret);
