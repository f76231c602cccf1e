#pragma once
/* Requests to steps, passed on by the node daemon with the facts of their tickets: START, READ,
 * WRITE, CTL, and STAT of a task. A READ or WRITE that cannot be answered waits here, at most its
 * wait_ms and 60 s. Test: step_test.c. */
#include "shepherd/step.h"

void cw_stepserve_call(struct cw_herd *h, const void *body, size_t n); /* a STEP_CALL packet */
void cw_stepserve_news(struct cw_step *s); /* output, an end, room for input: answer who waits */
void cw_stepserve_due(struct cw_step *s, int64_t now_ms); /* patience is over */
bool cw_stepserve_waiting(const struct cw_step *s);       /* a READ waits */
void cw_stepserve_drop(struct cw_step *s);                /* without an answer */
