#pragma once
/* Where our own files lie. The directories chosen at configure time hang together: when the running
 * program (/proc/self/exe) lies in a moved or staged copy of one of them, the others are looked for
 * in the same copy. $CRUN_LIBEXECDIR, $CRUN_SBINDIR and $CRUN_PLUGIN_PATH override (ignored when
 * running set-id). Strings live for ever. Thread: call each once before threads start.
 * Test: paths_test.c. */
const char *cw_paths_libexec(void); /* crun-shepherd, crun-cli */
const char *cw_paths_sbin(void);    /* crunctld, crund */
const char *cw_paths_plugins(void); /* the plugin directories, colon-separated */
/* The rule itself: where the configured directory target lies when the running program is exe and
 * the n configured directories are dirs (target among them). Heap string. */
char *cw_paths_moved(const char *exe, const char *target, const char *const *dirs, int n);
