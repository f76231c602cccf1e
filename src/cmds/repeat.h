#pragma once
/* -i SECONDS of the query commands: the same answer again until interrupted. On a terminal the
 * screen is cleared before each. */
#include "cmds/cli.h"

/* every_s 0: once. Returns what fn returned last (-1: all is well), 130 when interrupted. */
int cw_repeat(struct cw_cli *c, uint64_t every_s, int (*fn)(struct cw_cli *c, void *arg), void *arg);
