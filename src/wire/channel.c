/* Key agreement and sealing of frames. The nonce is random (24 bytes: no counter to keep or to
 * lose), so freshness is the business of the layers above: rpc_window.c and session.c. Test:
 * channel_test.c. */
#include "config.h"

#include "wire/channel.h"

#include "base/file.h"

#include <sodium.h>
#include <string.h>

static const char context[] = "crun-wlm channel 1";

int cw_public_key_load(const char *path, uint8_t ret[32], struct cw_error *err)
{
    cw_autobuf struct cw_buf b = {0};
    uint8_t key[32];
    size_t n = 0;
    int r = cw_file_read(path, 4096, &b, err);

    if (r < 0)
        return r;
    while (b.len > 0 && (b.data[b.len - 1] == '\n' || b.data[b.len - 1] == ' '))
        b.len--;
    if (b.len != 64 || sodium_hex2bin(key, sizeof(key), b.data, b.len, NULL, &n, NULL) != 0 ||
        n != 32)
        return cw_fail(err, -EINVAL, "public key %s: not 64 hexadecimal digits", path);
    memcpy(ret, key, 32);
    return 0;
}

/* -EBADMSG when peer_pub is a point that would give a secret anyone can compute. */
static int derive(const uint8_t sec[32], const uint8_t peer_pub[32], const uint8_t static_pub[32],
                  struct cw_channel *c)
{
    crypto_generichash_state h;
    uint8_t shared[32], keys[64];
    int r = -EBADMSG;

    if (crypto_scalarmult(shared, sec, peer_pub) == 0) {
        (void)crypto_generichash_init(&h, shared, sizeof(shared), sizeof(keys));
        (void)crypto_generichash_update(&h, (const uint8_t *)context, sizeof(context) - 1);
        (void)crypto_generichash_update(&h, c->eph_pub, 32);
        (void)crypto_generichash_update(&h, static_pub, 32);
        (void)crypto_generichash_final(&h, keys, sizeof(keys));
        memcpy(c->k_in, keys, 32);
        memcpy(c->k_out, keys + 32, 32);
        r = 0;
    }
    sodium_memzero(shared, sizeof(shared));
    sodium_memzero(keys, sizeof(keys));
    sodium_memzero(&h, sizeof(h));
    return r;
}

int cw_channel_initiate(const uint8_t static_pub[32], struct cw_channel *ret)
{
    struct cw_channel c = {.initiator = true};
    struct cw_keypair eph;
    int r;

    cw_keypair_make(&eph);
    memcpy(c.eph_pub, eph.pub, 32);
    r = derive(eph.sec, static_pub, static_pub, &c);
    cw_keypair_clear(&eph);
    if (r == 0)
        *ret = c;
    cw_channel_clear(&c);
    return r;
}

int cw_channel_respond(const struct cw_keypair *own, const uint8_t eph_pub[32],
                       struct cw_channel *ret)
{
    struct cw_channel c = {.initiator = false};
    int r;

    memcpy(c.eph_pub, eph_pub, 32);
    r = derive(own->sec, eph_pub, own->pub, &c);
    if (r == 0)
        *ret = c;
    cw_channel_clear(&c);
    return r;
}

void cw_channel_clear(struct cw_channel *c)
{
    sodium_memzero(c, sizeof(*c));
}

void cw_channel_seal(const struct cw_channel *c, struct cw_frame *f, const void *plain, size_t n,
                     struct cw_buf *out)
{
    size_t start = out->len;
    unsigned long long sealed = 0;
    uint8_t *body;

    randombytes_buf(f->nonce, sizeof(f->nonce));
    memcpy(f->channel_key, c->eph_pub, 32);
    f->body_len = (uint32_t)(n + CW_FRAME_SEAL);
    cw_frame_pack_aad(f, out);
    body = cw_buf_reserve(out, n + CW_FRAME_SEAL + 1);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(
        body, &sealed, plain, n, (uint8_t *)out->data + start, out->len - start, NULL, f->nonce,
        c->initiator ? c->k_in : c->k_out);
    out->len += (size_t)sealed;
    out->data[out->len] = '\0';
}

int cw_channel_open(const struct cw_channel *c, const struct cw_frame *f, struct cw_buf *ret_plain)
{
    cw_autobuf struct cw_buf aad = {0};
    unsigned long long n = 0;
    uint8_t *plain;

    if (f->body_len < CW_FRAME_SEAL || memcmp(f->channel_key, c->eph_pub, 32) != 0)
        return -EBADMSG;
    cw_frame_pack_aad(f, &aad);
    plain = cw_buf_reserve(ret_plain, f->body_len + 1);
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(plain, &n, NULL, f->body, f->body_len,
                                                   (uint8_t *)aad.data, aad.len, f->nonce,
                                                   c->initiator ? c->k_out : c->k_in) != 0)
        return -EBADMSG;
    ret_plain->len += (size_t)n;
    ret_plain->data[ret_plain->len] = '\0';
    return 0;
}
