#pragma once
/* Job selectors as people type them: "12", "12_3", "12_[0-3,7]", "5-9,12", "12:2" (attempt). Pure.
 * Test: selector_test.c, fuzz/fuzz_selector.c. */
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/idset.h"

struct cw_selector {
    uint64_t first, last;      /* job ids; equal but for "5-9" */
    bool has_indices;          /* "_..." was given */
    struct cw_idset indices;   /* array indices */
    uint32_t attempt;          /* 0: not given */
};
int cw_selector_parse(const char *text, struct cw_selector *ret, struct cw_error *err); /* one selector */
void cw_selector_fini(struct cw_selector *s);
/* "12" or "12_3": array_id 0 for a plain job. buf of 48 bytes. */
char *cw_selector_format(uint64_t id, uint64_t array_id, uint64_t index, char *buf, size_t cap);
/* "afterok:12:13,afterany:14_*" into dependencies (allocated in the arena). */
struct cw_arena;
#include "proto/job.pb-c.h"
int cw_dependency_parse(const char *text, struct cw_arena *a, size_t *ret_n, Cw__Dependency ***ret, struct cw_error *err);
