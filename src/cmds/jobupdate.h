#pragma once
/* crun-ctl update JOB ... KEY=VALUE ... Test: testsuite/t2130-update.t. */
#include "cmds/cli.h"

int cw_jobupdate(struct cw_cli *c); /* the exit code */
