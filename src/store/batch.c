/* Collecting writes: one flat buffer of operations and a hash over (table, key) to the newest of
 * each.
 *
 * Order inside a batch has no meaning (one key, one operation), so a commit may sort; neighbours on
 * disk are then written together. Test: batch_test.c. */
#include "config.h"

#include "store/batch.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum op_kind { OP_PUT, OP_DEL, OP_DEAD };

/* In the buffer: this, then klen key bytes, then vcap bytes of which vlen count; padded to 8. */
struct op {
    uint32_t vlen, vcap;
    uint16_t klen;
    uint8_t table, kind;
};
#define KEY_MAX     511 /* LMDB's limit */
#define FIRST_SLOTS 64

struct cw_batch {
    char *data;
    size_t len, cap;
    size_t *slots; /* offset + 1 of the newest operation of a key; 0: empty */
    size_t n_slots, n_ops;
};

struct cw_batch *cw_batch_create(void)
{
    return cw_xcalloc(1, sizeof(struct cw_batch));
}

void cw_batch_destroy(struct cw_batch *b)
{
    if (b == NULL)
        return;
    free(b->data);
    free(b->slots);
    free(b);
}

bool cw_batch_empty(const struct cw_batch *b)
{
    return b->n_ops == 0;
}

size_t cw_batch_bytes(const struct cw_batch *b)
{
    return b->len;
}

static struct op *op_at(const struct cw_batch *b, size_t offset)
{
    return (struct op *)(void *)(b->data + offset);
}

static char *key_of(struct op *o)
{
    return (char *)(o + 1);
}

static char *val_of(struct op *o)
{
    return key_of(o) + o->klen;
}

/* FNV-1a, 64 bits. */
static size_t hash_key(uint8_t table, const void *key, size_t klen)
{
    uint64_t h = (UINT64_C(0xcbf29ce484222325) ^ table) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < klen; i++)
        h = (h ^ ((const unsigned char *)key)[i]) * UINT64_C(0x100000001b3);
    return (size_t)(h ^ h >> 32);
}

/* The slot of a key: its own or the empty one where it belongs. */
static size_t *find_slot(const struct cw_batch *b, uint8_t table, const void *key, size_t klen)
{
    size_t i = hash_key(table, key, klen) & (b->n_slots - 1);
    for (; b->slots[i] != 0; i = (i + 1) & (b->n_slots - 1)) {
        struct op *o = op_at(b, b->slots[i] - 1);
        if (o->table == table && o->klen == klen && memcmp(key_of(o), key, klen) == 0)
            break;
    }
    return &b->slots[i];
}

static void grow_slots(struct cw_batch *b)
{
    if (b->n_slots > 0 && b->n_ops < b->n_slots / 2)
        return;
    size_t *old = b->slots, n_old = b->n_slots;
    b->n_slots = n_old > 0 ? n_old * 2 : FIRST_SLOTS;
    b->slots = cw_xcalloc(b->n_slots, sizeof(*b->slots));
    for (size_t i = 0; i < n_old; i++) {
        if (old[i] == 0)
            continue;
        struct op *o = op_at(b, old[i] - 1);
        *find_slot(b, o->table, key_of(o), o->klen) = old[i];
    }
    free(old);
}

static size_t padded(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static size_t op_size(const struct op *o)
{
    return padded(sizeof(*o) + o->klen + o->vcap);
}

static struct op *append(struct cw_batch *b, const struct op *o, const void *key)
{
    size_t need = op_size(o);
    if (b->cap - b->len < need) {
        b->cap = b->cap * 2 > b->len + need ? b->cap * 2 : b->len + need + 4096;
        b->data = cw_xrealloc(b->data, b->cap, 1);
    }
    struct op *at = op_at(b, b->len);
    *at = *o;
    memcpy(key_of(at), key, o->klen);
    b->len += need;
    return at;
}

static void record(struct cw_batch *b, enum op_kind kind, enum cw_table t, const void *key,
                   size_t klen, const void *val, size_t vlen)
{
    assert(t < CW_TABLE_N && klen > 0 && klen <= KEY_MAX && vlen < UINT32_MAX / 2);
    grow_slots(b);
    size_t *slot = find_slot(b, (uint8_t)t, key, klen);
    struct op *o = *slot != 0 ? op_at(b, *slot - 1) : NULL;
    if (o == NULL || vlen > o->vcap) {
        struct op fresh = { .vcap = (uint32_t)vlen, .klen = (uint16_t)klen, .table = (uint8_t)t };
        if (o != NULL)
            o->kind = OP_DEAD;
        else
            b->n_ops++;
        *slot = b->len + 1;
        o = append(b, &fresh, key);
    }
    o->kind = (uint8_t)kind;
    o->vlen = (uint32_t)vlen;
    if (vlen > 0)
        memcpy(val_of(o), val, vlen);
}

void cw_batch_put(struct cw_batch *b, enum cw_table t, const void *key, size_t klen,
                  const void *val, size_t vlen)
{
    record(b, OP_PUT, t, key, klen, val, vlen);
}

void cw_batch_del(struct cw_batch *b, enum cw_table t, const void *key, size_t klen)
{
    record(b, OP_DEL, t, key, klen, NULL, 0);
}

static int by_table_and_key(const void *va, const void *vb)
{
    const struct cw_batch_op *a = va, *b = vb;
    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    int c = memcmp(a->key, b->key, a->klen < b->klen ? a->klen : b->klen);
    return c != 0 ? c : (a->klen > b->klen) - (a->klen < b->klen);
}

struct cw_batch_op *cw_batch_sort(const struct cw_batch *b, size_t *ret_n)
{
    struct cw_batch_op *ops = cw_xcalloc(b->n_ops + 1, sizeof(*ops));
    size_t n = 0;
    for (size_t at = 0; at < b->len; at += op_size(op_at(b, at))) {
        struct op *o = op_at(b, at);
        if (o->kind != OP_DEAD)
            ops[n++] = (struct cw_batch_op){ o->table, o->kind == OP_DEL, o->klen,
                                             o->vlen,  key_of(o),         val_of(o) };
    }
    assert(n == b->n_ops);
    qsort(ops, n, sizeof(*ops), by_table_and_key);
    *ret_n = n;
    return ops;
}
