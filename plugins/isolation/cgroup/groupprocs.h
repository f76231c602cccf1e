#pragma once
/* The processes of a group: a walk over cgroup.procs of it and of the groups below it. */
#include <sys/types.h>

/* Sends sig (0: only counts) to every process; how many there are, or a negative errno. A group
 * that does not exist has none. */
int groupprocs_signal(int base, const char *key, int sig);
/* Waits by pidfd until the tree is empty; -EBUSY when the time is over. */
int groupprocs_await_empty(int base, const char *key, int timeout_ms);
