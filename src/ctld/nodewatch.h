#pragma once
/* Nodes that stay silent: after node_lost_s their attempts are given up. A controller that has just
 * started waits as long before it judges anyone (FEATURES-BATCH X23). */
#include "ctld/ctld.h"

struct cw_nodewatch;
struct cw_nodewatch *cw_nodewatch_create(struct cw_ctld *c);
void cw_nodewatch_destroy(struct cw_nodewatch *w); /* NULL allowed */
