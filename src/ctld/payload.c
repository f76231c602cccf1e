/* payload.c: content-addressed payloads. The known-cache is direct-mapped by the first bytes of the
 * hash and compares all 32, so a collision costs a repeated put, never a wrong payload. A hash is
 * "known" as soon as its row is in an open batch: batches commit in order. Test: row_test.c. */
#include "ctld/payload.h"

#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "ctld/row.h"
#include "spec/check.h"

#define KNOWN 4096u
#define LOADED 16u

struct loaded {
    uint8_t hash[32];
    struct cw_arena *arena; /* NULL: empty slot */
    const Cw__Payload *msg;
    uint64_t used;
};

struct cw_payloads {
    struct cw_store *store;
    uint8_t known[KNOWN][32]; /* zeroes: empty */
    struct loaded loaded[LOADED];
    uint64_t tick;
    struct cw_idtable *sweep; /* first 8 bytes of used hashes; NULL: no sweep */
    struct cw_buf scratch;
};

static uint64_t hash_word(const uint8_t hash[32])
{
    uint64_t w;
    memcpy(&w, hash, sizeof w);
    return w;
}

struct cw_payloads *cw_payloads_create(struct cw_store *s)
{
    struct cw_payloads *p = cw_xcalloc(1, sizeof *p);
    p->store = s;
    return p;
}

void cw_payloads_destroy(struct cw_payloads *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < LOADED; i++)
        cw_arena_destroy(p->loaded[i].arena);
    cw_payloads_sweep_end(p);
    cw_buf_fini(&p->scratch);
    free(p);
}

int cw_payloads_put(struct cw_payloads *p, struct cw_batch *b, const Cw__Payload *m,
                    uint8_t ret_hash[32], struct cw_error *err)
{
    size_t n = cw__payload__get_packed_size(m);
    if (n > CW_CHECK_MAX_PAYLOAD)
        return cw_fail(err, -E2BIG,
                       "script, arguments and environment take %zu bytes, at most %u are allowed",
                       n, CW_CHECK_MAX_PAYLOAD);
    cw_buf_clear(&p->scratch);
    uint8_t *bytes = cw_buf_reserve(&p->scratch, n);
    cw__payload__pack(m, bytes);
    uint8_t hash[32];
    crypto_generichash(hash, sizeof hash, bytes, n, NULL, 0);
    if (p->sweep != NULL)
        cw_payloads_sweep_keep(p, hash);
    uint8_t *known = p->known[hash_word(hash) % KNOWN];
    if (memcmp(known, hash, 32) != 0) {
        cw_row_put(b, CW_TABLE_PAYLOAD, hash, 32, 0, &m->base);
        memcpy(known, hash, 32);
    }
    memcpy(ret_hash, hash, 32);
    return 0;
}

int cw_payloads_get(struct cw_payloads *p, const uint8_t hash[32], const Cw__Payload **ret,
                    struct cw_error *err)
{
    struct loaded *slot = &p->loaded[0];
    for (size_t i = 0; i < LOADED; i++) {
        struct loaded *l = &p->loaded[i];
        if (l->arena != NULL && memcmp(l->hash, hash, 32) == 0) {
            l->used = ++p->tick;
            *ret = l->msg;
            return 0;
        }
        if (l->used < slot->used)
            slot = l;
    }
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m;
    int rc = cw_row_get(p->store, CW_TABLE_PAYLOAD, hash, 32, &cw__payload__descriptor, a, &m, err);
    if (rc < 0) {
        cw_arena_destroy(a);
        return cw_wrap(err, rc, "payload");
    }
    cw_arena_destroy(slot->arena);
    *slot = (struct loaded){.arena = a, .msg = (const Cw__Payload *)m, .used = ++p->tick};
    memcpy(slot->hash, hash, 32);
    *ret = slot->msg;
    return 0;
}

void cw_payloads_sweep_begin(struct cw_payloads *p)
{
    if (p->sweep == NULL)
        p->sweep = cw_idtable_create();
}

void cw_payloads_sweep_keep(struct cw_payloads *p, const uint8_t hash[32])
{
    cw_idtable_set(p->sweep, hash_word(hash), p);
}

bool cw_payloads_sweep_drop(struct cw_payloads *p, struct cw_batch *b, const uint8_t hash[32])
{
    if (cw_idtable_find(p->sweep, hash_word(hash)) != NULL)
        return false;
    uint8_t *known = p->known[hash_word(hash) % KNOWN];
    if (memcmp(known, hash, 32) == 0)
        memset(known, 0, 32);
    cw_batch_del(b, CW_TABLE_PAYLOAD, hash, 32);
    return true;
}

void cw_payloads_sweep_end(struct cw_payloads *p)
{
    cw_idtable_destroy(p->sweep);
    p->sweep = NULL;
}
