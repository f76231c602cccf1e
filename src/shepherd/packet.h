#pragma once
/* The link between a node daemon and a shepherd: records in SEQPACKET datagrams. A datagram is a
 * 16-byte head (magic, version, flags, bytes) and then records of 8 bytes (type, reserved, bytes)
 * plus body; many small records share one datagram, a large one travels in a memfd, and a record
 * that carries a descriptor goes alone. Both ends run as the same user in a 0700 directory, so
 * bodies are trusted as far as their lengths are checked. Little-endian (one machine). Never
 * blocks. Test: packet_test.c. */
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CW_PACKET_INLINE_MAX  65536u               /* larger datagrams go through a memfd */
#define CW_PACKET_BODY_MAX    (2u * 1024u * 1024u) /* one record */
#define CW_PACKET_BACKLOG_MAX (256u * 1024u * 1024u)

/* number, name, body, direction. Numbers are never reused: daemons of two versions may meet. */
#define CW_PACKETS(X)                                                                              \
    X(1, HELLO)   /* shepherd: text lines "id X", "pid N", "isolation NAME"; listing follows */    \
    X(3, LISTED)  /* shepherd: the listing is complete */                                          \
    X(4, STARTED) /* shepherd: TaskStarted */                                                      \
    X(5, END)     /* shepherd: TaskEnd, again on every new link until FORGET */                    \
    X(6, EMPTIED) /* shepherd: TaskEmptied, as END */                                              \
    X(7, REFUSED) /* shepherd: a sentence; it cannot work and goes */                              \
    X(8, OPENED)  /* shepherd: u64 request, i32 negative errno or 0, sentence; + descriptor */     \
    X(9, STEP_ANSWER)  /* shepherd: to a STEP_CALL; bodies: stepcall.h */                          \
    X(10, STEP_REPORT) /* shepherd: StepReport, again on every new link until STEP_ACK */          \
    X(16, START)  /* node: TaskStart */                                                            \
    X(17, KILL)   /* node: TaskKill */                                                             \
    X(18, SIGNAL) /* node: TaskSignal */                                                           \
    X(19, FORGET) /* node: TaskKey whose end is recorded for good */                               \
    X(20, OPEN)   /* node: u64 request, u32 uid, u32 gid, path: open for reading as that user */   \
    X(21, QUIT)   /* node: take nothing new, go when nothing is left */                            \
    X(22, STEP_CALL)   /* node: a request to a step, its ticket checked */                         \
    X(23, STEP_ACK)    /* node: a report is recorded for good */                                   \
    X(24, LIMIT)       /* node: TaskLimit: a time limit that changed */
enum cw_packet_type {
#define X(num, NAME) CW_PACKET_##NAME = num,
    CW_PACKETS(X)
#undef X
};

struct cw_packets;                             /* one end of one link */
struct cw_packets *cw_packets_create(int fd);  /* takes fd; makes it non-blocking */
void cw_packets_destroy(struct cw_packets *p); /* NULL allowed; closes fd */
int cw_packets_fd(const struct cw_packets *p);
/* Queues a record. -EMSGSIZE, -ENOBUFS: not queued. */
int cw_packets_add(struct cw_packets *p, enum cw_packet_type type, const void *body, size_t n);
/* The same with a descriptor, which is taken (closed on failure too). */
int cw_packets_add_fd(struct cw_packets *p, enum cw_packet_type type, const void *body, size_t n,
                      int fd);
/* 0: all is sent. -EAGAIN: some waits for the descriptor to become writable. Other: the link is
 * gone. */
int cw_packets_flush(struct cw_packets *p);
size_t cw_packets_backlog(const struct cw_packets *p); /* bytes not sent yet */
/* Called per record; fd is -1 or a descriptor that the callee takes. */
typedef void (*cw_packet_fn)(enum cw_packet_type type, const void *body, size_t n, int fd,
                             void *arg);
/* Takes one datagram. 0; -EAGAIN: none now; -EPIPE: the peer is gone; -EBADMSG: not our protocol.
 */
int cw_packets_recv(struct cw_packets *p, cw_packet_fn fn, void *arg);
/* An AF_UNIX SEQPACKET socket at dir/name, whatever the length of the path. */
int cw_packet_listen(const char *dir, const char *name, int *ret_fd, struct cw_error *err);
int cw_packet_connect(const char *dir, const char *name, int *ret_fd, struct cw_error *err);
