#pragma once
/* A new step of a running job: asked for until there is room, and whoever has the room is named.
 * Test: t2400-run.t. */
#include "cmds/cli.h"

/* -1 with *ret in the arena of c, or the exit code. */
int cw_stepcreate(struct cw_cli *c, const char *id, const Cw__StepSpec *spec, bool quiet,
                  const Cw__StepCreateReply **ret);
