#pragma once
/* A JobInfo as text fields and as the JSON object that every command prints (doc/schema/job.json).
 * Test: jobtext_test.c. */
#include <jansson.h>

#include "base/buf.h"
#include "proto/wire.pb-c.h"

/* 12, 12_3, 12_[0-9%2]. max 0: the whole list of indices; else it is cut behind max bytes, with "...". */
char *cw_jobtext_id(const Cw__JobInfo *j, size_t max, struct cw_buf *out); /* out's text */
char *cw_jobtext_elapsed(const Cw__JobInfo *j, int64_t now_ns, char *buf,
                         size_t cap); /* [D-]H:MM:SS or M:SS */
/* Node name for a started job, "(Reason)" for a waiting one. */
void cw_jobtext_place(const Cw__JobInfo *j, struct cw_buf *out);
json_t *cw_jobtext_usage_json(const Cw__Usage *u);
json_t *cw_jobtext_step_json(const Cw__StepRecord *s);
json_t *cw_jobtext_json(const Cw__JobInfo *j);
