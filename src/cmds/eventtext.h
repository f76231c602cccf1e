#pragma once
/* An EventRecord as a line and as the JSON object that crun-events prints (doc/schema/event.json).
 * Tested by t2520-events.t. */
#include <jansson.h>

#include "base/buf.h"
#include "proto/wire.pb-c.h"

/* 2026-11-30T20:47:52Z  12_3 attempt 1  start  on n1: cores 0-1 */
void cw_eventtext_line(const Cw__EventRecord *e, struct cw_buf *out);
json_t *cw_eventtext_json(const Cw__EventRecord *e);
