/* See eventquery.h. */
#include "cmds/eventquery.h"

#include <stdio.h>

#include "base/clock.h"

#define POLL_MS 60000u  /* one long poll; the answer comes as soon as there is an event */
#define GRACE_MS 60000u /* the controller may restart meanwhile */

static uint32_t wait_of(const struct cw_eventquery *q)
{
    uint64_t spent = (uint64_t)(cw_clock_mono_ns() / CW_NS_PER_MS - q->start_ms);
    if (q->timeout_ms == 0)
        return POLL_MS;
    if (spent >= q->timeout_ms)
        return 0;
    return q->timeout_ms - spent < POLL_MS ? (uint32_t)(q->timeout_ms - spent) : POLL_MS;
}

int cw_eventquery_each(struct cw_cli *c, struct cw_eventquery *q,
                       bool (*fn)(const Cw__EventRecord *e, void *arg), void *arg)
{
    if (q->start_ms == 0)
        q->start_ms = cw_clock_mono_ns() / CW_NS_PER_MS;
    Cw__EventsRequest *req = &q->req;
    req->has_wait_ms = true;
    for (;;) {
        ProtobufCMessage *m;
        req->wait_ms = q->follow ? wait_of(q) : 0;
        bool last = q->follow && req->wait_ms == 0;
        if (q->follow)
            fflush(stdout);
        cw_arena_reset(c->arena);
        int rc = cw_cli_call(c, CW_KIND_EVENTS, &req->base, req->wait_ms + GRACE_MS, &m);
        if (rc >= 0)
            return rc;
        const Cw__EventsReply *r = (const Cw__EventsReply *)m;
        for (size_t i = 0; i < r->n_events; i++)
            if (!fn(r->events[i], arg)) {
                req->has_after_seq = true;
                req->after_seq = r->events[i]->seq;
                return -1;
            }
        req->has_after_seq = true;
        req->after_seq = r->last_seq;
        if (r->more)
            continue;
        if (!q->follow)
            return -1;
        if (last)
            return CW_EVENTQUERY_TIMED_OUT;
    }
}
