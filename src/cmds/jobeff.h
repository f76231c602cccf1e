#pragma once
/* How much of what it had a job used: processor time of cores times run time, peak memory of
 * memory. Test: jobfields_test.c, t2510-acct.t. */
#include <jansson.h>

#include "cmds/jobfields.h"

struct cw_jobeff {
    uint64_t cores, cpu_ns, core_ns; /* used; cores times run time */
    uint64_t mem_used_bytes, mem_bytes;
    uint32_t gpus;
    bool has_cpu, has_mem; /* measured, and there was something to use */
};
void cw_jobeff_of(const struct cw_fieldrow *r, struct cw_jobeff *ret);
double cw_jobeff_cpu(const struct cw_jobeff *e); /* 0..1, more with unbound processes */
double cw_jobeff_mem(const struct cw_jobeff *e);
json_t *cw_jobeff_json(const struct cw_jobeff *e);
