#pragma once
/* Answers sealed requests on one raw socket: decodes frames, keeps a cache of channels (ephemeral
 * key -> keys, verified identity; 4,096 entries, least recently used goes), verifies credentials
 * through the auth callback, refuses replays (each request id once per channel within its window;
 * requests older than 5 min by their own timestamp refused), repeats the answer to a retried id
 * (mutating requests are never run twice: rpc_answer.h), and hands calls to one function. A call
 * may be answered at once or later (long polls); one that is not answered in 15 min loses its
 * caller but stays valid until it is ended. At most 256 calls of one channel and 16,384 in all are
 * in progress; more are told to come again. A peer that sends garbage gets at most one REFUSAL per
 * frame. Loop thread. Test: rpc_test.c, rpc_raw_test.c. */
#include <crunwlm/plugin.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "base/mem.h"
#include "loop/loop.h"
#include "wire/channel.h"
#include "wire/kinds.h"
#include "wire/nnsock.h"

struct cw_rpc_server;
struct cw_rpc_call; /* one request in progress */
typedef void (*cw_rpc_call_fn)(struct cw_rpc_call *call, void *arg);
/* Fills ret or gives a negative errno; must not block. */
typedef int (*cw_rpc_verify_fn)(const uint8_t bind[32], const uint8_t *cred, size_t len,
                                struct cw_identity *ret, void *arg, struct cw_error *err);

struct cw_rpc_server_config {
    const char *url;
    const struct cw_keypair *key;
    uint64_t epoch;
    cw_rpc_verify_fn verify; /* NULL: anonymous callers (ticket servers); identity is zeroed */
    cw_rpc_call_fn call;     /* NULL: requests are refused */
    void *arg;
    /* Frames of other types (HELLO, DATA, ...) go here with their route; NULL: refused. */
    void (*other)(const struct cw_route *route, const struct cw_frame *f, void *arg);
};
int cw_rpc_server_open(struct cw_loop *l, const struct cw_rpc_server_config *conf,
                       struct cw_rpc_server **ret, struct cw_error *err);
/* NULL allowed. Calls in progress must still be ended. */
void cw_rpc_server_close(struct cw_rpc_server *s);
/* Sends a raw frame along a route (session.h uses it). */
int cw_rpc_server_send(struct cw_rpc_server *s, const struct cw_route *route, const void *p,
                       size_t n);
/* Answers a frame that `other` does not want with an unsealed REFUSAL. A node takes one for its
 * channel as "I do not know you" and says HELLO at once. code: negative errno. */
void cw_rpc_server_refuse(struct cw_rpc_server *s, const struct cw_route *route,
                          const struct cw_frame *f, int code, const char *text);

enum cw_kind cw_rpc_call_kind(const struct cw_rpc_call *c);
const struct cw_identity *cw_rpc_call_identity(const struct cw_rpc_call *c);
const struct cw_buf *cw_rpc_call_body(const struct cw_rpc_call *c); /* the packed request message */
struct cw_arena *cw_rpc_call_arena(struct cw_rpc_call *c);          /* lives as long as the call */
/* Exactly one of these ends the call and frees it. They send at once: a controller keeps its
 * replies until its turn has committed and then calls them. A reply that does not fit one frame
 * becomes a failure. code: negative errno. */
void cw_rpc_reply(struct cw_rpc_call *c, const ProtobufCMessage *m);
void cw_rpc_reply_failure(struct cw_rpc_call *c, int code, const char *text, bool retry);
void cw_rpc_drop(struct cw_rpc_call *c); /* no answer (tests, shutdown) */
