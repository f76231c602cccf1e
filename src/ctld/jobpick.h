#pragma once
/* One job or element that a request names by a selector ("12", "12_3", "12:2"). */
#include "ctld/jobview.h"
#include "spec/selector.h"

struct cw_jobpick {
    struct cw_jobsrc src;
    bool is_element; /* of an array */
    uint64_t ordinal;
    uint64_t element_id; /* what attempts are filed under; the array's own id without an element */
    uint32_t attempt;    /* 0: not named */
};
/* -EINVAL: no selector of one job; -ENOENT: "job 12_3 does not exist". Fini with
 * cw_jobsrc_fini(&ret->src). */
int cw_jobpick(struct cw_ctld *c, const char *text, struct cw_arena *a, struct cw_jobpick *ret,
               struct cw_error *err);
