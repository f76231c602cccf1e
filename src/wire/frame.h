#pragma once
/* The bytes of one frame: a fixed header, a credential, a sealed body. doc/PROTOCOL.md draws it.
 * Pure: no sockets, no keys. Everything little-endian. A decoder error never reads behind n.
 * Test: frame_test.c, fuzz_frame.c. */
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define CW_FRAME_MAX      (1024u * 1024u) /* NN_RCVMAXSIZE of every socket */
#define CW_FRAME_BODY_MAX (960u * 1024u)  /* plain body */
#define CW_FRAME_CRED_MAX 1024u
#define CW_FRAME_HEADER   120u
#define CW_FRAME_SEAL     16u /* what sealing adds to a body */
#define CW_FRAME_VERSION  1

enum cw_frame_type {
    CW_FRAME_REQUEST = 1,
    CW_FRAME_REPLY,
    CW_FRAME_REFUSAL, /* unsealed: kind=0, body = packed Failure */
    CW_FRAME_HELLO,
    CW_FRAME_WELCOME,
    CW_FRAME_DATA,
    CW_FRAME_ACK,
    CW_FRAME_PING,
    CW_FRAME_PONG,
    CW_FRAME_BYE
};
struct cw_frame {
    uint8_t type;
    uint16_t kind;       /* enum cw_kind for requests and replies */
    uint64_t epoch;      /* sender's start, ns */
    uint64_t peer_epoch; /* whom it talks to, 0 unknown */
    uint64_t seq;        /* DATA: first record; REPLY: 1 failure, 0 success */
    uint64_t ack;        /* next record expected from the peer */
    uint8_t request_id[16];
    uint8_t channel_key[32]; /* the initiator's ephemeral public key */
    uint8_t nonce[24];
    const uint8_t *cred; /* borrowed from the input when parsed */
    uint16_t cred_len;
    const uint8_t *body; /* sealed bytes */
    uint32_t body_len;
};
int cw_frame_unpack(const void *p, size_t n, struct cw_frame *ret, struct cw_error *err);
void cw_frame_pack(const struct cw_frame *f, struct cw_buf *out); /* header, cred, body */
void cw_frame_pack_aad(const struct cw_frame *f,
                       struct cw_buf *out); /* what the seal covers beside the body */
