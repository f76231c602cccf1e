#pragma once
/* The environment of a task: the payload's env, then CRUN_* and, when asked, their SLURM_* twins.
 * User values never override the set that the system owns (jobenv.c lists it); HOME, USER, LOGNAME,
 * SHELL and PATH are added where the payload has none. Pure. Test: jobenv_test.c. */
#include "base/buf.h"
#include "proto/wire.pb-c.h"

struct cw_jobenv_node {
    const char *name, *hostname, *tmpdir, *home, *user, *shell,
        *hostfile;  /* NULL: not known, variable left out */
    int64_t now_ns; /* start time, since 1970; 0: CRUN_START_TIME and CRUN_END_TIME are left out */
};
/* Text of the file that CRUN_HOSTFILE names: "NODE slots=TASKS", a line for each node of the job. */
void cw_jobenv_hostfile(const Cw__TaskStart *t, struct cw_buf *out);
/* Names in their order, folded where that is the natural order: "n[1-3]". */
void cw_jobenv_names(char *const *names, size_t n, struct cw_buf *out);
void cw_jobenv_build(const Cw__TaskStart *t, const struct cw_jobenv_node *n, struct cw_strv *ret);
