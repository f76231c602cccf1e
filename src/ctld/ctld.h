#pragma once
/* What the files of this folder share: the parts of one running controller. Each part is opaque and
 * has its own header; this struct only holds them together. Everything runs on the loop thread;
 * only turn.c, users.c and req_ctl.c hand work to workers, which then touch nothing of this struct
 * but the store. crunctld.c fills it in order and takes it down backwards. */
#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "loop/loop.h"
#include "model/job.h"
#include "sched/pass.h"
#include "store/store.h"
#include "wire/channel.h"

struct cw_ctld {
    struct cw_conf *conf;       /* replaced as a whole by reload.c: keep no pointer into it */
    struct cw_conf *start_conf; /* as the process started; conf itself until the first reload */
    struct cw_loop *loop;
    struct cw_store *store;
    struct cw_model *model;
    struct cw_plug_registry *plugins;
    struct cw_plug *auth;
    struct cw_pass_policy policy;
    struct cw_keypair key; /* of the controller */
    uint8_t cluster_key[32];
    int64_t start_ns;   /* real time; also the epoch of our frames */
    uint32_t owner_uid; /* owner of the instance directory: always an admin */
    uint32_t *admin_uids;
    size_t n_admin_uids;

    struct cw_turn *turn;
    struct cw_effects *effects;
    struct cw_payloads *payloads;
    struct cw_reqkeys *reqkeys;
    struct cw_users *users;
    struct cw_waits *waits;
    struct cw_eventlog *eventlog;
    struct cw_statistics *statistics;
    struct cw_cycle *cycle;
    struct cw_nodelinks *links;
    struct cw_nodewatch *nodewatch;
    struct cw_deadline *deadline;
    struct cw_leases *leases;
    struct cw_stepbook *stepbook;
    struct cw_retention *retention;
    struct cw_diskguard *disk;
    struct cw_door *door;
    struct cw_rpc_server *clients, *nodes;

    struct cw_loop_timer *stop_timer;
    unsigned busy;          /* works and posted steps under way that will come back */
    bool paused;            /* crun-ctl pause: nothing starts */
    bool stopping;          /* no new requests; leave once everything is stored */
    uint64_t n_quarantined; /* rows that recovery could not read */
};
