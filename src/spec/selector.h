#pragma once
/* Job selectors as people type them: "12", "12_3", "12_[0-3,7]", "12_*", "5-9", "12:2" (attempt);
 * lists of them are split at commas outside brackets. Pure. Test: selector_test.c, fuzz_selector.c.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/idset.h"
#include "base/mem.h"
#include "proto/job.pb-c.h"

#define CW_SELECTOR_MAX_ID ((uint64_t)INT64_MAX) /* so that loops over a range of ids end */
#define CW_SELECTOR_MAX_DEPENDENCIES 1024
#define CW_SELECTOR_MAX_DELAY_MIN 525600u /* a year */

struct cw_selector {
    uint64_t first, last;    /* job ids; equal but for "5-9" */
    bool has_indices;        /* "_..." was given; "_*" counts as not given: it means all */
    struct cw_idset indices; /* array indices */
    uint32_t attempt;        /* 0: not given */
};
/* One selector. */
int cw_selector_parse(const char *text, struct cw_selector *ret, struct cw_error *err);
void cw_selector_fini(struct cw_selector *s);
/* "12,14_[1,2]" into "12" and "14_[1,2]"; an empty item is refused. Appends. */
int cw_selector_split(const char *text, struct cw_strv *ret, struct cw_error *err);
/* "12" or "12_3": array_id 0 for a plain job. buf of 48 bytes. */
char *cw_selector_format(uint64_t id, uint64_t array_id, uint64_t index, char *buf, size_t cap);
/* "afterok:12:13,afterany:14_*,afterok:15_3" into dependencies (allocated in the arena). Knows the
 * grammar of all kinds; which of them are carried out is cw_check_dependency_kind's. "after:12+5"
 * means five minutes after its start. `?` instead of the commas: one of them is enough. */
int cw_dependency_parse(const char *text, struct cw_arena *a, size_t *ret_n, Cw__Dependency ***ret,
                        bool *ret_any, struct cw_error *err);
