#pragma once
/* Becoming a daemon, and telling whoever started us that we are ready (CRUN_READY_FD, the parent of
 * --daemonize). */
#include <stdbool.h>

#include "base/error.h"

/* Forks; the parent waits until the child says ready or dies, and exits with 0 or 1. Returns in the
 * child, in a session of its own, with standard input from /dev/null. Before any thread is made. */
int cw_background_enter(struct cw_error *err);
/* In the child of cw_background_enter: output goes to this file from now on. */
int cw_background_log_to(const char *path, struct cw_error *err);
void cw_background_ready(void);
int cw_background_write_pid(const char *path, struct cw_error *err);
