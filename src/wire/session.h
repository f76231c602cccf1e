#pragma once
/* Numbered records between a node and the controller over links that lose, double and cut: epoch,
 * sequence, cumulative ack, ONE data frame in flight (at most 64 KiB of records, or one larger
 * record), retransmit 200 ms doubling to 2 s, heartbeat, re-HELLO after a restart of either side.
 * Each record is delivered exactly once and in order within a pair of epochs; what was not
 * acknowledged when the peer's epoch changes is dropped and reconciled through HELLO/WELCOME (both
 * list what they know): numbers start at 1 again, and the owner pushes anew whatever its own tables
 * say is still to be reported. A controller that destroys a session and makes another for the same
 * channel counts as a new epoch. A received record is acknowledged only after cw_session_ack says
 * so (durable). Every frame carries a counter that only grows, so that a copied frame cannot feign
 * a living peer.
 *
 * The unit is transport-free: it gives frames to `send` and takes frames from the owner, and time
 * is an argument, so tests run it over a hostile in-memory link. Loop thread. Test: session_test.c,
 * session_hostile_test.c. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "proto/wire.pb-c.h"
#include "wire/channel.h"

#define CW_SESSION_QUEUE_MAX 100000 /* records waiting for one peer; push beyond gives -ENOBUFS */

struct cw_session;
struct cw_session_ops {
    /* Puts one sealed frame on the wire; loss is normal. */
    void (*send)(const void *frame, size_t n, void *arg);
    /* A record has arrived; later cw_session_ack(seq). May be called many times in a turn. */
    void (*record)(uint64_t seq, const Cw__NodeRecordMsg *m, void *arg);
    /* The peer has made record seq (and all before) durable. */
    void (*acked)(uint64_t seq, void *arg);
    /* Node side: fill the HELLO body (packed NodeHello); false: not now. cw_session_set_credential
     * may be called here. */
    bool (*hello)(struct cw_buf *ret_body, void *arg);
    /* Controller side, once per session: answer with a packed NodeWelcome, before any record of the
     * new epoch. false: refuse the peer (cw_session_frame gives -EACCES). */
    bool (*hello_arrived)(const Cw__NodeHello *m, struct cw_buf *ret_welcome, void *arg);
    /* Node side, only when the controller is a new one: everything pushed so far was dropped. */
    void (*welcome_arrived)(const Cw__NodeWelcome *m, void *arg);
    /* Nothing heard for 3 heartbeats (the node: for each 3): reconnect, HELLO goes by itself. */
    void (*silent)(void *arg);
};
/* Callbacks may push, ack and flush; they must not destroy the session. */
/* Node side: initiates. credential is sent with every HELLO. */
struct cw_session *cw_session_create_node(const struct cw_channel *ch, const uint8_t *cred,
                                          size_t cred_len, uint64_t epoch, uint32_t heartbeat_ms,
                                          const struct cw_session_ops *ops, void *arg);
/* Controller side: made for a verified HELLO frame. */
struct cw_session *cw_session_create_controller(const struct cw_channel *ch, uint64_t epoch,
                                                uint32_t heartbeat_ms,
                                                const struct cw_session_ops *ops, void *arg);
void cw_session_destroy(struct cw_session *s); /* NULL allowed */
/* Node side: the credential of every HELLO from now on; those of most auth plugins expire. */
void cw_session_set_credential(struct cw_session *s, const uint8_t *cred, size_t cred_len);
/* Node side: the transport has a new connection (cw_nnsock_established changed): HELLO at once. */
void cw_session_reconnected(struct cw_session *s, int64_t now_ms);
/* Queues a record; *ret_seq its number (NULL allowed). Sent by the next flush or tick when nothing
 * is in flight. -ENOBUFS: the queue is full; -EMSGSIZE: the record does not fit a frame. */
int cw_session_push(struct cw_session *s, const Cw__NodeRecordMsg *m, uint64_t *ret_seq);
void cw_session_flush(struct cw_session *s,
                      int64_t now_ms); /* end of a turn: send what is queued, lone acks */
/* A frame from this peer. -EBADMSG (forged), -ESTALE (older epoch, or a copy), -EACCES
 * (hello_arrived said no): drop it. The controller takes the route of a frame over only when this
 * gives 0. */
int cw_session_frame(struct cw_session *s, const struct cw_frame *f, int64_t now_ms,
                     struct cw_error *err);
void cw_session_ack(struct cw_session *s,
                    uint64_t seq); /* records up to seq are durable here; flush sends it */
void cw_session_tick(struct cw_session *s, int64_t now_ms); /* call every 50-200 ms */
bool cw_session_up(const struct cw_session *s);          /* HELLO/WELCOME done and heard lately */
int64_t cw_session_heard_ms(const struct cw_session *s); /* 0 never */
uint64_t cw_session_peer_epoch(const struct cw_session *s); /* 0: no HELLO or WELCOME yet */
