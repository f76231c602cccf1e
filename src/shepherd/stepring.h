#pragma once
/* Output of a step in numbered chunks, bounded in bytes (each chunk costs 64 more). Numbers start
 * at 1. What a reader acknowledged goes; where nobody must be waited for, the oldest goes. A chunk
 * that was given to a reader never grows. Test: stepring_test.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"

#define CW_STEPRING_CHUNK_MAX 16384u

struct cw_stepchunk {
    struct cw_list link;
    uint64_t seq;
    uint32_t rank;
    bool err, told;
    struct cw_buf data;
};
struct cw_stepring;
struct cw_stepring *cw_stepring_create(size_t bytes_max);
void cw_stepring_destroy(struct cw_stepring *r); /* NULL allowed */
/* Bytes that may be added now without losing any. */
size_t cw_stepring_room(const struct cw_stepring *r);
/* n at most CW_STEPRING_CHUNK_MAX. What does not fit pushes out the oldest. */
void cw_stepring_add(struct cw_stepring *r, uint32_t rank, bool err, const void *p, size_t n);
/* Everything before seq has arrived and goes. */
void cw_stepring_ack(struct cw_stepring *r, uint64_t seq);
uint64_t cw_stepring_first(const struct cw_stepring *r); /* oldest kept, or next */
uint64_t cw_stepring_next(const struct cw_stepring *r);  /* number of the next chunk */
/* The first kept chunk from seq on, now given to a reader; NULL: none. */
struct cw_stepchunk *cw_stepring_take(struct cw_stepring *r, uint64_t seq);
