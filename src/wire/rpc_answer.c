/* The table of kept answers. Test: rpc_peer_test.c. */
#include "config.h"

#include "wire/rpc_answer.h"

#include "base/mem.h"
#include "base/table.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

struct cw_rpc_answers {
    struct cw_idtable *by_hash;
    struct cw_list by_age; /* oldest first */
    size_t n_finished, bytes;
    struct cw_list *lean; /* everything before this one has lost its bytes; NULL: from the start */
    uint8_t hash_key[crypto_shorthash_KEYBYTES];
};

struct cw_rpc_answers *cw_rpc_answers_create(void)
{
    struct cw_rpc_answers *t = cw_xcalloc(1, sizeof(*t));

    if (sodium_init() < 0)
        abort();
    t->by_hash = cw_idtable_create();
    cw_list_init(&t->by_age);
    crypto_shorthash_keygen(t->hash_key);
    return t;
}

static void drop_body(struct cw_rpc_answers *t, struct cw_rpc_answer *a)
{
    t->bytes -= a->len;
    free(a->body);
    a->body = NULL;
    a->len = 0;
    a->have_body = false;
}

static void drop(struct cw_rpc_answers *t, struct cw_rpc_answer *a)
{
    if (t->lean == &a->by_age)
        t->lean = a->by_age.next == &t->by_age ? NULL : a->by_age.next;
    if (a->call == NULL) {
        cw_list_remove(&a->by_age);
        t->n_finished--;
    }
    drop_body(t, a);
    (void)cw_idtable_remove(t->by_hash, a->hash);
    free(a);
}

static bool drop_entry(uint64_t key, void *value, void *arg)
{
    struct cw_rpc_answer *a = value;

    (void)key;
    (void)arg;
    free(a->body);
    free(a);
    return true;
}

void cw_rpc_answers_destroy(struct cw_rpc_answers *t)
{
    if (t == NULL)
        return;
    cw_idtable_each(t->by_hash, drop_entry, NULL);
    cw_idtable_destroy(t->by_hash);
    free(t);
}

static uint64_t hash_of(const struct cw_rpc_answers *t, const struct cw_identity *who,
                        const uint8_t id[16])
{
    uint8_t text[4 + 64 + 16] = {0};
    uint64_t h = 0;

    memcpy(text, &who->uid, 4);
    (void)snprintf((char *)text + 4, 64, "%s", who->node);
    memcpy(text + 68, id, 16);
    (void)crypto_shorthash((uint8_t *)&h, text, sizeof(text), t->hash_key);
    return h;
}

struct cw_rpc_answer *cw_rpc_answers_find(struct cw_rpc_answers *t, const struct cw_identity *who,
                                          const uint8_t id[16])
{
    struct cw_rpc_answer *a = cw_idtable_find(t->by_hash, hash_of(t, who, id));

    if (a == NULL || a->uid != who->uid || memcmp(a->id, id, 16) != 0 ||
        strcmp(a->node, who->node) != 0)
        return NULL;
    return a;
}

struct cw_rpc_answer *cw_rpc_answers_begin(struct cw_rpc_answers *t, const struct cw_identity *who,
                                           const uint8_t id[16], struct cw_rpc_call *call)
{
    struct cw_rpc_answer *a = cw_xcalloc(1, sizeof(*a));
    struct cw_rpc_answer *same;

    a->hash = hash_of(t, who, id);
    memcpy(a->id, id, 16);
    a->uid = who->uid;
    (void)snprintf(a->node, sizeof(a->node), "%s", who->node);
    a->call = call;
    /* Two ids with one 64-bit keyed hash: the second steps aside and cannot be found by a retry. */
    while ((same = cw_idtable_find(t->by_hash, a->hash)) != NULL)
        a->hash++;
    (void)cw_idtable_set(t->by_hash, a->hash, a);
    return a;
}

/* Bodies first, whole entries only when there are too many of them. */
static void keep_bounds(struct cw_rpc_answers *t)
{
    struct cw_list *pos = t->lean != NULL ? t->lean : t->by_age.next;

    while (t->bytes > CW_RPC_ANSWERS_BYTES_MAX && pos != &t->by_age) {
        drop_body(t, cw_list_entry(pos, struct cw_rpc_answer, by_age));
        pos = pos->next;
        t->lean = pos;
    }
    if (t->lean == &t->by_age)
        t->lean = NULL;
    while (t->n_finished > CW_RPC_ANSWERS_MAX)
        drop(t, cw_list_entry(t->by_age.next, struct cw_rpc_answer, by_age));
}

void cw_rpc_answers_finish(struct cw_rpc_answers *t, struct cw_rpc_answer *a, bool failure,
                           const void *body, size_t len, int64_t now_ms)
{
    a->call = NULL;
    a->done_ms = now_ms;
    a->failure = failure;
    a->have_body = true;
    a->body = cw_xmemdup(body, len);
    a->len = (uint32_t)len;
    t->bytes += len;
    t->n_finished++;
    cw_list_add_tail(&t->by_age, &a->by_age);
    keep_bounds(t);
}

void cw_rpc_answers_forget(struct cw_rpc_answers *t, struct cw_rpc_answer *a)
{
    drop(t, a);
}

void cw_rpc_answers_expire(struct cw_rpc_answers *t, int64_t now_ms)
{
    while (!cw_list_empty(&t->by_age)) {
        struct cw_rpc_answer *a = cw_list_entry(t->by_age.next, struct cw_rpc_answer, by_age);

        if (now_ms - a->done_ms < CW_RPC_ANSWER_KEEP_MS)
            return;
        drop(t, a);
    }
}
