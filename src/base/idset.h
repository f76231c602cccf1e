#pragma once
/* A set of u64 kept as sorted, disjoint intervals, with the text form `0-3,7,10-20:5`.
 * Steps are expanded at parse time; format() prints the shortest ranges without steps.
 * An array of a million pending elements is one interval. Test: idset_test.c, fuzz_idset.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct cw_idrange { uint64_t first, last; }; /* both inclusive */
struct cw_idset {
    struct cw_idrange *r;
    size_t n, cap;
};
#define CW_IDSET_MAX_RANGES 100000 /* a parsed set with more is refused */

void cw_idset_fini(struct cw_idset *s);
/* Parses the whole of text[0..len), in any order, overlapping or not; no text is the empty set. On
 * error ret is untouched and the sentence names the column. max: the largest member allowed. ret:
 * zeroed or initialised. -EINVAL, -ERANGE. */
int cw_idset_parse(const char *text, size_t len, uint64_t max, struct cw_idset *ret,
                   struct cw_error *err);
void cw_idset_format(const struct cw_idset *s, struct cw_buf *out);
/* Both do nothing when first > last. */
void cw_idset_add(struct cw_idset *s, uint64_t first, uint64_t last);
void cw_idset_remove(struct cw_idset *s, uint64_t first, uint64_t last);
bool cw_idset_has(const struct cw_idset *s, uint64_t id);
uint64_t cw_idset_count(const struct cw_idset *s); /* UINT64_MAX when it does not fit */
bool cw_idset_empty(const struct cw_idset *s);
uint64_t cw_idset_first(const struct cw_idset *s); /* undefined when empty */
/* The k-th smallest member (k from 0); false when there is none. */
bool cw_idset_nth(const struct cw_idset *s, uint64_t k, uint64_t *ret);
/* How many members are smaller than id. */
uint64_t cw_idset_rank(const struct cw_idset *s, uint64_t id);
void cw_idset_copy(struct cw_idset *dst, const struct cw_idset *src); /* dst zeroed or initialised */
