#pragma once
/* Asking for events page by page, each once and in order; the cursor is the only state, so a
 * controller that restarts between two pages costs nothing. */
#include "cmds/cli.h"

struct cw_eventquery {
    Cw__EventsRequest req; /* ids, kinds, where to begin */
    bool follow;           /* wait for more at the end of what is stored */
    uint64_t timeout_ms;   /* of all calls together; 0: for ever */
    int64_t start_ms;      /* own */
};
/* fn returns false to stop; the next call goes on behind that event. What was printed is flushed before each wait. -1 when it is at its end
 * or was stopped; CW_EVENTQUERY_TIMED_OUT; else an exit code, error printed (130: interrupted). */
#define CW_EVENTQUERY_TIMED_OUT (-2)
int cw_eventquery_each(struct cw_cli *c, struct cw_eventquery *q,
                       bool (*fn)(const Cw__EventRecord *e, void *arg), void *arg);
