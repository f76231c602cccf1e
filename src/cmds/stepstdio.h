#pragma once
/* A session with a step (client/stepsession.h) on this command's own standard input, output, error
 * and signals, until the step is over or the user leaves it. Test: t2400-run.t. */
#include "client/allockeeper.h"
#include "client/stepsession.h"
#include "cmds/cli.h"

struct cw_stepstdio {
    struct cw_cli *cli;
    uint32_t ntasks;
    bool label, unbuffered, pty, input;
    bool kill_on_bad_exit;
    uint32_t wait_s;              /* after the first task has ended; 0: for ever */
    uint64_t timeout_s;           /* then the step is killed; 0: never */
    bool detach_keys;             /* Ctrl-P Ctrl-Q leaves it */
    bool keep_input;              /* the end of ours is not the end of the step's */
    bool quiet;                   /* no word on how single tasks ended */
    struct cw_allockeeper *keeper; /* NULL: none; when its allocation ends, so do we */

    /* kept by stepstdio.c */
    struct cw_stepsession *session;
    struct cw_stepout *out;
    uint32_t n_ended;
    int worst;       /* exit code of the tasks */
    int write_error; /* our own output is closed */
    bool killing, late, detached, stdin_eof;
    int n_int;
    int64_t int_ms, kill_at_ms, flush_at_ms, timeout_at_ms;
    uint8_t *task_ended;
    bool ctrl_p;
};
void cw_stepstdio_ops(struct cw_stepsession_ops *ret); /* arg: the struct cw_stepstdio */
/* Before the session starts: signals are ours from now on. */
int cw_stepstdio_begin(struct cw_stepstdio *x, struct cw_error *err);
/* Takes part in the session until it is over. The exit code of the step. */
int cw_stepstdio_run(struct cw_stepstdio *x, struct cw_stepsession *s);
void cw_stepstdio_end(struct cw_stepstdio *x); /* terminal and signals as before */
