#pragma once
/* The role table: which request goes to which handler and who may ask. It follows from CW_KINDS and
 * is closed by default: a kind without a handler here, or a caller below its role, is refused
 * before anything is decoded. Test: dispatch_test.c. */
#include <crunwlm/plugin.h>

#include "base/error.h"
#include "ctld/ctld.h"
#include "wire/kinds.h"
#include "wire/rpc_server.h"

void cw_dispatch(struct cw_rpc_call *call, void *ctld);
/* Pure: 0, or -EACCES / -ENOTSUP with a sentence. */
int cw_dispatch_check(const struct cw_ctld *c, enum cw_kind kind, const struct cw_identity *who,
                      struct cw_error *err);
