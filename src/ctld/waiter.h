#pragma once
/* Long polls: calls that are answered when jobs or elements end, or when their time is up. They
 * hang on cw_job.waiters; their number is bounded, and each ends by its timer at the latest, so a
 * client that vanishes costs a little memory for a few minutes. */
#include "ctld/ctld.h"
#include "wire/rpc_server.h"

#define CW_WAITS_MAX 20000u       /* calls */
#define CW_WAITS_ITEMS_MAX 10000u /* jobs of one call */
#define CW_WAITS_TIMEOUT_MAX_MS 300000u

struct cw_wait_item {
    uint64_t id;
    bool is_element;
}; /* id of job or element */

struct cw_waits;
struct cw_waits *cw_waits_create(struct cw_ctld *c);
void cw_waits_destroy(struct cw_waits *w); /* drops the calls; NULL allowed */
/* Takes the call over. -EAGAIN: too many wait already (the call is still the caller's). */
int cw_waits_add(struct cw_waits *w, struct cw_rpc_call *call, const struct cw_wait_item *items,
                 size_t n, uint32_t timeout_ms, struct cw_error *err);
size_t cw_waits_count(const struct cw_waits *w);
void cw_waits_job_final(struct cw_waits *w, struct cw_job *j); /* inside its effect: unlinks them */
void cw_waits_job_changed(struct cw_waits *w, struct cw_job *j); /* an element may have ended */
