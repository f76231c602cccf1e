#pragma once
/* The configuration read again while the controller runs. All or nothing: an error leaves what was.
 * Test: testsuite/t2700-admin.t. */
#include "base/hostlist.h"
#include "ctld/ctld.h"

/* What of the new file needs a restart is named in ret, which gets the answer as one line. */
int cw_reload(struct cw_ctld *c, uint32_t uid, struct cw_buf *ret, struct cw_error *err);
enum cw_backfill cw_reload_backfill(const struct cw_conf *conf);
/* ret->nodes is the caller's (NULL: all nodes), its keys live in names. */
int cw_partition_of_conf(const struct cw_conf *conf, const struct cw_conf_partition *p,
                         struct cw_partition *ret, struct cw_strv *names, struct cw_error *err);
