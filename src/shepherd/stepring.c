/* Numbered output of a step; see stepring.h. */
#include "shepherd/stepring.h"

#include <stdlib.h>

#include "base/mem.h"

#define CHUNK_COST 64u

struct cw_stepring {
    struct cw_list chunks; /* oldest first */
    size_t bytes, bytes_max;
    uint64_t next;
};

struct cw_stepring *cw_stepring_create(size_t bytes_max)
{
    struct cw_stepring *r = cw_xcalloc(1, sizeof *r);
    cw_list_init(&r->chunks);
    r->bytes_max = bytes_max;
    r->next = 1;
    return r;
}

static struct cw_stepchunk *entry(struct cw_list *l)
{
    return cw_list_entry(l, struct cw_stepchunk, link);
}

static void drop(struct cw_stepring *r, struct cw_stepchunk *c)
{
    r->bytes -= c->data.len + CHUNK_COST;
    cw_list_remove(&c->link);
    cw_buf_fini(&c->data);
    free(c);
}

void cw_stepring_destroy(struct cw_stepring *r)
{
    if (r == NULL)
        return;
    cw_list_each_safe(l, &r->chunks)
        drop(r, entry(l));
    free(r);
}

size_t cw_stepring_room(const struct cw_stepring *r)
{
    size_t used = r->bytes + CHUNK_COST;
    return used >= r->bytes_max ? 0 : r->bytes_max - used;
}

void cw_stepring_add(struct cw_stepring *r, uint32_t rank, bool err, const void *p, size_t n)
{
    while (cw_stepring_room(r) < n && !cw_list_empty(&r->chunks))
        drop(r, entry(r->chunks.next));
    struct cw_stepchunk *c = cw_list_empty(&r->chunks) ? NULL : entry(r->chunks.prev);
    bool joins = c != NULL && !c->told && c->rank == rank && c->err == err &&
                 c->data.len + n <= CW_STEPRING_CHUNK_MAX;
    if (!joins) {
        c = cw_xcalloc(1, sizeof *c);
        c->seq = r->next++;
        c->rank = rank;
        c->err = err;
        cw_list_add_tail(&r->chunks, &c->link);
        r->bytes += CHUNK_COST;
    }
    cw_buf_add(&c->data, p, n);
    r->bytes += n;
}

void cw_stepring_ack(struct cw_stepring *r, uint64_t seq)
{
    while (!cw_list_empty(&r->chunks) && entry(r->chunks.next)->seq < seq &&
           entry(r->chunks.next)->told)
        drop(r, entry(r->chunks.next));
}

uint64_t cw_stepring_first(const struct cw_stepring *r)
{
    return cw_list_empty(&r->chunks)
               ? r->next
               : cw_list_entry(r->chunks.next, struct cw_stepchunk, link)->seq;
}

uint64_t cw_stepring_next(const struct cw_stepring *r)
{
    return r->next;
}

struct cw_stepchunk *cw_stepring_take(struct cw_stepring *r, uint64_t seq)
{
    struct cw_stepchunk *found = NULL;
    /* Readers are near the end. */
    for (struct cw_list *l = r->chunks.prev; l != &r->chunks && entry(l)->seq >= seq; l = l->prev)
        found = entry(l);
    if (found != NULL)
        found->told = true;
    return found;
}
