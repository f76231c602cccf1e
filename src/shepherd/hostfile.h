#pragma once
/* The file that CRUN_HOSTFILE of a job on several nodes names, for programs that start their own
 * processes there. It lies in node_dir/NAME/tasks as long as the task has its box. Text:
 * cw_jobenv_hostfile. Test: shepherd_test.c. */
#include "shepherd/task.h"

/* Makes t->hostfile; nothing where the job has one node, or its user could not read the file. */
int cw_hostfile_make(struct cw_herd *h, struct cw_task *t, struct cw_error *err);
void cw_hostfile_drop(struct cw_herd *h, struct cw_task *t);
char *cw_hostfile_path(const struct cw_herd *h, const char *key); /* heap */
