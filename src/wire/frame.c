/* The bytes of a frame. Owns the layout that doc/PROTOCOL.md draws; the numbers below are offsets
 * into the header. Never looks at what a body means. Test: frame_test.c, fuzz_frame.c. */
#include "config.h"

#include "wire/frame.h"

#include <string.h>

enum {
    AT_MAGIC = 0,
    AT_VERSION = 2,
    AT_TYPE = 3,
    AT_KIND = 4,
    AT_CRED_LEN = 6,
    AT_EPOCH = 8,
    AT_PEER_EPOCH = 16,
    AT_SEQ = 24,
    AT_ACK = 32,
    AT_REQUEST_ID = 40,
    AT_CHANNEL_KEY = 56,
    AT_NONCE = 88,
    AT_BODY_LEN = 112,
    AT_ZERO = 116
};

static void put(uint8_t *p, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t take(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static void pack_header(const struct cw_frame *f, struct cw_buf *out)
{
    uint8_t h[CW_FRAME_HEADER] = {'C', 'W', CW_FRAME_VERSION};

    h[AT_TYPE] = f->type;
    put(h + AT_KIND, f->kind, 2);
    put(h + AT_CRED_LEN, f->cred_len, 2);
    put(h + AT_EPOCH, f->epoch, 8);
    put(h + AT_PEER_EPOCH, f->peer_epoch, 8);
    put(h + AT_SEQ, f->seq, 8);
    put(h + AT_ACK, f->ack, 8);
    memcpy(h + AT_REQUEST_ID, f->request_id, sizeof(f->request_id));
    memcpy(h + AT_CHANNEL_KEY, f->channel_key, sizeof(f->channel_key));
    memcpy(h + AT_NONCE, f->nonce, sizeof(f->nonce));
    put(h + AT_BODY_LEN, f->body_len, 4);
    cw_buf_add(out, h, sizeof(h));
}

void cw_frame_pack_aad(const struct cw_frame *f, struct cw_buf *out)
{
    pack_header(f, out);
    if (f->cred_len > 0)
        cw_buf_add(out, f->cred, f->cred_len);
}

void cw_frame_pack(const struct cw_frame *f, struct cw_buf *out)
{
    cw_frame_pack_aad(f, out);
    if (f->body_len > 0)
        cw_buf_add(out, f->body, f->body_len);
}

static int check_header(const uint8_t *h, size_t n, struct cw_error *err)
{
    if (n < CW_FRAME_HEADER)
        return cw_fail(err, -EBADMSG, "frame: %zu bytes are too few for a header", n);
    if (h[AT_MAGIC] != 'C' || h[AT_MAGIC + 1] != 'W')
        return cw_fail(err, -EBADMSG, "frame: not one of ours");
    if (h[AT_VERSION] != CW_FRAME_VERSION)
        return cw_fail(err, -EPROTO, "frame: version %d, this side speaks %d", h[AT_VERSION],
                       CW_FRAME_VERSION);
    if (h[AT_TYPE] < CW_FRAME_REQUEST || h[AT_TYPE] > CW_FRAME_BYE)
        return cw_fail(err, -EBADMSG, "frame: unknown type %d", h[AT_TYPE]);
    if (take(h + AT_ZERO, 4) != 0)
        return cw_fail(err, -EBADMSG, "frame: reserved bytes are set");
    return 0;
}

int cw_frame_unpack(const void *p, size_t n, struct cw_frame *ret, struct cw_error *err)
{
    const uint8_t *h = p;
    struct cw_frame f;
    int r = check_header(h, n, err);

    if (r < 0)
        return r;
    f.type = h[AT_TYPE];
    f.kind = (uint16_t)take(h + AT_KIND, 2);
    f.cred_len = (uint16_t)take(h + AT_CRED_LEN, 2);
    f.epoch = take(h + AT_EPOCH, 8);
    f.peer_epoch = take(h + AT_PEER_EPOCH, 8);
    f.seq = take(h + AT_SEQ, 8);
    f.ack = take(h + AT_ACK, 8);
    f.body_len = (uint32_t)take(h + AT_BODY_LEN, 4);
    memcpy(f.request_id, h + AT_REQUEST_ID, sizeof(f.request_id));
    memcpy(f.channel_key, h + AT_CHANNEL_KEY, sizeof(f.channel_key));
    memcpy(f.nonce, h + AT_NONCE, sizeof(f.nonce));
    if (f.cred_len > CW_FRAME_CRED_MAX)
        return cw_fail(err, -EBADMSG, "frame: a credential of %u bytes is longer than %u",
                       f.cred_len, CW_FRAME_CRED_MAX);
    if (f.body_len > CW_FRAME_BODY_MAX + CW_FRAME_SEAL)
        return cw_fail(err, -EBADMSG, "frame: a body of %u bytes is longer than %u", f.body_len,
                       CW_FRAME_BODY_MAX);
    if ((uint64_t)n != (uint64_t)CW_FRAME_HEADER + f.cred_len + f.body_len)
        return cw_fail(err, -EBADMSG, "frame: %zu bytes, the header says %llu", n,
                       (unsigned long long)CW_FRAME_HEADER + f.cred_len + f.body_len);
    f.cred = h + CW_FRAME_HEADER;
    f.body = f.cred + f.cred_len;
    *ret = f;
    return 0;
}
