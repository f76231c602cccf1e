#pragma once
/* The environment of a task: the payload's env, then CRUN_* (FEATURES-BATCH 2.7) and, when asked, their
 * SLURM_* twins. User values never override the set that the system owns. Pure. Test: jobenv_test.c. */
#include "base/buf.h"
#include "proto/wire.pb-c.h"

struct cw_jobenv_node { const char *name, *hostname, *tmpdir, *home, *user, *shell; };
void cw_jobenv_build(const Cw__TaskStart *t, const struct cw_jobenv_node *n, struct cw_strv *ret);
