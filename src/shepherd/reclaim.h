#pragma once
/* What a dead shepherd left: kills and removes the boxes of its unfinished tasks and writes an end
 * for each into its journal, so that the node daemon can report them. Runs as `crun-shepherd
 * --reclaim`. Test: shepherd_test.c. */
#include "shepherd/task.h"

/* h->journal is that journal, path its file. 0: every task has an end and no box is left. 1: every
 * task has an end, but some box would not go; try again later. */
#define CW_RECLAIM_EXIT_LEFT 3 /* exit code of the program for 1 */
int cw_reclaim(struct cw_herd *h, const char *path, struct cw_error *err);
