#pragma once
/* Group commit: what one turn of the loop decided becomes one durable transaction, and only then
 * its effects and replies happen (DESIGN.md 5.2). While one batch syncs on a worker, the next
 * collects.
 *
 * Rules for callers: put rows into cw_turn_batch() and register what must follow with
 * cw_turn_after(); never send anything directly that tells of a change. An after runs when every
 * row that was in an open batch at the time of the call is on disk, effects before replies, each
 * kind in order. A batch that cannot be committed stays, is tried again with back-off, and
 * everything behind it waits. Test: turn_test.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ctld/latency.h"
#include "loop/loop.h"
#include "store/store.h"

enum cw_turn_stage { CW_TURN_EFFECT, CW_TURN_REPLY, CW_TURN_STAGES };
/* committed is false only when the turn is destroyed first: free arg, do nothing else. */
typedef void (*cw_turn_fn)(void *arg, bool committed);

struct cw_turn_stats {
    uint64_t failures, afters;
    struct cw_latency latency; /* of commits, queueing for a worker included */
    int64_t last_ns, total_ns;
    size_t open_bytes, flying_bytes;
};

struct cw_turn;
struct cw_turn *cw_turn_create(struct cw_loop *l, struct cw_store *s);
void cw_turn_destroy(struct cw_turn *t);           /* NULL allowed; no batch may be in flight */
struct cw_batch *cw_turn_batch(struct cw_turn *t); /* the open one */
void cw_turn_after(struct cw_turn *t, enum cw_turn_stage stage, cw_turn_fn fn, void *arg);
/* Counts up whenever the open batch is closed: equal numbers share one transaction. */
uint64_t cw_turn_generation(const struct cw_turn *t);
bool cw_turn_flying(const struct cw_turn *t); /* a commit is in progress or being retried */
bool cw_turn_idle(const struct cw_turn *t);   /* nothing open, nothing in flight */
/* End of a loop turn: starts the commit of the open batch unless one is in flight. */
void cw_turn_end(struct cw_turn *t);
/* True while commits fail; err gets the reason of the last try. */
bool cw_turn_failing(const struct cw_turn *t, struct cw_error *err);
void cw_turn_get_stats(const struct cw_turn *t, struct cw_turn_stats *ret);
