#pragma once
/* From what ended an attempt to its state, and from states to what people and programs see. One
 * table of states (name, two letters, terminal). Pure. Test: outcome_test.c.
 *
 * Exit status as crun-wait and crun-submit --wait give it: the leader's own; 128+S by a signal; 124
 * time limit; 253 out of memory; 241 cancelled; 242 a dependency can never be met; 245 node
 * failure; 246 could not be launched. A launch that failed by the user's fault keeps 126 or 127
 * when the supervisor set exit_code so (not executable, not found). The state wins over the exit
 * code. */
#include <stdbool.h>
#include "proto/wire.pb-c.h"

#define CW_EXIT_TIME_LIMIT 124
#define CW_EXIT_CANCELLED 241
#define CW_EXIT_DEPENDENCY 242
#define CW_EXIT_DEADLINE 243
#define CW_EXIT_PREEMPTED 244
#define CW_EXIT_NODE_FAIL 245
#define CW_EXIT_LAUNCH 246
#define CW_EXIT_OOM 253

/* JobRecord.reason of a job whose dependency can never be met. */
#define CW_OUTCOME_DEPENDENCY "DependencyNeverSatisfied"

Cw__State cw_outcome_state(const Cw__TaskEnd *e);       /* invariant 8: from cause */
int cw_outcome_exit_status(const Cw__AttemptRecord *a); /* -1: has not ended */
/* a NULL, or without a cause: by state alone (never ran). Pass a record with only the cause
 * CAUSE_DEPENDENCY to get 242 for a job that never ran. -1: has not ended. */
int cw_outcome_exit_status_job(Cw__State s, const Cw__AttemptRecord *a_or_null);
bool cw_state_terminal(Cw__State s);
const char *cw_state_name(Cw__State s);                /* "OUT_OF_MEMORY"; "UNKNOWN" */
const char *cw_state_letters(Cw__State s);             /* "OOM"; "??" */
bool cw_state_parse(const char *text, Cw__State *ret); /* either form, any case */
const char *cw_cause_name(Cw__Cause c);                /* "time limit" */
