#pragma once
/* Where our own files lie, found from /proc/self/exe so that a tree can be moved or staged:
 * PREFIX/bin, PREFIX/sbin and PREFIX/lib/crun-wlm hang together. $CRUN_LIBEXECDIR and
 * $CRUN_PLUGIN_PATH override (ignored when running set-id). Strings live for ever. Thread: call once
 * before threads start. Test: paths_test.c. */
const char *cw_paths_libexec(void); /* crun-shepherd, crun-cli: PREFIX/lib/crun-wlm */
const char *cw_paths_sbin(void);    /* crunctld, crund */
const char *cw_paths_plugins(void); /* PREFIX/lib/crun-wlm/plugins */
