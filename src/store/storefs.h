#pragma once
/* Where a store may lie: shared maps and fcntl locks are not safe on remote file systems.
 * Test: storefs_test.c. */
#include "base/error.h"

/* -ENOTSUP names the kind of file system. CRUN_STORE_ANY_FS=1 in the environment overrules. */
int cw_storefs_check(const char *dir, struct cw_error *err);
/* The name of a remote file system by statfs(2)'s f_type, NULL for others. */
const char *cw_storefs_remote(unsigned long type);
