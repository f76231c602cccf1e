#pragma once
/* Named points at which a daemon can be told to die, so that tests can prove what survives.
 *
 * CRUN_FAULT="turn.before-commit:kill" kills the process with SIGKILL when it gets there the first
 * time; ":kill=N" at the N-th time; ":fail=E[,N]" makes cw_crashpoint_fail return -E (an errno name
 * or number) at the N-th time only (every time without N); several are separated by ';'.
 * Compiled out by --disable-faultinject. Unknown names are harmless. Thread-safe.
 * All names in use are listed in doc/HACKING.md. Test: crashpoint_test.c. */
void cw_crashpoint_init(void); /* reads CRUN_FAULT; call once at start */
void cw_crashpoint(const char *name);
int cw_crashpoint_fail(const char *name); /* 0, or the negative errno to pretend */
