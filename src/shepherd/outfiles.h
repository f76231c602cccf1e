#pragma once
/* The files of a task, opened as its user: working directory, input, output, error
 * (FEATURES-BATCH 2.4, C8, C9, E19). Every refusal names path, cause, user and node and is the
 * user's fault. Test: shepherd_test.c. */
#include "shepherd/task.h"

/* Checks the working directory, then opens fd_in, fd_out, fd_err and fills stdout_path,
 * stderr_path. Call between cw_runas_enter and leave. */
int cw_outfiles_open(struct cw_herd *h, struct cw_task *t, struct cw_error *err);
/* One file, between enter and leave: a descriptor or a negative errno. Parent directories of an
 * output are made. */
int cw_outfiles_open_output(const char *path, bool append);
int cw_outfiles_open_input(const char *path);
void cw_outfiles_close(struct cw_task *t);
/* Appends one line to the error file, as the user; a failure is not told (the record says the
 * same). */
void cw_outfiles_say(struct cw_herd *h, const struct cw_task *t, const char *line);
/* Opens a regular file for a reader of logs. Negative errno + sentence, or the descriptor. */
int cw_outfiles_open_log(struct cw_herd *h, uid_t uid, gid_t gid, const char *path,
                         struct cw_error *err);
