#pragma once
/* Dates and times as people type them for --begin and --deadline (FEATURES-BATCH 2.8):
 *
 *   now | now+N[UNIT]                UNIT: s(econds), m(inutes), h(ours), d(ays), w(eeks); none: seconds
 *   HH:MM[:SS][am|pm]                the next time that the clock shows this
 *   midnight | noon                  the same for 00:00 and 12:00
 *   today | tomorrow                 at 00:00, or with "T" or a blank and a time behind it
 *   MMDDYY | MM/DD/YY | MM.DD.YY | YYYY-MM-DD     the same; YY is 20YY
 *   YYYY-MM-DDTHH:MM[:SS][Z|+hh:mm|-hh:mm]         with a zone of its own
 *
 * Without a zone the local one counts (TZ). Where summer time begins, a time that the clock skips is
 * as much later as it jumps; where it ends, of a time shown twice the first. Days and weeks of "now+"
 * are of 24 hours. Reads the zone and nothing else: the present is an argument. Test:
 * datetime_test.c, fuzz_datetime.c. */
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CW_DATETIME_MAX_YEAR 2199 /* nanoseconds since 1970 fit into an int64 until 2262 */

/* -EINVAL with what is wrong, -ERANGE before 1970 or behind CW_DATETIME_MAX_YEAR. */
int cw_datetime_parse(const char *text, int64_t now_ns, int64_t *ret_ns, struct cw_error *err);
/* "2026-12-01T16:00:00Z": parses back to the same second. buf of at least 32 bytes; returns buf. */
char *cw_datetime_format(int64_t ns, char *buf, size_t cap);
