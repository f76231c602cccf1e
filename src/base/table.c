/* Hash tables: u64 -> pointer and string -> pointer.
 *
 * One core carries both. Entries lie in one array in the order they were added; a power-of-two
 * array of positions, probed linearly, points into it. So each() goes in the order of adding,
 * whatever the hash: two runs of a scheduler on the same input see the same order. Removing leaves
 * a dead entry (value NULL) that keeps its position; the next rebuild, which only set() does, drops
 * it.
 *
 * String keys may come from users, so they are hashed by SipHash-1-3 (Aumasson and Bernstein, 2012)
 * under a key drawn once per process. Test: table_test.c. */
#include "config.h"

#include "base/table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"

struct entry {
    uint64_t hash;    /* the key itself in a table of ids */
    const char *name; /* NULL in a table of ids */
    void *value;      /* NULL: dead */
};

struct core {
    struct entry *entries;
    uint32_t *slots; /* position in entries plus 1; 0: free */
    size_t n_entries, live;
    size_t cap; /* of entries; there are 2 * cap slots */
};

struct cw_idtable {
    struct core core;
};

struct cw_strtable {
    struct core core;
};

/* The finaliser of splitmix64: every input bit changes about half of the output bits. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t rotl(uint64_t x, unsigned n)
{
    return (x << n) | (x >> (64 - n));
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

static uint64_t hash_key[2];
static pthread_once_t hash_key_once = PTHREAD_ONCE_INIT;

static void draw_hash_key(void)
{
    /* Early in boot there may be no randomness yet; a fixed key is slower to attack than to wait
     * for. */
    if (getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) != (ssize_t)sizeof(hash_key))
        hash_key[0] = (uint64_t)(uintptr_t)&hash_key;
}

static uint64_t hash_name(const char *s)
{
    pthread_once(&hash_key_once, draw_hash_key);
    uint64_t v[4] = { hash_key[0] ^ UINT64_C(0x736f6d6570736575),
                      hash_key[1] ^ UINT64_C(0x646f72616e646f6d),
                      hash_key[0] ^ UINT64_C(0x6c7967656e657261),
                      hash_key[1] ^ UINT64_C(0x7465646279746573) };
    size_t n = strlen(s), left = n;
    uint64_t m;

    for (; left >= 8; left -= 8, s += 8) {
        memcpy(&m, s, 8);
        v[3] ^= m;
        sip_round(v);
        v[0] ^= m;
    }
    m = (uint64_t)n << 56;
    for (size_t i = 0; i < left; i++)
        m |= (uint64_t)(unsigned char)s[i] << (8 * i);
    v[3] ^= m;
    sip_round(v);
    v[0] ^= m;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static struct entry *lookup(const struct core *c, uint64_t hash, const char *name)
{
    if (c->cap == 0)
        return NULL;
    size_t mask = 2 * c->cap - 1;
    for (size_t i = mix(hash) & mask; c->slots[i] != 0; i = (i + 1) & mask) {
        struct entry *e = &c->entries[c->slots[i] - 1];
        if (e->hash == hash && e->value != NULL && (name == NULL || strcmp(e->name, name) == 0))
            return e;
    }
    return NULL;
}

static void place(struct core *c, size_t pos)
{
    size_t mask = 2 * c->cap - 1;
    size_t i = mix(c->entries[pos].hash) & mask;

    while (c->slots[i] != 0)
        i = (i + 1) & mask;
    c->slots[i] = (uint32_t)(pos + 1);
}

/* Drops the dead entries and makes room for at least as many new ones as half of what lives. */
static void rebuild(struct core *c)
{
    size_t cap = 8, n = 0;

    while (cap < c->live + c->live / 2 + 1)
        cap *= 2;
    assert(cap < UINT32_MAX);
    struct entry *entries = cw_xcalloc(cap, sizeof(*entries));
    for (size_t i = 0; i < c->n_entries; i++) {
        if (c->entries[i].value != NULL)
            entries[n++] = c->entries[i];
    }
    free(c->entries);
    free(c->slots);
    c->entries = entries;
    c->slots = cw_xcalloc(2 * cap, sizeof(*c->slots));
    c->cap = cap;
    c->n_entries = n;
    for (size_t i = 0; i < n; i++)
        place(c, i);
}

static void *set(struct core *c, uint64_t hash, const char *name, void *value)
{
    assert(value != NULL);
    struct entry *e = lookup(c, hash, name);

    if (e != NULL) {
        void *old = e->value;
        e->value = value;
        e->name = name;
        return old;
    }
    if (c->n_entries == c->cap)
        rebuild(c);
    c->entries[c->n_entries] = (struct entry){ .hash = hash, .name = name, .value = value };
    place(c, c->n_entries++);
    c->live++;
    return NULL;
}

static void *remove_entry(struct core *c, struct entry *e)
{
    if (e == NULL)
        return NULL;
    void *old = e->value;
    e->value = NULL;
    e->name = NULL;
    c->live--;
    return old;
}

static void fini(struct core *c)
{
    free(c->entries);
    free(c->slots);
}

struct cw_idtable *cw_idtable_create(void)
{
    return cw_xcalloc(1, sizeof(struct cw_idtable));
}

void cw_idtable_destroy(struct cw_idtable *t)
{
    if (t != NULL)
        fini(&t->core);
    free(t);
}

void *cw_idtable_find(const struct cw_idtable *t, uint64_t key)
{
    const struct entry *e = lookup(&t->core, key, NULL);

    return e != NULL ? e->value : NULL;
}

void *cw_idtable_set(struct cw_idtable *t, uint64_t key, void *value)
{
    return set(&t->core, key, NULL, value);
}

void *cw_idtable_remove(struct cw_idtable *t, uint64_t key)
{
    return remove_entry(&t->core, lookup(&t->core, key, NULL));
}

size_t cw_idtable_count(const struct cw_idtable *t)
{
    return t->core.live;
}

void cw_idtable_each(struct cw_idtable *t, bool (*fn)(uint64_t key, void *value, void *arg),
                     void *arg)
{
    for (size_t i = 0; i < t->core.n_entries; i++) {
        const struct entry *e = &t->core.entries[i];
        if (e->value != NULL && !fn(e->hash, e->value, arg))
            return;
    }
}

struct cw_strtable *cw_strtable_create(void)
{
    return cw_xcalloc(1, sizeof(struct cw_strtable));
}

void cw_strtable_destroy(struct cw_strtable *t)
{
    if (t != NULL)
        fini(&t->core);
    free(t);
}

void *cw_strtable_find(const struct cw_strtable *t, const char *key)
{
    const struct entry *e = lookup(&t->core, hash_name(key), key);

    return e != NULL ? e->value : NULL;
}

void *cw_strtable_set(struct cw_strtable *t, const char *key, void *value)
{
    return set(&t->core, hash_name(key), key, value);
}

void *cw_strtable_remove(struct cw_strtable *t, const char *key)
{
    return remove_entry(&t->core, lookup(&t->core, hash_name(key), key));
}

size_t cw_strtable_count(const struct cw_strtable *t)
{
    return t->core.live;
}

void cw_strtable_each(struct cw_strtable *t, bool (*fn)(const char *key, void *value, void *arg),
                      void *arg)
{
    for (size_t i = 0; i < t->core.n_entries; i++) {
        const struct entry *e = &t->core.entries[i];
        if (e->value != NULL && !fn(e->name, e->value, arg))
            return;
    }
}
