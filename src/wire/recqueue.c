/* A FIFO of packed records. RecordBatch is written field by field because its records are packed
 * already: packing them again for each retransmission would cost more than sending them. Test:
 * session_test.c. */
#include "config.h"

#include "wire/recqueue.h"

#include "base/mem.h"

#include <string.h>

struct cw_rec {
    struct cw_rec *next;
    uint32_t len;
    uint8_t data[];
};

void cw_recqueue_init(struct cw_recqueue *q)
{
    *q = (struct cw_recqueue){.first_seq = 1};
    q->tail = &q->head;
}

static void drop_head(struct cw_recqueue *q)
{
    struct cw_rec *r = q->head;

    q->head = r->next;
    if (q->head == NULL)
        q->tail = &q->head;
    q->n--;
    q->bytes -= r->len;
    q->first_seq++;
    free(r);
}

void cw_recqueue_clear(struct cw_recqueue *q)
{
    while (q->head != NULL)
        drop_head(q);
    cw_recqueue_init(q);
}

uint64_t cw_recqueue_add(struct cw_recqueue *q, const void *p, size_t n)
{
    struct cw_rec *r = cw_xmalloc(sizeof(*r) + n);

    r->next = NULL;
    r->len = (uint32_t)n;
    if (n > 0)
        memcpy(r->data, p, n);
    *q->tail = r;
    q->tail = &r->next;
    q->bytes += n;
    return q->first_seq + q->n++;
}

void cw_recqueue_drop_before(struct cw_recqueue *q, uint64_t seq)
{
    while (q->head != NULL && q->first_seq < seq)
        drop_head(q);
}

static void add_varint(uint64_t v, struct cw_buf *out)
{
    uint8_t b[10];
    size_t n = 0;

    do {
        b[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v != 0);
    cw_buf_add(out, b, n);
}

uint64_t cw_recqueue_pack(const struct cw_recqueue *q, struct cw_buf *out)
{
    uint64_t seq = q->first_seq;
    size_t bytes = 0;

    if (q->head == NULL)
        return 0;
    cw_buf_add(out, "\x08", 1); /* first_seq = 1, varint */
    add_varint(q->first_seq, out);
    for (const struct cw_rec *r = q->head; r != NULL; r = r->next, seq++) {
        if (seq > q->first_seq && bytes + r->len > CW_RECQUEUE_FRAME_BYTES)
            break;
        cw_buf_add(out, "\x12", 1); /* records = 2, length-delimited */
        add_varint(r->len, out);
        if (r->len > 0)
            cw_buf_add(out, r->data, r->len);
        bytes += r->len + 4; /* an empty record still costs its frame a little */
    }
    return seq - 1;
}
