#pragma once
/* Keys and values of the controller's tables (doc/STORE.md). A value is two bytes - the schema
 * number of the row and flags - and then a packed protobuf message; the store adds its checksum.
 * The flags let recovery skip finished rows without decoding them. Pure. Test: row_test.c. */
#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "store/store.h"

#define CW_ROW_SCHEMA 1
/* Keys of table META. */
#define CW_META_SCHEMA "schema"   /* u32: CW_ROW_SCHEMA */
#define CW_META_NEXT_ID "next_id" /* u64: the id that the next job gets */
#define CW_ROW_FINAL 1u           /* JOB: terminal; ATTEMPT: terminal and its ledger entry freed */

void cw_row_put(struct cw_batch *b, enum cw_table t, const void *key, size_t klen, uint8_t flags,
                const ProtobufCMessage *m);
/* -EBADMSG: not a row of this type; -EPROTO: written by a newer version. */
int cw_row_unpack(const ProtobufCMessageDescriptor *d, const void *val, size_t vlen,
                  struct cw_arena *a, ProtobufCMessage **ret, struct cw_error *err);
uint8_t cw_row_flags(const void *val, size_t vlen);
/* Reads one row into the arena. -ENOENT none, -EBADMSG damaged. */
int cw_row_get(struct cw_store *s, enum cw_table t, const void *key, size_t klen,
               const ProtobufCMessageDescriptor *d, struct cw_arena *a, ProtobufCMessage **ret,
               struct cw_error *err);

#define CW_ROW_ATTEMPT_KEY 12u
void cw_row_attempt_key(uint8_t out[CW_ROW_ATTEMPT_KEY], uint64_t id, uint32_t attempt);
void cw_row_attempt_parse(const uint8_t in[CW_ROW_ATTEMPT_KEY], uint64_t *ret_id,
                          uint32_t *ret_attempt);
#define CW_ROW_STEP_KEY 16u
void cw_row_step_key(uint8_t out[CW_ROW_STEP_KEY], uint64_t id, uint32_t attempt, uint32_t step);
/* Attempt 0 stands for the job as a whole. */
#define CW_ROW_DONE_KEY 20u
void cw_row_done_key(uint8_t out[CW_ROW_DONE_KEY], int64_t end_ns, uint64_t id, uint32_t attempt);
void cw_row_done_parse(const uint8_t in[CW_ROW_DONE_KEY], int64_t *ret_end_ns, uint64_t *ret_id,
                       uint32_t *ret_attempt);
#define CW_ROW_REQKEY_KEY                                                                          \
    20u /* owner, then the client's 16 bytes: one user cannot probe another's */
void cw_row_reqkey_key(uint8_t out[CW_ROW_REQKEY_KEY], uint32_t uid, const uint8_t key[16]);
