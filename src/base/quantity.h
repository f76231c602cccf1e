#pragma once
/* Sizes and durations as people type them (FEATURES-BATCH 2.8), with checked 64-bit arithmetic and
 * printers whose output parses back to the same value. Test: quantity_test.c, fuzz_quantity.c. */
#include <stdint.h>
#include <stddef.h>

#include "base/error.h"

/* `<n>[.frac][K|M|G|T|P][i][B]`, base 1024, case-insensitive; no unit means unit_bytes (1 MiB for
 * --mem; at most 1 P). A fraction is rounded up to whole bytes. -EINVAL, -ERANGE. */
int cw_size_parse(const char *text, uint64_t unit_bytes, uint64_t *ret_bytes, struct cw_error *err);
/* Shortest exact form with a unit: 4G, 1536M, 1000B. buf of at least 32 bytes; returns buf. */
char *cw_size_format(uint64_t bytes, char *buf, size_t cap);

#define CW_DURATION_UNLIMITED UINT64_MAX
#define CW_DURATION_MAX UINT64_C(3155760000) /* 100 years: now plus this fits an int64 of ns */
/* `M | M:S | H:M:S | D-H | D-H:M | D-H:M:S | <n>{s,m,h,d,w}[more such parts] | infinite | unlimited | 0`
 * in seconds; a bare 0, infinite and unlimited give CW_DURATION_UNLIMITED (0s and 0:00 give 0).
 * A bare number is minutes. Parts go from large to small. -EINVAL; -ERANGE above CW_DURATION_MAX. */
int cw_duration_parse(const char *text, uint64_t *ret_seconds, struct cw_error *err);
/* [D-]HH:MM:SS, or "unlimited"; buf of at least 32 bytes; returns buf. */
char *cw_duration_format(uint64_t seconds, char *buf, size_t cap);
