#pragma once
/* After which ends a job is tried again (--retry-on): a list of `fail` (any end but success, cancel,
 * deadline), `exit:N`, `exit:N-M`, `signal:N` or `signal:NAME`, `oom`, `timeout`. Pure. Test:
 * retryrule_test.c. */
#include <stdbool.h>

#include "base/error.h"
#include "proto/job.pb-c.h"

#define CW_RETRYRULE_MAX 512 /* bytes */

/* -EINVAL with a sentence. */
int cw_retryrule_check(const char *text, struct cw_error *err);
/* NULL: fail. The attempt has its cause. */
bool cw_retryrule_matches(const char *text, const Cw__AttemptRecord *a);
/* What to say of it: "exit 75", "signal 9", "out of memory". */
const char *cw_retryrule_word(const Cw__AttemptRecord *a, char *buf, size_t cap);
