#pragma once
/* Waits until each of the jobs has had an event ("start", "running", any kind that crun-events
 * prints), also when that was long ago. An array counts with the first of its elements. Fails when a
 * job has ended without it. Tested by t2520-events.t. */
#include "cmds/cli.h"

/* The exit code. timeout_ms 0: for ever. */
int cw_eventwait(struct cw_cli *c, struct cw_strv *ids, const char *kind, uint64_t timeout_ms);
