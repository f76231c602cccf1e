/* The cache of channels and their replay windows. The hash is keyed at random because peers choose
 * their own keys. Test: rpc_peer_test.c. */
#include "config.h"

#include "wire/rpc_peer.h"

#include "base/mem.h"
#include "base/table.h"

#include <sodium.h>
#include <string.h>

struct cw_rpc_peers {
    struct cw_idtable *by_hash;
    struct cw_list lru; /* oldest first */
    uint8_t hash_key[crypto_shorthash_KEYBYTES];
};

struct cw_rpc_peers *cw_rpc_peers_create(void)
{
    struct cw_rpc_peers *p = cw_xcalloc(1, sizeof(*p));

    if (sodium_init() < 0)
        abort();
    p->by_hash = cw_idtable_create();
    cw_list_init(&p->lru);
    crypto_shorthash_keygen(p->hash_key);
    return p;
}

static void drop(struct cw_rpc_peers *p, struct cw_rpc_peer *peer)
{
    (void)cw_idtable_remove(p->by_hash, peer->hash);
    cw_list_remove(&peer->lru);
    cw_channel_clear(&peer->channel);
    free(peer->seen);
    free(peer);
}

void cw_rpc_peers_destroy(struct cw_rpc_peers *p)
{
    if (p == NULL)
        return;
    while (!cw_list_empty(&p->lru))
        drop(p, cw_list_entry(p->lru.next, struct cw_rpc_peer, lru));
    cw_idtable_destroy(p->by_hash);
    free(p);
}

static uint64_t hash_of(const struct cw_rpc_peers *p, const uint8_t eph_pub[32])
{
    uint64_t h = 0;

    (void)crypto_shorthash((uint8_t *)&h, eph_pub, 32, p->hash_key);
    return h;
}

struct cw_rpc_peer *cw_rpc_peers_find(struct cw_rpc_peers *p, const uint8_t eph_pub[32])
{
    struct cw_rpc_peer *peer = cw_idtable_find(p->by_hash, hash_of(p, eph_pub));

    if (peer == NULL || memcmp(peer->channel.eph_pub, eph_pub, 32) != 0)
        return NULL;
    cw_list_remove(&peer->lru);
    cw_list_add_tail(&p->lru, &peer->lru);
    return peer;
}

static bool drop_oldest_idle(struct cw_rpc_peers *p)
{
    cw_list_each(pos, &p->lru) {
        struct cw_rpc_peer *peer = cw_list_entry(pos, struct cw_rpc_peer, lru);

        if (peer->calls > 0)
            continue;
        drop(p, peer);
        return true;
    }
    return false;
}

struct cw_rpc_peer *cw_rpc_peers_add(struct cw_rpc_peers *p, const struct cw_channel *ch,
                                     const struct cw_identity *who)
{
    uint64_t hash = hash_of(p, ch->eph_pub);
    struct cw_rpc_peer *peer = cw_idtable_find(p->by_hash, hash);

    if (peer != NULL && peer->calls > 0)
        return NULL;
    if (peer != NULL)
        drop(p, peer);
    if (cw_idtable_count(p->by_hash) >= CW_RPC_PEERS_MAX && !drop_oldest_idle(p))
        return NULL;
    peer = cw_xcalloc(1, sizeof(*peer));
    peer->channel = *ch;
    peer->identity = *who;
    peer->hash = hash;
    (void)cw_idtable_set(p->by_hash, hash, peer);
    cw_list_add_tail(&p->lru, &peer->lru);
    return peer;
}

size_t cw_rpc_peers_count(const struct cw_rpc_peers *p)
{
    return cw_idtable_count(p->by_hash);
}

struct cw_rpc_seen *cw_rpc_peer_seen(struct cw_rpc_peer *p, const uint8_t id[16])
{
    for (size_t i = 0; i < p->n_seen; i++)
        if (memcmp(p->seen[i].id, id, 16) == 0)
            return &p->seen[i];
    return NULL;
}

static struct cw_rpc_seen *oldest_answered(struct cw_rpc_peer *p)
{
    struct cw_rpc_seen *oldest = NULL;

    for (size_t i = 0; i < p->n_seen; i++)
        if (p->seen[i].call == NULL && (oldest == NULL || p->seen[i].time_ms < oldest->time_ms))
            oldest = &p->seen[i];
    return oldest;
}

int cw_rpc_peer_add_seen(struct cw_rpc_peer *p, const uint8_t id[16], uint64_t time_ms,
                         struct cw_rpc_seen **ret)
{
    struct cw_rpc_seen *s;

    if (time_ms <= p->floor_ms)
        return -ESTALE;
    if (p->n_seen < CW_RPC_WINDOW) {
        if (p->n_seen == p->cap_seen) {
            p->cap_seen = p->cap_seen == 0 ? 4 : p->cap_seen * 2;
            p->seen = cw_xrealloc(p->seen, p->cap_seen, sizeof(*p->seen));
        }
        s = &p->seen[p->n_seen++];
    } else {
        s = oldest_answered(p);
        if (s == NULL)
            return -EAGAIN;
        if (s->time_ms > p->floor_ms)
            p->floor_ms = s->time_ms;
        if (time_ms <= p->floor_ms)
            return -ESTALE;
    }
    memcpy(s->id, id, 16);
    s->time_ms = time_ms;
    s->call = NULL;
    *ret = s;
    return 0;
}
