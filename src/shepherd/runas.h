#pragma once
/* Who a task runs as: numeric ids, name, home, shell and supplementary groups, looked up once per
 * user for some seconds (a name service may be slow); and the switch that makes file calls act as
 * that user in a single-threaded process. An unknown uid works with its numbers alone. Test:
 * shepherd_test.c. */
#include <sys/types.h>

#include "base/error.h"

struct cw_runas {
    uid_t uid;
    gid_t gid;
    char name[64], *home, *shell; /* name: digits when unknown */
    gid_t *groups;
    int n_groups;
    int64_t fresh_until_ms;
};
struct cw_runas_cache;
struct cw_runas_cache *cw_runas_cache_create(void);
void cw_runas_cache_destroy(struct cw_runas_cache *c);
/* Valid until the next find of the same uid. */
struct cw_runas *cw_runas_find(struct cw_runas_cache *c, uid_t uid, gid_t gid, int64_t now_ms);
/* File calls act as the user until leave. Both do nothing when we are that user already. -EPERM:
 * this process can be no other user. */
int cw_runas_enter(struct cw_runas_cache *c, const struct cw_runas *as, struct cw_error *err);
void cw_runas_leave(struct cw_runas_cache *c);
