/* Decoding, packing, copying and comparing protobuf-c messages (contract: walk.h).
 *
 * protobuf-c itself knows no limits: a megabyte of empty sub-messages would become many megabytes of
 * structs. So the wire form is scanned first along the descriptor, which also refuses what the library
 * would accept in silence (NUL bytes inside strings). The arena makes decoding one bump per piece.
 * Test: walk_test.c, fuzz_record.c. */
#include "proto/walk.h"

#include <string.h>

/* Wire types, https://protobuf.dev/programming-guides/encoding */
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct scan {
    size_t items;
    struct cw_error *err;
    const char *top; /* name of the outermost message, for sentences */
};

static bool take_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && *p < end; shift += 7) {
        uint8_t byte = *(*p)++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static int scan_message(struct scan *s, const ProtobufCMessageDescriptor *d, const uint8_t *p,
                        size_t n, unsigned depth);

static int scan_bytes(struct scan *s, const ProtobufCFieldDescriptor *f, const uint8_t *p, size_t n,
                      unsigned depth)
{
    if (f == NULL)
        return 0;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return scan_message(s, f->descriptor, p, n, depth + 1);
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        if (memchr(p, 0, n) != NULL)
            return cw_fail(s->err, -EBADMSG, "%s: field %s has a NUL byte", s->top, f->name);
        return 0;
    }
    if (f->type != PROTOBUF_C_TYPE_BYTES)
        s->items += n; /* a packed list: each item takes a byte or more */
    return 0;
}

/* What follows the tag; moves *p behind it. */
static int scan_value(struct scan *s, const ProtobufCFieldDescriptor *f, unsigned wire,
                      const uint8_t **p, const uint8_t *end, unsigned depth)
{
    uint64_t len = 0;
    int r = 0;
    switch (wire) {
    case WIRE_VARINT:
        if (!take_varint(p, end, &len))
            return cw_fail(s->err, -EBADMSG, "%s: a number does not end", s->top);
        return 0;
    case WIRE_64:
        len = 8;
        break;
    case WIRE_32:
        len = 4;
        break;
    case WIRE_BYTES:
        if (!take_varint(p, end, &len))
            return cw_fail(s->err, -EBADMSG, "%s: a length does not end", s->top);
        break;
    default:
        return cw_fail(s->err, -EBADMSG, "%s: unknown wire type %u", s->top, wire);
    }
    if (len > (uint64_t)(end - *p))
        return cw_fail(s->err, -EBADMSG, "%s: a field is longer than its message", s->top);
    if (wire == WIRE_BYTES)
        r = scan_bytes(s, f, *p, (size_t)len, depth);
    *p += len;
    return r;
}

static int scan_message(struct scan *s, const ProtobufCMessageDescriptor *d, const uint8_t *p,
                        size_t n, unsigned depth)
{
    const uint8_t *end = p + n;
    if (depth > CW_WALK_MAX_DEPTH)
        return cw_fail(s->err, -EMSGSIZE, "%s: nested deeper than %u", s->top, CW_WALK_MAX_DEPTH);
    while (p < end) {
        uint64_t tag;
        if (!take_varint(&p, end, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
            return cw_fail(s->err, -EBADMSG, "%s: bad field tag", s->top);
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3));
        if (f == NULL || f->label == PROTOBUF_C_LABEL_REPEATED)
            s->items++;
        int r = scan_value(s, f, (unsigned)(tag & 7), &p, end, depth);
        if (r < 0)
            return r;
        if (s->items > CW_WALK_MAX_ITEMS)
            return cw_fail(s->err, -EMSGSIZE, "%s: more than %u list items", s->top,
                           CW_WALK_MAX_ITEMS);
    }
    return 0;
}

static void *arena_alloc(void *a, size_t n)
{
    return cw_arena_alloc(a, n);
}

static void arena_free(void *a, void *p)
{
    (void)a;
    (void)p;
}

static ProtobufCMessage *decode(const ProtobufCMessageDescriptor *d, const void *p, size_t n,
                                struct cw_arena *a)
{
    ProtobufCAllocator alloc = {arena_alloc, arena_free, a};
    /* The library reads no byte when n is 0, but wants a pointer. */
    return protobuf_c_message_unpack(d, &alloc, n, n == 0 ? (const uint8_t *)"" : p);
}

int cw_walk_unpack_stored(const ProtobufCMessageDescriptor *d, const void *p, size_t n,
                          struct cw_arena *a, ProtobufCMessage **ret, struct cw_error *err)
{
    ProtobufCMessage *m = decode(d, p, n, a);
    if (m == NULL)
        return cw_fail(err, -EBADMSG, "%s: a required field is missing or has the wrong type",
                       d->short_name);
    *ret = m;
    return 0;
}

int cw_walk_unpack(const ProtobufCMessageDescriptor *d, const void *p, size_t n, struct cw_arena *a,
                   ProtobufCMessage **ret, struct cw_error *err)
{
    struct scan s = {0, err, d->short_name};
    if (n > CW_WALK_MAX_BYTES)
        return cw_fail(err, -EMSGSIZE, "%s: %zu bytes, at most %u", d->short_name, n,
                       CW_WALK_MAX_BYTES);
    int r = n > 0 ? scan_message(&s, d, p, n, 1) : 0;
    return r < 0 ? r : cw_walk_unpack_stored(d, p, n, a, ret, err);
}

void cw_walk_pack(const ProtobufCMessage *m, struct cw_buf *out)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *p = cw_buf_reserve(out, n);
    out->len += protobuf_c_message_pack(m, p);
    out->data[out->len] = '\0';
}

ProtobufCMessage *cw_walk_copy(const ProtobufCMessage *m, struct cw_arena *a)
{
    cw_autobuf struct cw_buf b = {0};
    cw_walk_pack(m, &b);
    return decode(m->descriptor, b.data, b.len, a);
}

bool cw_walk_equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    cw_autobuf struct cw_buf pa = {0};
    cw_autobuf struct cw_buf pb = {0};
    if (a->descriptor != b->descriptor)
        return false;
    cw_walk_pack(a, &pa);
    cw_walk_pack(b, &pb);
    return pa.len == pb.len && (pa.len == 0 || memcmp(pa.data, pb.data, pa.len) == 0);
}
