#pragma once
/* The usable nodes of one pass, by how many cores are free: best fit finds its node at the first
 * try instead of looking at all of them. Among nodes with the same number the lowest index comes
 * first, then one that just got something. Test: pass_test.c. */
#include "sched/placement.h"

struct cw_freenodes;
struct cw_freenodes *cw_freenodes_create(struct cw_model *m);
void cw_freenodes_destroy(struct cw_freenodes *f);
/* The node with the fewest free cores that lacks nothing now; one whose last launch failed only
 * when there is no other; NULL. */
struct cw_node *cw_freenodes_find(struct cw_freenodes *f, const struct cw_shape *s);
void cw_freenodes_update(struct cw_freenodes *f, const struct cw_node *n); /* after a grant */
bool cw_freenodes_exhausted(const struct cw_freenodes *f); /* no core is free anywhere */
