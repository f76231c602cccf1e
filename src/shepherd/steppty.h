#pragma once
/* A terminal for one rank of a step: a pair of descriptors and a window size. The slave belongs to
 * the user, so that /dev/tty and its name can be opened again. Test: steppty_test.c. */
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* root: may give the slave away. Master is non-blocking; both are CLOEXEC. */
int cw_steppty_open(uid_t uid, bool root, uint32_t rows, uint32_t cols, int *ret_master,
                    int *ret_slave, struct cw_error *err);
/* The kernel tells the foreground group (SIGWINCH). */
int cw_steppty_window(int master, uint32_t rows, uint32_t cols);
