#pragma once
/* Reading a whole data file in a forked child, so that a damaged one kills the child and not us.
 * Private to src/store. Test: storedamage_test.c. */
#include "store/store.h"

/* dir holds a data file and nobody has it open. -EBADMSG: it cannot be used; rows that merely fail
 * their checksum are counted in ret. Forks: call before there are threads. */
int cw_storecheck_run(const char *dir, struct cw_store_check *ret, struct cw_error *err);
