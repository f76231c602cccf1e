#pragma once
/* Channels that a server knows: keys, verified identity, and a window of the request ids seen on
 * each, so that a copied frame is never taken twice. An id that has left the window raises the
 * channel's floor: whatever is stamped no later than the floor and is not in the window counts as a
 * replay. Pure memory: time comes with the requests. Test: rpc_peer_test.c. */
#include <crunwlm/plugin.h>
#include <stdbool.h>

#include "base/list.h"
#include "wire/channel.h"

#define CW_RPC_PEERS_MAX      4096
#define CW_RPC_PEER_CALLS_MAX 256
#define CW_RPC_WINDOW         512 /* twice the calls: an answered one can make room */

struct cw_rpc_call;
struct cw_rpc_seen {
    uint8_t id[16];
    uint64_t time_ms;         /* stamp of the newest frame with this id */
    struct cw_rpc_call *call; /* in progress, or NULL */
};
struct cw_rpc_peer {
    struct cw_list lru;
    struct cw_channel channel;
    struct cw_identity identity;
    uint64_t hash;
    uint64_t floor_ms;
    unsigned calls; /* in progress; a peer with calls stays */
    struct cw_rpc_seen *seen;
    size_t n_seen, cap_seen;
};

struct cw_rpc_peers;
struct cw_rpc_peers *cw_rpc_peers_create(void);
void cw_rpc_peers_destroy(struct cw_rpc_peers *p);
/* NULL: unknown; else it is the most recently used from now on. */
struct cw_rpc_peer *cw_rpc_peers_find(struct cw_rpc_peers *p, const uint8_t eph_pub[32]);
/* Takes the place of the least recently used peer without calls when full; NULL when all have
 * calls. */
struct cw_rpc_peer *cw_rpc_peers_add(struct cw_rpc_peers *p, const struct cw_channel *ch,
                                     const struct cw_identity *who);
size_t cw_rpc_peers_count(const struct cw_rpc_peers *p);

struct cw_rpc_seen *cw_rpc_peer_seen(struct cw_rpc_peer *p,
                                     const uint8_t id[16]); /* NULL: not in the window */
/* -ESTALE: at or below the floor. The pointer lives until the next add. */
int cw_rpc_peer_add_seen(struct cw_rpc_peer *p, const uint8_t id[16], uint64_t time_ms,
                         struct cw_rpc_seen **ret);
