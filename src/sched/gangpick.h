#pragma once
/* Which nodes an element on several gets and how its tasks are spread, from what each node has room
 * for: all or nothing. Listed nodes are always in it; preferred ones come first. With a number of
 * nodes given the tasks are spread evenly over the fewest free cores that do; else as few nodes as
 * hold them. Pure. Test: pass_test.c with the cases
 * several-nodes, several-gpus, labels, one-node-first. */
#include "sched/placement.h"

struct cw_candidate {
    struct cw_node *node;
    uint32_t tasks; /* room for so many, at least 1 */
    uint32_t free;  /* cores, to choose the tightest */
    bool listed, preferred;
};
struct cw_pick {
    struct cw_node *node;
    uint32_t tasks, gpus;
};
struct cw_picks { /* in the order of task numbers; n 0: none */
    struct cw_pick *v;
    uint32_t n, cap;
};
void cw_picks_fini(struct cw_picks *p);
/* Sorts the candidates. False: they do not do. */
bool cw_gangpick(const struct cw_want *w, struct cw_candidate *c, uint32_t n, struct cw_picks *ret);
void cw_picks_one(struct cw_picks *p, struct cw_node *n, const struct cw_want *w);
