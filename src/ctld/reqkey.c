/* reqkey.c: which submit got which id. The keys in memory hang on the generation of the turn that
 * stores them and go when it is on disk. They are hashed with a secret key: clients choose these
 * bytes. Test: recover_test.c. */
#include "ctld/reqkey.h"

#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "ctld/row.h"

struct fresh {
    uint8_t key[CW_ROW_REQKEY_KEY];
    uint64_t hash, id, count;
    struct fresh *next_same;  /* chain of equal hashes */
    struct fresh *next_batch; /* chain of one generation */
};
struct fresh_batch {
    struct cw_reqkeys *owner;
    struct fresh *first;
};
struct cw_reqkeys {
    struct cw_store *store;
    struct cw_turn *turn;
    struct cw_idtable *fresh;
    struct fresh_batch *open; /* of generation `generation` */
    uint64_t generation;
    uint8_t secret[crypto_shorthash_KEYBYTES];
};

struct cw_reqkeys *cw_reqkeys_create(struct cw_store *s, struct cw_turn *t)
{
    struct cw_reqkeys *r = cw_xcalloc(1, sizeof *r);
    r->store = s;
    r->turn = t;
    r->fresh = cw_idtable_create();
    randombytes_buf(r->secret, sizeof r->secret);
    return r;
}

void cw_reqkeys_destroy(struct cw_reqkeys *r)
{
    if (r == NULL)
        return;
    cw_idtable_destroy(r->fresh);
    free(r);
}

static uint64_t key_hash(const struct cw_reqkeys *r, const uint8_t key[CW_ROW_REQKEY_KEY])
{
    uint64_t h;
    crypto_shorthash((uint8_t *)&h, key, CW_ROW_REQKEY_KEY, r->secret);
    return h;
}

int cw_reqkeys_find(struct cw_reqkeys *r, uint32_t uid, const uint8_t key16[16], uint64_t *ret_id,
                    uint64_t *ret_count, struct cw_error *err)
{
    uint8_t key[CW_ROW_REQKEY_KEY];
    cw_row_reqkey_key(key, uid, key16);
    /* While commits fail only what is on disk is told; the first request with this key still waits.
     */
    struct fresh *first =
        cw_turn_failing(r->turn, NULL) ? NULL : cw_idtable_find(r->fresh, key_hash(r, key));
    for (struct fresh *f = first; f != NULL; f = f->next_same)
        if (memcmp(f->key, key, sizeof key) == 0) {
            *ret_id = f->id;
            *ret_count = f->count;
            return 1;
        }
    cw_autobuf struct cw_buf val = {0};
    int rc = cw_store_get(r->store, CW_TABLE_REQKEY, key, sizeof key, &val, err);
    if (rc <= 0)
        return rc;
    if (val.len != 16)
        return cw_fail(err, -EBADMSG, "request key row is damaged");
    *ret_id = cw_store_u64_key((const uint8_t *)val.data);
    *ret_count = cw_store_u64_key((const uint8_t *)val.data + 8);
    return 1;
}

static void fresh_remove(struct cw_reqkeys *r, struct fresh *f)
{
    struct fresh *head = cw_idtable_find(r->fresh, f->hash);
    if (head == f) {
        if (f->next_same != NULL)
            cw_idtable_set(r->fresh, f->hash, f->next_same);
        else
            cw_idtable_remove(r->fresh, f->hash);
        return;
    }
    while (head->next_same != f)
        head = head->next_same;
    head->next_same = f->next_same;
}

static void batch_stored(void *arg, bool committed)
{
    (void)committed;
    struct fresh_batch *b = arg;
    if (b->owner->open == b)
        b->owner->open = NULL;
    while (b->first != NULL) {
        struct fresh *f = b->first;
        b->first = f->next_batch;
        fresh_remove(b->owner, f);
        free(f);
    }
    free(b);
}

void cw_reqkeys_put(struct cw_reqkeys *r, uint32_t uid, const uint8_t key16[16], uint64_t id,
                    uint64_t count)
{
    struct fresh *f = cw_xcalloc(1, sizeof *f);
    cw_row_reqkey_key(f->key, uid, key16);
    f->hash = key_hash(r, f->key);
    f->id = id;
    f->count = count;
    uint8_t val[16];
    cw_store_key_u64(val, id);
    cw_store_key_u64(val + 8, count);
    cw_batch_put(cw_turn_batch(r->turn), CW_TABLE_REQKEY, f->key, sizeof f->key, val, sizeof val);

    if (r->open == NULL || r->generation != cw_turn_generation(r->turn)) {
        r->open = cw_xcalloc(1, sizeof *r->open);
        r->open->owner = r;
        r->generation = cw_turn_generation(r->turn);
        cw_turn_after(r->turn, CW_TURN_EFFECT, batch_stored, r->open);
    }
    f->next_batch = r->open->first;
    r->open->first = f;
    f->next_same = cw_idtable_set(r->fresh, f->hash, f);
}
