#pragma once
/* One row from what the nodes of a step say one by one. It runs when all have begun it, has ended
 * when all say so; its exit code is the highest, its signal and message are the first, its cause is
 * the first that is not a plain exit; usage is summed, peaks are the highest. Saying a thing twice
 * changes nothing. Pure. Test: stepbook_test.c. */
#include "base/error.h"
#include "proto/wire.pb-c.h"

enum cw_stepmerge_news {
    CW_STEPMERGE_NOTHING,
    CW_STEPMERGE_PART,    /* the row has changed, no more */
    CW_STEPMERGE_STARTED, /* all run now */
    CW_STEPMERGE_ENDED    /* all have ended: its state is terminal */
};
/* rec is a heap message (free_unpacked). node: who says it. */
enum cw_stepmerge_news cw_stepmerge(Cw__StepRecord *rec, const char *node, const Cw__StepReport *r,
                                    int64_t now_ns);
/* Ends it for another reason. message NULL: none. */
void cw_stepmerge_close(Cw__StepRecord *rec, Cw__Cause cause, Cw__State state, const char *message,
                        int64_t end_ns);
/* For the history: "step 0 (name): 4 tasks on 2 nodes" or how it ended. */
void cw_stepmerge_text(const Cw__StepRecord *rec, char *buf, size_t cap);
