#pragma once
/* Generic work on protobuf-c messages over their descriptors: arena decoding, JSON out, equality.
 *
 * Limits for what a peer sends: 1 MiB a message; 65,536 repeated items and unknown fields in all;
 * depth 8; a string holds no NUL byte. They are checked on the wire form before anything is allocated.
 *
 * JSON: enum values are their lower-case names without the prefix that repeats the enum's name
 * (CAUSE_TIME_LIMIT of Cause: "time_limit"), unknown ones numbers; bytes are base64; int64 fields
 * named *_ns are times and print as RFC 3339 UTC with milliseconds; uint64 *_ns are durations and stay
 * integers; UINT64_MAX prints as "unlimited", other integers above INT64_MAX as decimal strings; bytes of
 * a string that are not UTF-8 become U+FFFD; absent fields and empty lists are left out.
 * Thread: no state. Test: walk_test.c, fuzz_record.c. */
#include <jansson.h>
#include <stdbool.h>
#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"

#define CW_WALK_MAX_BYTES (1024u * 1024u)
#define CW_WALK_MAX_ITEMS 65536u
#define CW_WALK_MAX_DEPTH 8u

/* Decodes into the arena (never free the message itself). -EBADMSG, -EMSGSIZE. */
int cw_walk_unpack(const ProtobufCMessageDescriptor *d, const void *p, size_t n, struct cw_arena *a,
                   ProtobufCMessage **ret, struct cw_error *err);
/* The same for bytes that we packed ourselves and whose checksum holds (rows of the store): no limits,
 * since a row may have grown beyond what a peer may send and must still be read. -EBADMSG. */
int cw_walk_unpack_stored(const ProtobufCMessageDescriptor *d, const void *p, size_t n,
                          struct cw_arena *a, ProtobufCMessage **ret, struct cw_error *err);
/* A deep copy in the arena (by pack and unpack). */
ProtobufCMessage *cw_walk_copy(const ProtobufCMessage *m, struct cw_arena *a);
void cw_walk_pack(const ProtobufCMessage *m, struct cw_buf *out); /* appends */
json_t *cw_walk_json(const ProtobufCMessage *m);                  /* new reference */
/* Same type and same packed bytes (unknown fields count). */
bool cw_walk_equal(const ProtobufCMessage *a, const ProtobufCMessage *b);
