#pragma once
/* Our sockets: one for commands, one for nodes, the door. Opened last, when everything behind them
 * stands. */
#include "base/error.h"
#include "ctld/ctld.h"

int cw_listeners_open(struct cw_ctld *c, struct cw_error *err);
void cw_listeners_close(struct cw_ctld *c);
