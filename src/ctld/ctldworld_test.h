#pragma once
/* For unit tests: the parts of a controller on a store in a directory of its own, without sockets
 * and plugins. world_reopen is a restart: memory goes, the store stays. */
#include "ctld/ctld.h"
#include "proto/wire.pb-c.h"

struct world {
    struct cw_ctld c;
    char dir[64];
};
struct world *world_create(void);
void world_reopen(struct world *w);
void world_destroy(struct world *w);
void world_commit(struct world *w); /* runs the loop until everything is stored and done */

/* Node n1 with that many cores, up. */
struct cw_node *world_node(struct world *w, uint32_t cores);
struct cw_node *world_node_named(struct world *w, const char *name, uint32_t cores);
/* A job of uid 1000 with one core; change (NULL allowed) may set more of the record. */
struct cw_job *world_submit(struct world *w, void (*change)(Cw__JobRecord *rec));
int world_end(struct world *w, uint64_t id, uint32_t attempt, uint32_t exit_code);
