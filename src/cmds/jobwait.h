#pragma once
/* Waiting for jobs to end, with a status line on a terminal, and the exit code that follows from
 * how they ended (FEATURES-BATCH 2.6: the worst one). Test: testsuite/t1040-wait.t. */
#include "cmds/cli.h"

/* timeout_ms 0: for ever. The exit code: the worst exit status of the jobs; 130 when interrupted
 * (the jobs go on); 1 when the time is up. With --json prints the jobs. */
int cw_jobwait(struct cw_cli *c, char *const *ids, size_t n, uint64_t timeout_ms);
