#pragma once
/* For tests of the session: a node and a controller with what they have stored and still have to
 * tell, and a link in memory that loses, doubles, delays, reorders and cuts by chance. Time is
 * virtual. */
#include <stdbool.h>

#include "wire/session.h"

#define CW_SESSIONWORLD_RECORDS      100000u /* each side tells the other the numbers 1 .. RECORDS */
#define CW_SESSIONWORLD_HEARTBEAT_MS 1000

struct cw_sessionworld;
struct cw_side {
    struct cw_sessionworld *w;
    bool node;
    struct cw_session *s;
    struct cw_channel ch;
    uint64_t epoch;
    uint64_t pushed;           /* newest number given to the session */
    uint64_t acked;            /* newest number the peer has stored */
    uint64_t applied, durable; /* of the peer's numbers: taken in, and stored */
    uint64_t pair_last;        /* 0: none of this pairing yet */
    uint64_t newest_seq;       /* session number of the newest record taken in */
    int64_t commit_at_ms;
    uint64_t n_taken, n_frames, n_silent, n_pairings;
};

struct cw_packet {
    int64_t at_ms;
    bool to_node;
    uint8_t *data;
    size_t n;
};
#define CW_SESSIONWORLD_PACKETS 4096
struct cw_sessionworld {
    struct cw_side node, ctl;
    struct cw_keypair key;
    int64_t now_ms;
    uint32_t loss_pct, double_pct, delay_ms;
    uint32_t burst, window; /* records an owner pushes in a turn, and ahead of its peer */
    struct cw_packet p[CW_SESSIONWORLD_PACKETS];
    unsigned n;
    uint64_t node_epoch_known; /* newest node epoch that the controller has a session for */
    uint64_t n_restarts, n_cuts, n_old;
};

struct cw_sessionworld *cw_sessionworld_create(void); /* a good link, nothing sent */
void cw_sessionworld_destroy(struct cw_sessionworld *w);
uint32_t cw_sessionworld_rng(uint32_t below);
void cw_sessionworld_deliver_due(struct cw_sessionworld *w);
void cw_sessionworld_cut(struct cw_sessionworld *w); /* what is under way is lost */
void cw_sessionworld_restart_node(struct cw_sessionworld *w);
void cw_sessionworld_restart_ctl(struct cw_sessionworld *w);
void cw_sessionworld_push_number(struct cw_side *a, uint64_t number);
/* Stores, acknowledges, pushes, flushes and ticks, as a daemon's turn does. */
void cw_sessionworld_owner_turn(struct cw_side *a, uint64_t peer_applied);
extern const struct cw_session_ops cw_sessionworld_ops;
