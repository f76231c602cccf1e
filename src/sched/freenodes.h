#pragma once
/* The usable nodes of one pass, by how many cores are free: best fit finds its node at the first
 * try instead of looking at all of them. Among nodes with the same number the lowest index comes
 * first, then one that just got something. Test: pass_test.c. */
#include "sched/placement.h"
#include "sched/timeline.h"

struct cw_freenodes;
struct cw_freenodes *cw_freenodes_create(struct cw_model *m, int64_t now_ns);
void cw_freenodes_destroy(struct cw_freenodes *f);
/* The node with the fewest free cores that has room for all tasks now, a preferred one if any does;
 * one whose last launch failed only when there is no other; NULL. With t no reservation is touched
 * for the len_ns that they will stay. */
struct cw_node *cw_freenodes_find(struct cw_freenodes *f, const struct cw_shape *s,
                                  struct cw_timeline *t, int64_t len_ns);
/* The same for several nodes: all or nothing. */
bool cw_freenodes_find_several(struct cw_freenodes *f, const struct cw_shape *s,
                               struct cw_timeline *t, int64_t len_ns, struct cw_picks *ret);
/* No node of the partition, as it is now, could hold all tasks even when it is empty. */
bool cw_freenodes_needs_several(struct cw_freenodes *f, const struct cw_shape *s);
void cw_freenodes_update(struct cw_freenodes *f, const struct cw_node *n); /* after a grant */
bool cw_freenodes_exhausted(const struct cw_freenodes *f); /* no core is free anywhere */
