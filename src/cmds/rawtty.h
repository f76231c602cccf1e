#pragma once
/* The terminal in raw mode, and back on every way out: exit, a deadly signal. One at a time. Test:
 * t2400-run.t. */
#include "base/error.h"

int cw_rawtty_enter(int fd, struct cw_error *err); /* -ENOTTY: it is no terminal */
void cw_rawtty_leave(void);                        /* nothing when not entered */
/* Its size; 0 when it has none. */
void cw_rawtty_size(int fd, unsigned *ret_rows, unsigned *ret_cols);
