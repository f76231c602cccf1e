#pragma once
/* What crun-ctl does to jobs and to the scheduling as a whole. Test: testsuite/t2120-retry.t. */
#include "base/error.h"
#include "ctld/ctld.h"
#include "ctld/cycle.h"
#include "wire/rpc_server.h"

struct cw_requeue {
    const struct cw_identity *who;
    struct cw_arena *arena;
    bool hold; /* what begins again waits for a release first */
};
/* A selector's running elements end and begin again as the next attempt. */
int cw_ctl_requeue(struct cw_ctld *c, const char *text, const struct cw_requeue *how,
                   struct cw_error *err);

#define CW_META_PAUSED "paused" /* key in table meta: nothing starts */
void cw_ctl_pause(struct cw_ctld *c, bool pause); /* kept over restarts */
int cw_ctl_pause_load(struct cw_ctld *c, struct cw_error *err); /* at start */
