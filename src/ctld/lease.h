#pragma once
/* Leases of allocations: whoever made one renews it; one that is not renewed in its time ends. Kept
 * in memory only: a controller that starts again gives each a fresh one, so that its own absence
 * ends nobody's work. Tested by stepbook_test.c and t2400-run.t. */
#include "ctld/ctld.h"

struct cw_leases;
struct cw_leases *cw_leases_create(struct cw_ctld *c);
void cw_leases_destroy(struct cw_leases *l); /* NULL allowed */
/* Begins or renews it. A job that is no allocation, or one without a lease: nothing happens. */
void cw_leases_renew(struct cw_leases *l, uint64_t id, const Cw__JobSpec *spec);
/* Ends those that have run out. The next time to look, or INT64_MAX. */
int64_t cw_leases_due(struct cw_leases *l, int64_t now_ns);
