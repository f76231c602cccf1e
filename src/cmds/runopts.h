#pragma once
/* Options of crun-run: its own, which say how a step runs, in front of those of crun-submit
 * (spec/options.h), which say what it needs. Test: t2400-run.t. */
#include "cmds/cli.h"
#include "spec/options.h"

struct cw_runopts {
    struct cw_cli *cli;
    struct cw_request *request;
    bool pty, label, unbuffered, exact, overlap;
    bool has_kill_on_bad_exit, kill_on_bad_exit;
    uint32_t wait_s;
    const char *jobid; /* NULL: not given */
    const char *input; /* all, none, a task's number, or a file; NULL: all */
};
/* Reads argv up to the command. -1 with *ret_first its place, or an exit code. */
int cw_runopts_parse(struct cw_runopts *o, int argc, char *const *argv, int *ret_first);
void cw_runopts_help(struct cw_buf *out);
/* The step that the finished request asks for; in_job: its size counts, too. Lives in the arena. */
int cw_runopts_step(const struct cw_runopts *o, bool in_job, Cw__StepSpec **ret,
                    struct cw_error *err);
