#pragma once
/* How much memory processes of this machine may use: the smallest of MemTotal and every limit on
 * the way from our cgroup to its root, v1 and v2. Test: topomem_test.c. */
#include <stdint.h>

#include "base/error.h"

/* root: "" for this machine; tests name a directory that holds proc/ and the cgroup mounts. */
int cw_topomem_read(const char *root, uint64_t *ret_bytes, struct cw_error *err);
