#pragma once
/* Nodes and partitions in the controller's memory, with the ledger of what is charged to whom.
 * Pure. Test: node_test.c. */
#include <stdbool.h>
#include <stdint.h>

#include "model/job.h"

struct cw_node {
    const char *name;    /* interned */
    uint32_t index;      /* dense, for masks */
    Cw__NodeRecord *rec; /* the stored truth (inventory, drain) */
    bool up;             /* session stands */
    bool lost;           /* silent beyond node_lost; attempts were given up */
    int64_t last_seen_ns;
    uint32_t launch_faults;  /* in a row, since something started here: it is taken last */
    bool faults_of_several;  /* of more than one job */
    uint64_t fault_job;
    uint32_t n_cores, words;
    uint64_t *core_free;                    /* ledger: set bits are free */
    uint64_t mem_total, mem_free, mem_used; /* free 0 when more is charged than there is */
    uint32_t gpus_total;
    uint64_t gpu_free;                            /* bit per entry of inventory->gpus, at most 64 */
    uint32_t *core_l3, *core_numa, *core_package; /* of core i of the list */
    uint32_t n_free;                              /* bits set in core_free */
    void *coremap; /* the scheduler's derived shape (cw_coremap), made when first needed */
    /* Set with it; called when the inventory changes or the node goes. */
    void (*coremap_free)(void *);
    struct cw_list parts; /* cw_part.on_node: what is charged here */
};
struct cw_partition {
    const char *name;
    uint16_t index; /* set by cw_model_partition_add */
    bool is_default;
    uint64_t max_time_s, default_time_s; /* 0: none */
    uint64_t default_mem_bytes;          /* 0: a job gets its cores' share of the node's memory */
    const char *isolation;               /* NULL: any */
    bool all_nodes;
    struct cw_strtable *nodes; /* names -> any non-NULL value; NULL with all_nodes */
};

struct cw_node *cw_model_node(struct cw_model *m, const char *name); /* NULL unknown */
/* NULL behind the last. */
struct cw_node *cw_model_node_at(struct cw_model *m, uint32_t i);
uint32_t cw_model_n_nodes(const struct cw_model *m);
/* Creates or refreshes a node from its record (copied); a changed inventory keeps the ledger of
 * live attempts. A known node keeps its drain fields: only cw_model_node_drain changes them.
 * Without inventory in rec the old one stays. Emits PUT_NODE when store is true, RUN_CYCLE when the
 * node is up. */
struct cw_node *cw_model_node_set(struct cw_model *m, const Cw__NodeRecord *rec, bool store,
                                  int64_t now_ns);
void cw_model_node_up(struct cw_model *m, struct cw_node *n, bool up, int64_t now_ns);
void cw_model_node_drain(struct cw_model *m, struct cw_node *n, bool drain, const char *reason,
                         uint32_t uid, int64_t now_ns);
/* Of a drained node: what still runs there then is cancelled or requeued (cw_model_deadlines). */
void cw_model_node_drain_until(struct cw_model *m, struct cw_node *n, int64_t deadline_ns,
                               bool requeue);
int cw_model_partition_add(struct cw_model *m, const struct cw_partition *p); /* copies; -EEXIST */
/* All of them anew, by name: jobs follow theirs, wait with PartitionDown for one that is gone, and
 * come back with it. Copies; -ENOSPC. */
int cw_model_partitions_set(struct cw_model *m, const struct cw_partition *list, size_t n);
const struct cw_partition *cw_model_partition(const struct cw_model *m, uint16_t index);
/* For name NULL the default one, else the first. NULL: unknown. */
const struct cw_partition *cw_model_partition_find(const struct cw_model *m, const char *name);
bool cw_partition_has(const struct cw_partition *p, const struct cw_node *n);
