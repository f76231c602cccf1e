#pragma once
/* From what ended an attempt to its state, and from states to what people and programs see. One table of
 * states (name, two letters, terminal). Pure. Test: outcome_test.c. */
#include <stdbool.h>
#include "proto/wire.pb-c.h"

Cw__State cw_outcome_state(const Cw__TaskEnd *e);                 /* invariant 8: from cause */
int cw_outcome_exit_status(const Cw__AttemptRecord *a);           /* FEATURES-BATCH 2.6 */
int cw_outcome_exit_status_job(Cw__State s, const Cw__AttemptRecord *a_or_null); /* never ran: 241, 242, ... */
bool cw_state_terminal(Cw__State s);
const char *cw_state_name(Cw__State s);                           /* "OUT_OF_MEMORY" */
const char *cw_state_letters(Cw__State s);                        /* "OOM" */
bool cw_state_parse(const char *text, Cw__State *ret);            /* either form, any case */
const char *cw_cause_name(Cw__Cause c);                           /* "time limit" */
