#pragma once
/* When a scheduling pass runs: after an event that may let something start, at most once per turn
 * and not while a commit is in flight, so that one pass serves all events of that time. */
#include "ctld/ctld.h"
#include "ctld/latency.h"

struct cw_cycle_stats {
    uint64_t started;
    int64_t last_ns;
    struct cw_latency latency; /* of passes */
};
struct cw_cycle;
struct cw_cycle *cw_cycle_create(struct cw_ctld *c);
void cw_cycle_destroy(struct cw_cycle *y);      /* NULL allowed */
void cw_cycle_want(struct cw_cycle *y);         /* allowed inside model steps */
bool cw_cycle_is_due(const struct cw_cycle *y); /* wanted, and nothing stands against it */
void cw_cycle_end_of_turn(struct cw_cycle *y);
void cw_cycle_get_stats(const struct cw_cycle *y, struct cw_cycle_stats *ret);
