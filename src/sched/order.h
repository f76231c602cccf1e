#pragma once
/* Keeps the model's queue in the order of the policy's priorities. Test: pass_test.c. */
#include "sched/pass.h"

/* Why a job has the rank that it has: an admin's number, or the policy's less its nice. */
struct cw_order_terms {
    int64_t policy, priority;
    bool is_set; /* by an admin: nothing else counts */
};
void cw_order_explain(const struct cw_model *m, const struct cw_pass_policy *p,
                      const struct cw_job *j, int64_t now_ns, struct cw_order_terms *ret);

#define CW_ORDER_REFRESH_NS INT64_C(1000000000) /* how old a priority may be */

/* Evaluates new jobs, and all of them when the last time is CW_ORDER_REFRESH_NS ago (policies may
 * age). Nothing without a policy: the queue is in submit order then. */
void cw_order_refresh(struct cw_model *m, const struct cw_pass_policy *p, int64_t now_ns);
