#pragma once
/* --signal: a signal some time before the time limit, once per attempt, to every process of the
 * task's box or to its leader alone. Test: shepherd_test.c, testsuite/t2210-signal.t. */
#include "shepherd/task.h"

/* After limit_at is known; without a limit nothing is sent. */
void cw_earlysignal_plan(struct cw_task *t, const Cw__TaskStart *s, int64_t now_ms);
/* The limit has moved from old_limit_at: so does the signal, if it is still to come. */
void cw_earlysignal_moved(struct cw_task *t, int64_t old_limit_at, int64_t now_ms);
void cw_earlysignal_due(struct cw_task *t, int64_t now_ms); /* sends it when its time has come */
