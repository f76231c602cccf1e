#pragma once
/* libcrunwlm inside: a connection to the instance for commands. Finds the configuration, loads the
 * auth plugin, opens the RPC client. Errors carry a sentence; cw_client_exit_code maps them to the
 * documented exit codes. One thread at a time. Test: client_test.c and every testsuite/t1*.t. */
#include <protobuf-c/protobuf-c.h>
#include <signal.h>

#include "base/error.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "proto/wire.pb-c.h"
#include "wire/kinds.h"

struct cw_client;
int cw_client_open(const char *conf_path /* NULL: search */, struct cw_client **ret,
                   struct cw_error *err);
void cw_client_close(struct cw_client *c);
const struct cw_conf *cw_client_conf(const struct cw_client *c);
void cw_client_set_interrupt(struct cw_client *c, volatile sig_atomic_t *flag);
volatile sig_atomic_t *cw_client_interrupt(const struct cw_client *c); /* NULL: none set */
int cw_client_pause(struct cw_client *c, uint32_t ms);                 /* -EINTR when interrupted */
/* Any request; the reply lives in the arena. timeout_ms 0: the default of 60 s (CRUN_TIMEOUT in
 * seconds overrides). */
int cw_client_call(struct cw_client *c, enum cw_kind kind, const ProtobufCMessage *m,
                   uint32_t timeout_ms, struct cw_arena *a, ProtobufCMessage **ret,
                   struct cw_error *err);
/* Reads a task's log through its node: opens a ticket and the node's socket, renews the ticket. The
 * attempt is pinned by the first ticket (0: the newest then). A job that has not started can be
 * opened. */
struct cw_logreader;
int cw_logreader_open(struct cw_client *c, const char *id, uint32_t attempt, bool stderr_stream,
                      struct cw_logreader **ret, struct cw_error *err);
/* Next bytes at the reader's offset; waits up to wait_ms for more, also for the start of the job.
 * *ret_eof: task ended, all read. -EAGAIN: wait_ms is 0 and it has not started; -EIO: the node does
 * not answer. */
int cw_logreader_read(struct cw_logreader *r, uint32_t wait_ms, struct cw_buf *ret, bool *ret_eof,
                      struct cw_error *err);
void cw_logreader_seek_end(struct cw_logreader *r, uint64_t back_bytes);
void cw_logreader_close(struct cw_logreader *r);
/* What a running job uses now on one of its nodes (0: the first), asked from that node with a fresh
 * ticket. Both replies live in the arena; the ticket's says attempt and node. -EIO: the node does
 * not answer. */
int cw_statreader_read(struct cw_client *c, const char *id, uint32_t node, struct cw_arena *a,
                       const Cw__TicketReply **ret_ticket, const Cw__StatReply **ret,
                       struct cw_error *err);
/* Tells all nodes of a step of a running job. -ENOENT, -ESRCH: it does not exist, has ended; -EIO: a
 * node does not answer (the others were told). */
int cw_stepsend(struct cw_client *c, const char *id, uint32_t step, Cw__StepVerb verb,
                uint32_t signal, struct cw_error *err);
int cw_client_exit_code(int negative_errno); /* 240 for -EHOSTUNREACH, 130 for -EINTR, else 1 */
