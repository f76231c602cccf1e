#pragma once
/* One node of a session (stepsession.h): a thread that starts the tasks there and reads their
 * output, and one that sends input and signals. Shared state is guarded by the session's lock. */
#include <pthread.h>

#include "client/stepsession.h"
#include "wire/rpc_client.h"

#define CW_STEPPART_REPLIES_MAX 2 /* read and not yet delivered */
#define CW_STEPPART_CTL_MAX 16

struct cw_stepdelivery {
    struct cw_arena *arena; /* of the reply */
    const Cw__StepReadReply *reply;
};
struct cw_stepctl {
    Cw__StepVerb verb;
    uint32_t signal, rows, cols;
};
struct cw_steppart {
    struct cw_stepsession *session;
    uint32_t number;
    char *name, *address;
    uint8_t public_key[32];
    pthread_t reader, talker;
    bool threads;

    /* Under the session's lock. */
    struct cw_buf ticket;
    int64_t expires_ns;
    bool want_ticket; /* the node takes the old one no more */
    bool started, over, gone, silent, missing;
    struct cw_error why; /* code 0: nothing went wrong */
    struct cw_stepdelivery inbox[CW_STEPPART_REPLIES_MAX];
    unsigned n_inbox;
    Cw__Cause cause; /* with over and not gone */
    uint64_t taken;  /* input offset */
    bool in_closed, eof_sent;
    struct cw_stepctl ctl[CW_STEPPART_CTL_MAX];
    unsigned n_ctl;
    uint64_t n_heard, n_heard_then; /* answers to the reader; at the minder's last look */
    unsigned n_still;               /* its looks without a new one */

    uint64_t delivered_seq; /* the caller's thread only */
};
struct cw_stepsession {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    volatile sig_atomic_t stop;
    int event_fd;
    struct cw_stepsession_ops ops;
    void *arg;
    char *conf, *job; /* "12" */
    uint64_t id;
    uint32_t attempt, step;
    struct cw_buf spec; /* packed StepSpec; empty: joined */
    struct cw_steppart *parts;
    uint32_t n;
    struct cw_buf input; /* from in_base on, not yet taken by all */
    uint64_t in_base;
    bool in_eof;
    uint8_t *ended; /* by rank, told already */
    uint32_t n_ended_max;
    pthread_t minder;
    bool has_minder;
    Cw__StepRecord *record; /* what the controller knows once it has ended; heap */
    bool job_over;
    Cw__Cause job_cause;
};
int cw_steppart_begin(struct cw_steppart *p, struct cw_error *err); /* its threads */
void cw_stepsession_wake(struct cw_stepsession *s);                 /* the caller's thread */
