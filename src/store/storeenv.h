#pragma once
/* Opening an LMDB environment the one way we do, and its errors as errno. Private to src/store.
 * Test: store_test.c. */
#include <lmdb.h>

/* With the largest map that the address space allows; flags as of mdb_env_open. An LMDB code. */
int cw_storeenv_open(const char *dir, unsigned flags, MDB_env **ret);
/* The negative errno for an LMDB code (0 for 0). */
int cw_storeenv_errno(int code);
