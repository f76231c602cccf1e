#pragma once
/* The controller about itself (crun-diag, crun-ctl diag). Answers while the disk does not: it reads
 * counters and the store's sizes only. Tested by t2530-diag.t. */
#include <jansson.h>

#include "base/buf.h"
#include "ctld/ctld.h"

json_t *cw_diagnosis_json(struct cw_ctld *c); /* doc/schema/diag.json but for its frame */
void cw_diagnosis_text(json_t *o, struct cw_buf *out);
