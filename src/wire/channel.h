#pragma once
/* Sealing. The initiator makes an X25519 key pair per session and knows the responder's static
 * public key; both derive two keys (one a direction) from the shared secret: k_in | k_out =
 * BLAKE2b-512(key = shared secret, "crun-wlm channel 1" | eph_pub | static_pub) Bodies are
 * XChaCha20-Poly1305 with random 24-byte nonces, the frame header and credential as associated
 * data. Identity comes from the auth plugin's credential bound to eph_pub. Threads: a channel
 * belongs to one thread. Secrets are cleared on destroy. Test: channel_test.c. */
#include <stdbool.h>

#include "wire/frame.h"
#include "wire/keypair.h"

/* A file of 64 hex digits (controller.pub). */
int cw_public_key_load(const char *path, uint8_t ret[32], struct cw_error *err);

struct cw_channel {
    uint8_t eph_pub[32];
    uint8_t k_in[32], k_out[32]; /* initiator->responder, responder->initiator */
    bool initiator;
};
int cw_channel_initiate(const uint8_t static_pub[32],
                        struct cw_channel *ret); /* new ephemeral pair */
int cw_channel_respond(const struct cw_keypair *own, const uint8_t eph_pub[32],
                       struct cw_channel *ret); /* -EBADMSG: bad point */
void cw_channel_clear(struct cw_channel *c);
/* Sets f->nonce, f->channel_key and appends the complete frame to out. */
void cw_channel_seal(const struct cw_channel *c, struct cw_frame *f, const void *plain, size_t n,
                     struct cw_buf *out);
/* -EBADMSG when it was not sealed by the other end or was changed. Appends the plain body. */
int cw_channel_open(const struct cw_channel *c, const struct cw_frame *f, struct cw_buf *ret_plain);
