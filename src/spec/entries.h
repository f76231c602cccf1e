#pragma once
/* Entries of an array: the lines of a text, or the values of a JSON array. Each element finds its own
 * in CRUN_ENTRY. Makes array 0..N-1 in the request. Pure. Test: entries_test.c, fuzz_entries.c. */
#include "spec/options.h"

#define CW_ENTRIES_MAX (512u * 1024u) /* bytes of the file: entries travel in one request */

/* Lines end with a newline, the last may lack it; empty ones count. -EINVAL: a NUL byte, no line,
 * an --array beside it. */
int cw_entries_lines(struct cw_request *r, const char *text, size_t n, struct cw_error *err);
/* Strings are entries as they are, other values as compact JSON. -EINVAL with line and column. */
int cw_entries_json(struct cw_request *r, const char *text, size_t n, struct cw_error *err);
