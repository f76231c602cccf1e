#pragma once
/* What exact steps keep of an attempt's nodes, as sets and as the text of their rows
 * ("n1:0-3 n2:0-3"). Pure. Test: stepbook_test.c. */
#include "base/idset.h"
#include "ctld/steplayout.h"

struct cw_stephold {
    uint32_t n; /* nodes of the attempt */
    struct cw_idset *cores, *gpus;
    const Cw__AttemptRecord *rec;
};
void cw_stephold_init(struct cw_stephold *h, const Cw__AttemptRecord *rec);
void cw_stephold_fini(struct cw_stephold *h);
void cw_stephold_add(struct cw_stephold *h, const Cw__StepRecord *s);
/* Everything of the attempt but what this step has. */
void cw_stephold_all_but(struct cw_stephold *h, const Cw__StepRecord *s);
/* Into the row; its text lives in the arena. */
void cw_stephold_write(const struct cw_steplayout *l, Cw__StepRecord *s, bool gpus,
                       struct cw_arena *a);
