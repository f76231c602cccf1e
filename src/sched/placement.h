#pragma once
/* What an element needs of one node (its shape), whether a node has it, and the exact cores and
 * GPUs that it would get. All tasks of a job run on one node. Memory: what the job asked; else the
 * partition's default_mem_bytes; else a share of the node's memory by cores (mem / cores of the
 * node * cores asked). Pure. Test: pass_test.c. */
#include "base/buf.h"
#include "model/job.h"
#include "model/node.h"
#include "topo/corepick.h"

struct cw_shape {
    const struct cw_partition *part;
    uint32_t cores, gpus;
    uint64_t mem_bytes;               /* 0: by share */
    const char *isolation, *gpu_type; /* NULL: any */
};
/* What a node lacks, in the order in which people want to hear of it. */
enum cw_term { CW_TERM_NONE, CW_TERM_CORES, CW_TERM_MEM, CW_TERM_GPUS, CW_TERM_ISOLATION };

/* False: partition gone. */
bool cw_shape_of_job(const struct cw_model *m, const struct cw_job *j, struct cw_shape *ret);
void cw_shape_of_spec(const Cw__JobSpec *s, const struct cw_partition *p, struct cw_shape *ret);
uint64_t cw_shape_mem(const struct cw_shape *s, const struct cw_node *n);
/* Of the type asked. */
uint32_t cw_shape_gpus_free(const struct cw_shape *s, const struct cw_node *n);
uint32_t cw_shape_gpus_total(const struct cw_shape *s, const struct cw_node *n);
bool cw_node_usable(const struct cw_node *n); /* up, not lost, not drained, known inventory */
/* Ever: of the whole node. */
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
/* n must not lack anything now. */
void cw_placement_fill(struct cw_placement *p, const struct cw_shape *s, struct cw_node *n);
void cw_placement_fini(struct cw_placement *p);
