#pragma once
/* A point in the past as options take it: how long ago (2h, 7d, 1w2d), or a moment in local time
 * (now, now-2hours, today, midnight, 2026-11-30, 2026-11-30T20:47[:52][Z]). -EINVAL. Test:
 * jobfields_test.c. */
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

int cw_since_parse(const char *text, int64_t now_ns, int64_t *ret_ns, struct cw_error *err);
int64_t cw_since_midnight(int64_t now_ns); /* of the local day */
