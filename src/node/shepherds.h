#pragma once
/* The shepherds of this node: found again by their sockets in DIR/shep, started when needed, and
 * one link to each. The daemon's own death costs nothing: a shepherd goes on and is found by the
 * next. Test: testsuite/t0401, t0402. */
#include "base/buf.h"
#include "base/list.h"
#include "node/crund.h"
#include "proto/wire.pb-c.h"
#include "shepherd/packet.h"

struct cw_shepherd_link {
    struct cw_list link;
    struct cw_shepherds *set;
    char id[48];
    struct cw_packets *packets;
    struct cw_loop_io *io;
    bool listed; /* has told all its tasks */
    bool worked; /* has done so at least once in its life */
    bool waits;  /* for the descriptor to become writable */
    struct cw_strv isolations;
    char *refusal; /* why it could not work */
};

struct cw_shepherds_ops {
    void (*packet)(struct cw_shepherd_link *l, enum cw_packet_type type, const void *body, size_t n,
                   int fd, void *arg);
    /* It is dead. The link goes after this. */
    void (*lost)(struct cw_shepherd_link *l, void *arg);
};

struct cw_shepherds *cw_shepherds_create(struct cw_node *node, const char *conf_path,
                                         const struct cw_shepherds_ops *ops, void *arg);
void cw_shepherds_destroy(struct cw_shepherds *s); /* shepherds stay alive */
/* Links to every living shepherd and hands the ids of dead ones to `dead`. Waits until all have
 * told their tasks. They take nothing new and go when empty: this daemon starts its own. */
int cw_shepherds_adopt(struct cw_shepherds *s, void (*dead)(const char *id, void *arg), void *arg,
                       struct cw_error *err);
/* Starts the resident shepherd and waits until it works. */
int cw_shepherds_start_resident(struct cw_shepherds *s, struct cw_error *err);
void cw_shepherds_attach(struct cw_shepherds *s); /* from now on the loop reads the links */
/* Which shepherd carries a task: the one place that decides. NULL: none can now, err says why. */
struct cw_shepherd_link *cw_shepherds_pick(struct cw_shepherds *s, const Cw__TaskStart *t,
                                           struct cw_error *err);
struct cw_shepherd_link *cw_shepherds_find(struct cw_shepherds *s, const char *id); /* NULL: none */
/* Starts it again when it died. */
struct cw_shepherd_link *cw_shepherds_resident(struct cw_shepherds *s, struct cw_error *err);
/* True when nothing waits to be sent. Call at the end of a turn. */
bool cw_shepherds_flush(struct cw_shepherds *s);
/* Tells all to go when they are empty (a clean stop). */
void cw_shepherds_quit(struct cw_shepherds *s);
/* Starts `crun-shepherd --reclaim` for a dead one. */
int cw_shepherds_reclaim(struct cw_shepherds *s, const char *id, pid_t *ret_pid,
                         struct cw_error *err);
