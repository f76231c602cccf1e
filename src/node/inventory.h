#pragma once
/* What this node offers: cores (hwloc) less the reserve, memory less the reserve, GPUs (gpu
 * plugins), what the kernel can do, isolations that work. Test: inventory_test.c. */
#include "base/mem.h"
#include "node/crund.h"
#include "proto/job.pb-c.h"

/* Everything lies in the arena. Fails when the reserves leave nothing. */
int cw_inventory_make(struct cw_node *n, const struct cw_strv *isolations, struct cw_arena *a,
                      Cw__Inventory **ret, struct cw_error *err);
