#pragma once
/* A command's conversation with the nodes of one step: the start of its tasks, their output in
 * order for each rank, input, signals, and how each task ended. Every node has two threads of its
 * own here, so a slow or dead one holds up nobody else; everything that is told comes in
 * cw_stepsession_run, on the caller's thread. Lost connections and restarted daemons cost time only:
 * output is asked for by number and input is sent by offset, so nothing is lost or doubled. While a
 * node is silent the controller is asked whether the step still is. Test:
 * t2400-run.t, t2410-run-cluster.t. */
#include "client/client.h"

struct cw_stepsession;
struct cw_stepsession_ops {
    void (*output)(uint32_t rank, bool err, const void *p, size_t n, void *arg);
    void (*ended)(const Cw__StepTaskEnd *e, void *arg); /* once a task */
    /* Output before this is gone (a detached step), or a word on what goes wrong. */
    void (*notice)(const char *node, const char *text, void *arg);
};
enum { CW_STEPSESSION_NODES_MAX = 4096, CW_STEPSESSION_INPUT_MAX = 256 * 1024 };

/* Starts the tasks of a new step on all its nodes. conf as cw_client_open's: for a second connection
 * to the controller. r and spec are copied. */
int cw_stepsession_start(const char *conf, const Cw__StepCreateReply *r, const Cw__StepSpec *spec,
                         const struct cw_stepsession_ops *ops, void *arg,
                         struct cw_stepsession **ret, struct cw_error *err);
/* Joins a step that runs. -ENOENT, -ESRCH: there is none (any more). */
int cw_stepsession_attach(const char *conf, struct cw_client *c, const Cw__StepRecord *step,
                          const struct cw_stepsession_ops *ops, void *arg,
                          struct cw_stepsession **ret, struct cw_error *err);
int cw_stepsession_fd(const struct cw_stepsession *s); /* readable: call run */
/* Calls ops for all that has come. True: all nodes have told everything, or never will. */
bool cw_stepsession_run(struct cw_stepsession *s);
bool cw_stepsession_started(struct cw_stepsession *s); /* its tasks run, or have run, everywhere */
/* Bytes of input that it takes now; 0 also when nobody reads any more (see below). */
size_t cw_stepsession_room(struct cw_stepsession *s);
bool cw_stepsession_input_closed(struct cw_stepsession *s); /* nobody reads */
void cw_stepsession_write(struct cw_stepsession *s, const void *p, size_t n, bool eof);
/* Sent to all nodes soon. */
void cw_stepsession_ctl(struct cw_stepsession *s, Cw__StepVerb verb, uint32_t signal, uint32_t rows,
                        uint32_t cols);
/* After run said true. cause: of the first node that ended otherwise than by itself, else EXIT. */
struct cw_stepresult {
    Cw__Cause cause;
    bool incomplete;   /* some node did not tell how its tasks ended; cause says why as far as known */
    char message[256]; /* "" or a sentence */
};
void cw_stepsession_result(struct cw_stepsession *s, struct cw_stepresult *ret);
/* Stops all threads; the step goes on, if it does, without us. NULL allowed. */
void cw_stepsession_close(struct cw_stepsession *s);
