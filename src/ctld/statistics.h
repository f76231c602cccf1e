#pragma once
/* What the controller counts of requests, for crun-diag: how many of each kind and of each user,
 * since the start and in the last whole minute. A request costs two increments and a look-up.
 * Time is an argument. Test: statistics_test.c. */
#include <stddef.h>
#include <stdint.h>

#include "wire/kinds.h"

#define CW_STATISTICS_KINDS 128u
#define CW_STATISTICS_USERS_MAX 4096u /* more share one row, CW_STATISTICS_OTHERS */
#define CW_STATISTICS_OTHERS UINT32_MAX

struct cw_requestcount {
    uint32_t uid;               /* of a user's row */
    uint64_t n, minute, before; /* ever; in this minute; in the one before it */
    int64_t number;             /* of this minute */
};
struct cw_statistics;
struct cw_statistics *cw_statistics_create(void);
void cw_statistics_destroy(struct cw_statistics *s); /* NULL allowed */
void cw_statistics_turn(struct cw_statistics *s);
void cw_statistics_request(struct cw_statistics *s, enum cw_kind kind, uint32_t uid,
                           int64_t mono_ns);
uint64_t cw_statistics_turns(const struct cw_statistics *s);
/* Of a kind: ever, and in the last whole minute. */
void cw_statistics_kind(const struct cw_statistics *s, enum cw_kind kind, int64_t mono_ns,
                        uint64_t *ret_n, uint64_t *ret_per_minute);
/* Up to max users that asked most, most first; `before` is their last whole minute. */
size_t cw_statistics_users(const struct cw_statistics *s, int64_t mono_ns,
                           struct cw_requestcount *ret, size_t max);
