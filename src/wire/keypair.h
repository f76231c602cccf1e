#pragma once
/* Static X25519 key pairs and their files: the controller's and each node's. Secrets are cleared by
 * cw_keypair_clear. Test: channel_test.c. */
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cw_keypair {
    uint8_t pub[32], sec[32];
};
void cw_keypair_make(struct cw_keypair *ret);
void cw_keypair_clear(struct cw_keypair *k);
/* Loads a secret key file (32 bytes, 0600, owner checked) or makes one when missing; pub_path (NULL
 * allowed) gets the public key as 64 hex digits and a newline, 0644. */
int cw_keypair_load(const char *sec_path, const char *pub_path, bool create, struct cw_keypair *ret,
                    struct cw_error *err);
