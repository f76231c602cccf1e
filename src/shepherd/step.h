#pragma once
/* A step: a further command in the box of a running task, some ranks of it here. What its parts
 * (stepset, steptask, stepio, stepserve) share. A step goes when its end is recorded by the
 * controller and its readers have had time to read it, and never before its last process. */
#include "base/idset.h"
#include "shepherd/stepring.h"
#include "shepherd/task.h"

#define CW_STEP_TASKS_MAX  4096u            /* ranks of a step on one node */
#define CW_STEP_RING_BYTES (1024u * 1024u)  /* output not yet acknowledged */
#define CW_STEP_IN_BYTES   (64u * 1024u)    /* input not yet taken by all its tasks */
#define CW_STEP_SILENCE_MS 60000            /* of the reader of a step that is not detached */

enum cw_stepfd_kind { CW_STEPFD_OUT, CW_STEPFD_ERR, CW_STEPFD_IN };
struct cw_steptask;
struct cw_stepfd {
    struct cw_steptask *task;
    enum cw_stepfd_kind kind;
    int fd; /* -1: closed, or not of the session */
    bool armed;
};

struct cw_steptask {
    struct cw_step *step;
    uint32_t rank;
    pid_t pid; /* 0: not started */
    bool ended;
    bool reaped; /* wait_status counts */
    int wait_status;
    uint32_t exit_code; /* of what did not start: 126, 127, 0 none */
    char *message;      /* why it did not start */
    struct cw_stepfd out, err, in;
    uint64_t in_pos; /* offset of the next byte for it */
};

struct cw_step {
    struct cw_list link; /* of its task */
    struct cw_herd *herd;
    struct cw_task *task;
    uint32_t number;
    struct cw_arena *arena; /* layout, name */
    const Cw__StepLayout *layout;
    const char *name;

    struct cw_steptask *tasks;
    size_t n, n_ended, n_told; /* ends, and how many of them a reader has heard of */
    struct rusage usage;       /* of those reaped */

    struct cw_stepring *ring;
    bool paused; /* the ring is full: outputs are not read */
    struct cw_buf in;
    uint64_t in_base; /* offset of its first byte */
    bool in_eof;      /* nothing comes behind */
    bool session_in;  /* some task reads the session */
    int pty;          /* master, for the window; -1 none */
    struct cw_list calls; /* READ and WRITE that wait */

    bool detached, kill_on_bad_exit;
    uint32_t wait_s;
    int kill_cause, cause; /* Cw__Cause, 0 none; cause: once all have ended */
    int bad_cause;         /* of the first bad end */
    bool fault_user, fault_node; /* some task did not start, and whose fault */
    uint32_t oom_before;
    /* Monotonic ms; 0 none. */
    int64_t limit_at, kill_at, wait_at, silent_at, drain_at, gone_at;
    int64_t start_ns, end_ns;
    struct cw_buf started, end; /* packed StepReport */
    bool started_acked, end_acked, eof_told;
};

/* All processes have ended and been reaped, or never were. */
static inline bool cw_step_over(const struct cw_step *s)
{
    return s->n_ended == s->n;
}
