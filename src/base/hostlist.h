#pragma once
/* Host lists: `n[01-12,20],gpu[1-2]-r[1-3]`. Expansion keeps zero padding; compression is its exact
 * inverse on a sorted list. Test: hostlist_test.c, fuzz_hostlist.c. */
#include "base/buf.h"
#include "base/error.h"

#define CW_HOSTLIST_MAX 100000 /* hosts in one list */

int cw_hostlist_parse(const char *text, struct cw_strv *ret, struct cw_error *err);
/* Sorts naturally (n2 before n10), drops doubles, folds one numeric field per name. */
void cw_hostlist_format(char *const *names, size_t n, struct cw_buf *out);
