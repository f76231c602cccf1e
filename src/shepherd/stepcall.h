#pragma once
/* Bodies of STEP_CALL, STEP_ANSWER and STEP_ACK packets. crund has checked the ticket; its body
 * travels as facts beside the request, both packed. Little-endian.
 * CALL: u64 token, u32 kind, u32 bytes of facts, facts, request. ANSWER: u64 token, i32 negative
 * errno or 0, u32 may be tried again, reply or sentence. ACK: u64 id, u32 attempt, u32 step, u32
 * end. Test: stepcall_test.c, fuzz_stepcall.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Numbers are never reused: daemons of two versions may meet. */
enum cw_stepcall_kind {
    CW_STEPCALL_START = 1,
    CW_STEPCALL_READ = 2,
    CW_STEPCALL_WRITE = 3,
    CW_STEPCALL_CTL = 4,
    CW_STEPCALL_STAT = 5
};
struct cw_stepcall {
    uint64_t token;
    uint32_t kind;
    const void *facts, *request;
    size_t n_facts, n_request;
};
struct cw_stepanswer {
    uint64_t token;
    int32_t code;
    bool retry;
    const void *body;
    size_t n;
};
struct cw_stepack {
    uint64_t id;
    uint32_t attempt, step;
    bool end;
};
void cw_stepcall_pack(const struct cw_stepcall *c, struct cw_buf *out);
/* Pointers into p. -EBADMSG. */
int cw_stepcall_unpack(const void *p, size_t n, struct cw_stepcall *ret);
void cw_stepanswer_pack(const struct cw_stepanswer *a, struct cw_buf *out);
int cw_stepanswer_unpack(const void *p, size_t n, struct cw_stepanswer *ret);
void cw_stepack_pack(const struct cw_stepack *a, struct cw_buf *out);
int cw_stepack_unpack(const void *p, size_t n, struct cw_stepack *ret);
