#pragma once
/* Keeps room on the state directory's file system: below the reserve no new work is accepted, so
 * that what was accepted can still be finished and recorded. */
#include "base/error.h"
#include "ctld/ctld.h"

struct cw_diskguard;
struct cw_diskguard *cw_diskguard_create(struct cw_ctld *c);
void cw_diskguard_destroy(struct cw_diskguard *d); /* NULL allowed */
/* May new work be accepted? -ENOSPC with the numbers; -EAGAIN while commits fail. */
int cw_diskguard_check(struct cw_diskguard *d, struct cw_error *err);
uint64_t cw_diskguard_free_bytes(const struct cw_diskguard *d); /* as of the last look */
