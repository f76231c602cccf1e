#pragma once
/* Blocking requests for commands and libcrunwlm. One channel per client object (made anew every 4
 * min, with a new credential); each try that is not answered in 2, 4, 8 ... s opens a fresh socket
 * and sends the same request id, until the deadline. A server that has the request in progress says
 * so, then tries are rarer. -EHOSTUNREACH: no answer by the deadline, outcome unknown, retrying is
 * safe (exit code 240); the same code, with a sentence that says so, when nobody listened for 3 s
 * and nothing was sent. -EINTR when the caller's interrupt flag was set (Ctrl-C). A refusal by the
 * server comes back as -code with its sentence. Not thread-safe. Test: rpc_test.c. */
#include <protobuf-c/protobuf-c.h>
#include <signal.h>

#include "base/mem.h"
#include "wire/channel.h"
#include "wire/kinds.h"

struct cw_rpc_client;
/* Called once per channel for the credential to send. -EAGAIN: whoever gives it out is not there
 * yet, which counts like a server that does not listen. */
typedef int (*cw_rpc_credential_fn)(const uint8_t bind[32], uint8_t *buf, size_t cap,
                                    size_t *ret_len, void *arg, struct cw_error *err);
int cw_rpc_client_open(const char *url, const uint8_t server_pub[32],
                       cw_rpc_credential_fn credential, void *arg, struct cw_rpc_client **ret,
                       struct cw_error *err); /* credential NULL: anonymous */
void cw_rpc_client_close(struct cw_rpc_client *c);
void cw_rpc_client_set_interrupt(struct cw_rpc_client *c, volatile sig_atomic_t *flag);
/* Waits that long, for callers that have to ask again later. -EINTR as in a call, else 0. */
int cw_rpc_client_pause(struct cw_rpc_client *c, uint32_t ms);
/* Sends m and decodes the reply (its type follows from kind) into the arena. */
int cw_rpc_client_call(struct cw_rpc_client *c, enum cw_kind kind, const ProtobufCMessage *m,
                       uint32_t timeout_ms, struct cw_arena *a, ProtobufCMessage **ret,
                       struct cw_error *err);
