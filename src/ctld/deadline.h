#pragma once
/* One timer for all deadlines: of attempts (time limits, patience with kills), of leases
 * (lease.h), of steps that nobody began (stepbook.h). */
#include "ctld/ctld.h"

struct cw_deadline;
struct cw_deadline *cw_deadline_create(struct cw_ctld *c);
void cw_deadline_destroy(struct cw_deadline *d); /* NULL allowed */
/* An attempt's deadline (real time, INT64_MAX none) may be nearer than the timer; allowed inside
 * model steps. */
void cw_deadline_touch(struct cw_deadline *d, int64_t deadline_ns);
void cw_deadline_run(struct cw_deadline *d); /* steps what has passed and sets the timer */
