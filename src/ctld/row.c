/* row.c: bytes of the controller's rows. Keys are big-endian so that ranges are orders. Unknown
 * fields of a value are kept by protobuf. Test: row_test.c. */
#include "ctld/row.h"

#include <string.h>

#include "proto/walk.h"

void cw_row_put(struct cw_batch *b, enum cw_table t, const void *key, size_t klen, uint8_t flags,
                const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t small[2048], *p = n + 2 <= sizeof small ? small : cw_xmalloc(n + 2);
    p[0] = CW_ROW_SCHEMA;
    p[1] = flags;
    protobuf_c_message_pack(m, p + 2);
    cw_batch_put(b, t, key, klen, p, n + 2);
    if (p != small)
        free(p);
}

int cw_row_unpack(const ProtobufCMessageDescriptor *d, const void *val, size_t vlen,
                  struct cw_arena *a, ProtobufCMessage **ret, struct cw_error *err)
{
    const uint8_t *p = val;
    if (vlen < 2)
        return cw_fail(err, -EBADMSG, "row of %s is cut short", d->short_name);
    if (p[0] != CW_ROW_SCHEMA)
        return cw_fail(err, -EPROTO, "row of %s has schema %u, this version knows %u",
                       d->short_name, p[0], CW_ROW_SCHEMA);
    return cw_walk_unpack_stored(d, p + 2, vlen - 2, a, ret, err);
}

uint8_t cw_row_flags(const void *val, size_t vlen)
{
    return vlen < 2 ? 0 : ((const uint8_t *)val)[1];
}

int cw_row_get(struct cw_store *s, enum cw_table t, const void *key, size_t klen,
               const ProtobufCMessageDescriptor *d, struct cw_arena *a, ProtobufCMessage **ret,
               struct cw_error *err)
{
    cw_autobuf struct cw_buf val = {0};
    int rc = cw_store_get(s, t, key, klen, &val, err);
    if (rc == 0)
        return cw_fail(err, -ENOENT, "no such row");
    if (rc < 0)
        return rc;
    return cw_row_unpack(d, val.data, val.len, a, ret, err);
}

void cw_row_attempt_key(uint8_t out[CW_ROW_ATTEMPT_KEY], uint64_t id, uint32_t attempt)
{
    cw_store_key_u64(out, id);
    cw_store_key_u32(out + 8, attempt);
}

void cw_row_attempt_parse(const uint8_t in[CW_ROW_ATTEMPT_KEY], uint64_t *ret_id,
                          uint32_t *ret_attempt)
{
    *ret_id = cw_store_u64_key(in);
    *ret_attempt = cw_store_u32_key(in + 8);
}

void cw_row_step_key(uint8_t out[CW_ROW_STEP_KEY], uint64_t id, uint32_t attempt, uint32_t step)
{
    cw_row_attempt_key(out, id, attempt);
    cw_store_key_u32(out + CW_ROW_ATTEMPT_KEY, step);
}

void cw_row_done_key(uint8_t out[CW_ROW_DONE_KEY], int64_t end_ns, uint64_t id, uint32_t attempt)
{
    cw_store_key_u64(out, end_ns < 0 ? 0 : (uint64_t)end_ns);
    cw_row_attempt_key(out + 8, id, attempt);
}

void cw_row_done_parse(const uint8_t in[CW_ROW_DONE_KEY], int64_t *ret_end_ns, uint64_t *ret_id,
                       uint32_t *ret_attempt)
{
    *ret_end_ns = (int64_t)cw_store_u64_key(in);
    cw_row_attempt_parse(in + 8, ret_id, ret_attempt);
}

void cw_row_reqkey_key(uint8_t out[CW_ROW_REQKEY_KEY], uint32_t uid, const uint8_t key[16])
{
    cw_store_key_u32(out, uid);
    memcpy(out + 4, key, 16);
}
