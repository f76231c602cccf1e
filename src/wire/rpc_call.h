#pragma once
/* Private to rpc_server.c and rpc_call.c: what a server is made of, and the calls in progress. A
 * call that has lost its caller (server closed, or 15 min over) is detached: ending it then only
 * frees it. Test: rpc_test.c, rpc_raw_test.c. */
#include "base/list.h"
#include "base/table.h"
#include "wire/rpc_answer.h"
#include "wire/rpc_peer.h"
#include "wire/rpc_server.h"

struct cw_rpc_server {
    struct cw_rpc_server_config conf;
    struct cw_keypair key;
    struct cw_loop *loop;
    struct cw_loop_io *io;
    struct cw_loop_timer *sweep;
    struct cw_nnsock *sock;
    struct cw_rpc_peers *peers;
    struct cw_rpc_answers *answers;
    struct cw_list calls; /* oldest first */
    size_t n_calls, call_bytes;
    struct cw_idtable
        *calls_of; /* uid -> how many, as a pointer's value; NULL: anonymous callers */
    struct cw_buf in, plain, out;
};

struct cw_rpc_call {
    struct cw_list item;
    struct cw_rpc_server *server; /* NULL: the caller is gone, an answer only frees */
    struct cw_rpc_peer *peer;
    struct cw_rpc_answer *answer; /* requests that change state; else NULL */
    struct cw_route route;
    struct cw_identity identity;
    struct cw_buf body;
    struct cw_arena *arena;
    int64_t start_ms;
    uint8_t id[16];
    enum cw_kind kind;
};

/* A packed Failure, appended. */
void cw_rpc_call_pack_failure(int code, const char *text, bool retry, struct cw_buf *out);
/* Seals a frame and sends it; loss is silent, the client asks again with the same id. */
void cw_rpc_call_send(struct cw_rpc_server *s, const struct cw_channel *ch,
                      const struct cw_route *route, struct cw_frame *f, const void *body,
                      size_t len);
void cw_rpc_call_send_reply(struct cw_rpc_server *s, const struct cw_channel *ch,
                            const struct cw_route *route, unsigned kind, const uint8_t id[16],
                            bool failure, const void *body, size_t len);
void cw_rpc_call_detach(struct cw_rpc_call *c);
/* Calls in progress of one user; add: +1, -1 or 0. */
size_t cw_rpc_call_count(struct cw_rpc_server *s, uint32_t uid, int add);
