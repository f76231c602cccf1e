#pragma once
/* What some tasks of an element need of one node, how many tasks a node has room for, and the exact
 * cores and GPUs that they would get. Memory: what the job asked (a node, a core, a GPU); else the
 * partition's default_mem_bytes a core; else a share of the node's memory by cores. Pure. Test:
 * pass_test.c. */
#include "base/buf.h"
#include "model/job.h"
#include "model/node.h"
#include "topo/corepick.h"

struct cw_shape {
    const struct cw_partition *part;
    const struct cw_want *want;
    const char *isolation; /* NULL: any */
};
/* What a node has to spare; of the GPUs only those of the type asked count. */
struct cw_room {
    uint32_t cores, gpus;
    uint64_t mem;
    bool unused; /* nobody has anything of it */
};
/* What k tasks take of a node. */
struct cw_need {
    uint32_t cores, gpus;
    uint64_t mem;
};
/* What a node lacks, in the order in which people want to hear of it. */
enum cw_term {
    CW_TERM_NONE,
    CW_TERM_CORES,
    CW_TERM_MEM,
    CW_TERM_GPUS,
    CW_TERM_UNUSED, /* --exclusive, and somebody is there */
    CW_TERM_ISOLATION,
    CW_TERM_KIND /* constraint, node list, exclude */
};

/* False: partition gone. */
bool cw_shape_of_job(const struct cw_model *m, const struct cw_job *j, struct cw_shape *ret);
void cw_shape_of_want(const struct cw_want *w, const struct cw_partition *p, struct cw_shape *ret);
/* All tasks on one node is the only way. */
bool cw_shape_single(const struct cw_shape *s);
/* The fewest tasks that a node must have room for to be of use: all, or one. */
uint32_t cw_shape_least(const struct cw_shape *s);
struct cw_need cw_shape_need(const struct cw_shape *s, const struct cw_node *n, uint32_t tasks);
void cw_room_now(const struct cw_shape *s, const struct cw_node *n, struct cw_room *ret);
void cw_room_whole(const struct cw_shape *s, const struct cw_node *n, struct cw_room *ret);
bool cw_room_holds(const struct cw_shape *s, const struct cw_room *r, const struct cw_need *need);
/* The most tasks that fit, by cores, memory, GPUs and the job's own limit per node. */
uint32_t cw_shape_tasks(const struct cw_shape *s, const struct cw_node *n,
                        const struct cw_room *r);
/* Of the type asked. */
uint32_t cw_shape_gpus_free(const struct cw_shape *s, const struct cw_node *n);
uint32_t cw_shape_gpus_total(const struct cw_shape *s, const struct cw_node *n);
uint64_t cw_shape_gpu_mask(const struct cw_shape *s, const struct cw_node *n);
bool cw_node_usable(const struct cw_node *n); /* up, not lost, not drained, known inventory */
/* Is it of the kind asked: isolation, constraint, exclude, and of a list for one node. NONE,
 * ISOLATION or KIND. */
enum cw_term cw_shape_kind(const struct cw_shape *s, const struct cw_node *n);
bool cw_shape_prefers(const struct cw_shape *s, const struct cw_node *n);
bool cw_shape_lists(const struct cw_shape *s, const struct cw_node *n); /* named by --nodelist */
/* The whole node has room for all tasks, and it is a kind that may hold them alone. */
bool cw_shape_holds_all(const struct cw_shape *s, const struct cw_node *n);
/* For cw_shape_least tasks. Ever: of the whole node. */
enum cw_term cw_shape_lacks(const struct cw_shape *s, const struct cw_node *n);
/* Of what is free. */
enum cw_term cw_shape_lacks_now(const struct cw_shape *s, const struct cw_node *n);

/* A filled grant with everything that it points to. Zero-initialise; may be filled repeatedly. */
struct cw_placement {
    uint64_t cores[CW_COREPICK_MAX / 64];
    Cw__Grant grant;
    struct cw_buf core_text, cpu_text;
    Cw__GpuGrant gpus[64], *gpu_list[64];
};
/* n must not lack anything now. gpus: how many, where the job's total is spread over nodes. */
void cw_placement_fill(struct cw_placement *p, const struct cw_shape *s, struct cw_node *n,
                       uint32_t tasks, uint32_t gpus);
void cw_placement_fini(struct cw_placement *p);
