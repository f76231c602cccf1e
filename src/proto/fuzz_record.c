/* Fuzzes record decoding: the first byte picks a message type, the rest is its wire form. With the byte's top
 * bit set, the least valid message stands before it (wire forms add up), so that the rest is not lost for a
 * required field. What decodes must pack, decode again and pack to the same bytes, and print as JSON. */
#include "proto/walk.h"

#include <stdlib.h>
#include <string.h>

#include "proto/job.pb-c.h"
#include "proto/wire.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
    &cw__job_record__descriptor,   &cw__attempt_record__descriptor, &cw__node_record__descriptor,
    &cw__event_record__descriptor, &cw__payload__descriptor,        &cw__submit_request__descriptor,
    &cw__jobs_request__descriptor, &cw__jobs_reply__descriptor,     &cw__record_batch__descriptor,
    &cw__node_hello__descriptor,   &cw__node_welcome__descriptor,   &cw__log_request__descriptor,
    &cw__log_reply__descriptor,    &cw__ticket_body__descriptor,    &cw__task_start__descriptor,
    &cw__task_end__descriptor,     &cw__failure__descriptor,
};

static void add_varint(struct cw_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        cw_buf_add(out, &(char){(char)(v | 0x80)}, 1);
    cw_buf_add(out, &(char){(char)v}, 1);
}

/* The required fields of a message, each 1 or empty. */
static void add_least(const ProtobufCMessageDescriptor *d, struct cw_buf *out)
{
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        cw_autobuf struct cw_buf sub = {0};
        if (f->label != PROTOBUF_C_LABEL_REQUIRED)
            continue;
        bool bytes = f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_STRING ||
                     f->type == PROTOBUF_C_TYPE_BYTES;
        if (f->type == PROTOBUF_C_TYPE_MESSAGE)
            add_least(f->descriptor, &sub);
        add_varint(out, (uint64_t)f->id << 3 | (bytes ? 2 : 0));
        add_varint(out, bytes ? sub.len : 1);
        if (sub.len > 0)
            cw_buf_add(out, sub.data, sub.len);
    }
}

static void check(const ProtobufCMessageDescriptor *d, const uint8_t *p, size_t n,
                  struct cw_arena *a)
{
    ProtobufCMessage *m, *again;
    struct cw_error err;
    cw_autobuf struct cw_buf first = {0};
    cw_autobuf struct cw_buf second = {0};
    if (cw_walk_unpack(d, p, n, a, &m, &err) < 0)
        return;
    cw_walk_pack(m, &first);
    if (first.len > CW_WALK_MAX_BYTES)
        return; /* a short form may have grown over the limit; nothing to compare */
    if (cw_walk_unpack(d, first.data, first.len, a, &again, &err) < 0)
        abort();
    cw_walk_pack(again, &second);
    if (first.len != second.len ||
        (first.len > 0 && memcmp(first.data, second.data, first.len) != 0))
        abort();
    json_t *j = cw_walk_json(m);
    if (j == NULL)
        abort();
    json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cw_autobuf struct cw_buf bytes = {0};
    if (size == 0)
        return 0;
    const ProtobufCMessageDescriptor *d = types[(data[0] & 0x7f) % CW_ARRAY_LEN(types)];
    if (data[0] & 0x80)
        add_least(d, &bytes);
    cw_buf_add(&bytes, data + 1, size - 1);
    struct cw_arena *a = cw_arena_create();
    check(d, (const uint8_t *)bytes.data, bytes.len, a);
    cw_arena_destroy(a);
    return 0;
}
