#pragma once
/* Generic work on protobuf-c messages over their descriptors: arena decoding, JSON out and in,
 * equality. Limits for what a peer sends: 1 MiB a message, 65,536 repeated items, depth 8.
 * Enum values print as their lower-case names; bytes as base64; *_ns fields as RFC 3339 UTC strings;
 * absent fields are left out. Test: walk_test.c; fuzz/fuzz_record.c. */
#include <jansson.h>
#include <stdbool.h>
#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"

#define CW_WALK_MAX_BYTES (1024u * 1024u)

/* Decodes into the arena (never free the message itself). -EBADMSG, -EMSGSIZE. */
int cw_walk_unpack(const ProtobufCMessageDescriptor *d, const void *p, size_t n, struct cw_arena *a,
                   ProtobufCMessage **ret, struct cw_error *err);
/* A deep copy in the arena (by pack and unpack). */
ProtobufCMessage *cw_walk_copy(const ProtobufCMessage *m, struct cw_arena *a);
void cw_walk_pack(const ProtobufCMessage *m, struct cw_buf *out); /* appends */
json_t *cw_walk_json(const ProtobufCMessage *m);                  /* new reference */
bool cw_walk_equal(const ProtobufCMessage *a, const ProtobufCMessage *b);
