#pragma once
/* What the parts of one node daemon share. One thread, one loop. */
#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "loop/loop.h"
#include "plug/plug.h"
#include "topo/topo.h"
#include "wire/channel.h"

struct cw_ctllink;
struct cw_graves;
struct cw_logserver;
struct cw_shepherds;
struct cw_stepserver;
struct cw_tasktab;

struct cw_node {
    const struct cw_conf *conf;
    const char *name;
    char *dir; /* node_dir/NAME */
    struct cw_loop *loop;
    struct cw_topo *topo;
    struct cw_plug_registry *plugs;
    struct cw_keypair key; /* node.key */
    uint8_t ticket_key[32];
    char *address; /* of the log server */
    uint64_t epoch;
    struct cw_tasktab *tasks;
    struct cw_shepherds *shepherds;
    struct cw_graves *graves;
    struct cw_ctllink *ctl; /* NULL while starting */
    struct cw_logserver *logs;
    struct cw_stepserver *steps;
};
