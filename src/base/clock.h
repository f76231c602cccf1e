#pragma once
/* The two clocks. Pure code never calls these: time is an argument there. Test: none (one line each). */
#include <stdint.h>
#include <stddef.h>

#define CW_NS_PER_S 1000000000LL
#define CW_NS_PER_MS 1000000LL

int64_t cw_clock_real_ns(void); /* since 1970, may jump */
int64_t cw_clock_mono_ns(void); /* since boot, for durations and deadlines */
/* RFC 3339 in UTC with seconds, e.g. 2026-11-30T20:47:52Z; returns buf. */
char *cw_clock_format(int64_t real_ns, char *buf, size_t cap);
