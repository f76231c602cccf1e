#pragma once
/* The history as followers see it: what is committed, and the long polls that wait for more.
 *
 * Event numbers rise and batches commit in order, so what the store shows is a prefix without gaps:
 * a cursor (the number of the last event looked at) loses nothing between two questions. Followers
 * are woken by commits, never by time; all of them share one reading of the new rows, in slices
 * whose cost does not grow with their number. Tested by the component test and t2520-events.t. */
#include "base/idset.h"
#include "ctld/ctld.h"
#include "proto/wire.pb-c.h"
#include "wire/rpc_server.h"

#define CW_EVENTLOG_FOLLOWERS_MAX 4096u
#define CW_EVENTLOG_WAIT_MAX_MS 300000u
#define CW_EVENTLOG_PAGE_MAX 1000u

/* Which events somebody asked for and may see. */
struct cw_eventsel {
    struct cw_idset ids; /* of jobs and elements; looked at only with has_ids */
    bool has_ids, all;   /* all: an administrator, who sees other people's and the nodes' too */
    uint32_t uid;
    char *const *kinds; /* none: every kind; borrowed from the request */
    size_t n_kinds;
};
bool cw_eventsel_match(const struct cw_eventsel *s, const Cw__EventRecord *r);

struct cw_eventlog;
struct cw_eventlog *cw_eventlog_create(struct cw_ctld *c);
/* Ends the long polls; before the turn goes. NULL allowed. */
void cw_eventlog_drop(struct cw_eventlog *l);
void cw_eventlog_destroy(struct cw_eventlog *l); /* NULL allowed */
/* An event of this number was put into the open batch. */
void cw_eventlog_note(struct cw_eventlog *l, uint64_t seq);
void cw_eventlog_set(struct cw_eventlog *l, uint64_t seq); /* recovery: the last one stored */
uint64_t cw_eventlog_committed(const struct cw_eventlog *l);
uint64_t cw_eventlog_noted(const struct cw_eventlog *l); /* the last one put into a batch */
size_t cw_eventlog_n_followers(const struct cw_eventlog *l);
/* Takes call and sel over: answered when an event behind `cursor` fits, or empty when the time is
 * up. -EAGAIN: too many follow already (both are still the caller's). */
int cw_eventlog_follow(struct cw_eventlog *l, struct cw_rpc_call *call, struct cw_eventsel *sel,
                       uint64_t cursor, size_t limit, uint32_t wait_ms, struct cw_error *err);
