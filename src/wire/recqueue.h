#pragma once
/* The packed records that wait for one peer's acknowledgement, numbered from 1, and the frame
 * bodies made of them. Pure. Test: session_test.c. */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define CW_RECQUEUE_FRAME_BYTES 65536u /* of records in one frame, or one larger record */
#define CW_RECQUEUE_BYTES_MAX   (256u * 1024u * 1024u)

struct cw_recqueue {
    struct cw_rec *head, **tail;
    size_t n, bytes;
    uint64_t first_seq; /* of head, or of the next one when empty */
};
void cw_recqueue_init(struct cw_recqueue *q);
void cw_recqueue_clear(struct cw_recqueue *q); /* numbers start at 1 again */
uint64_t cw_recqueue_add(struct cw_recqueue *q, const void *p, size_t n); /* its number */
void cw_recqueue_drop_before(struct cw_recqueue *q, uint64_t seq);
/* Appends a packed RecordBatch from the head on; returns the number of its last record, 0: empty
 * queue. */
uint64_t cw_recqueue_pack(const struct cw_recqueue *q, struct cw_buf *out);
