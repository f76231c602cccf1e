#pragma once
/* The site's configuration: one libconfuse file, described by one schema table (conf_schema.c) that
 * parser, checker, `crunctld -t`, `crun-ctl show-config` and the man page all read.
 *
 * cw_conf_load never leaves half a result: it returns a complete, checked object or an error
 * `file:line: what is wrong, what is allowed`. The object never changes afterwards. Parsing is not
 * thread-safe (the lexer is global). Traps of libconfuse that this unit closes: LIBRARIES section 7
 * (missing brace, duplicate titles and scalars, octal numbers, own include, environment variables).
 *
 * In the file a setting is called as its field here without the unit (kill_grace, heartbeat,
 * node_lost, disk_reserve, reserve_mem, retention, max_time, default_time, default_mem); is_default
 * is `default`. A bare number is seconds (units ms s m h d w), except that heartbeat needs a unit
 * and a partition's times are written as for --time (a bare number is minutes); a bare size is MiB.
 * Paths, also those of ipc://, are made absolute.
 * Test: conf_test.c, fuzz_conf.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct cw_conf_option { const char *key, *value; int line; };

struct cw_conf_plugin {          /* plugin "family/name" { required = true  options { k = v } } */
    const char *family, *name;
    bool required;               /* a daemon refuses to start without it */
    const char *exec;            /* not NULL: an external program instead of a shared object */
    const struct cw_conf_option *options;
    size_t n_options;
    int line;
};

struct cw_conf_partition {       /* partition "main" { ... } */
    const char *name;
    const char *nodes;           /* host list or "ALL" (default) */
    bool is_default;
    uint64_t max_time_s;         /* CW_DURATION_UNLIMITED by default */
    uint64_t default_time_s;     /* 1 h by default */
    uint64_t default_mem_bytes;  /* per core; 0: share of the node's memory by cores (default) */
    const char *isolation;       /* default for its jobs; "" : the instance's default_isolation */
    int line;
};

struct cw_conf {
    const char *path;            /* of the file */
    const char *cluster;         /* name, default "crun" */
    const char *dir;             /* base directory of relative paths below; default: the file's directory */
    const char *state_dir;       /* default dir/state */
    const char *run_dir;         /* sockets, locks; default dir/run */
    const char *node_dir;        /* per node: node_dir/NAME; default dir/node */
    const char *plugin_path;     /* colon-separated; default the installed plugin directory */
    const char *client_listen;   /* nanomsg URL, default ipc://RUN_DIR/ctl.sock */
    const char *node_listen;     /* default ipc://RUN_DIR/nodes.sock; a cluster uses tcp://... */
    const char *client_connect;  /* what commands dial, default client_listen */
    const char *node_connect;    /* what nodes dial, default node_listen */
    const char *session_listen;  /* a node's own socket, default ipc://NODE_DIR/NAME/log.sock; %n = node name */
    const char *key_file;        /* cluster key, 32 bytes, 0600; default dir/key */
    const char *public_key_file; /* controller's public key as hex, world-readable; default dir/controller.pub */
    const char *door;            /* AF_UNIX path where auth/key issues tokens; default RUN_DIR/door.sock */
    const char *auth;            /* auth plugin, default "key" */
    const char *sched;           /* sched plugin, default "fifo" */
    const char *backfill;        /* easy | conservative | none */
    uint32_t backfill_depth;     /* conservative: reservations of a partition, default 50 */
    const char *default_isolation; /* default "cgroup", or "none" where cgroups cannot be written */
    const char *allow_users;     /* comma list of names that may submit, "" = all */
    const char *admins;          /* comma list of user names; root and the owner of dir always are */
    bool allow_root_jobs;        /* default false */
    const char *slurm_env;       /* auto | yes | no */
    uint32_t kill_grace_s;       /* TERM to KILL, default 30 */
    uint32_t heartbeat_ms;       /* node to controller, default 5000 */
    uint32_t node_lost_s;        /* silence after which a node is lost, default 60 */
    uint32_t max_requeues;       /* infra budget of a job, default 3 */
    uint64_t disk_reserve_bytes; /* state file system: below this no new work, default 64 MiB */
    uint64_t reserve_mem_bytes;  /* per node, not given to jobs, default 0 */
    uint32_t reserve_cores;      /* per node, default 0 */
    uint64_t retention_s;        /* finished records, default 30 d */
    uint64_t max_array;          /* most elements of one array, default 1,000,000 */
    uint64_t max_jobs;           /* most live jobs (arrays count once), default 1,000,000 */
    const char *log_level;       /* error warn info debug */
    const char *store_sync;      /* full | meta | none, LIBRARIES 2.1; default full */
    const struct cw_conf_partition *partitions; /* at least one; "main" on ALL nodes when none is given */
    size_t n_partitions;
    const struct cw_conf_plugin *plugins;
    size_t n_plugins;
};

int cw_conf_load(const char *path, struct cw_conf **ret, struct cw_error *err);
int cw_conf_load_text(const char *name, const char *text, struct cw_conf **ret, struct cw_error *err);
void cw_conf_destroy(struct cw_conf *c); /* NULL allowed */
/* First of: explicit (may be NULL), $CRUN_CONF, $CRUN_HOME/crun.conf (without CRUN_HOME:
 * ~/.crun-wlm/crun.conf) when it exists,
 * SYSCONFDIR/crun-wlm/crun.conf. Heap string. -ENOENT names every place that was tried. */
int cw_conf_find(const char *explicit_path, char **ret_path, struct cw_error *err);
const struct cw_conf_partition *cw_conf_partition_find(const struct cw_conf *c, const char *name); /* NULL name: default */
const struct cw_conf_plugin *cw_conf_plugin_find(const struct cw_conf *c, const char *family, const char *name);
/* A configuration read again, `next`, takes over what must stay as the process started: settings that
 * `live` (NULL-terminated) does not list, and plugin sections, get the values of `base`, which has to
 * outlive next. Names of those that differed are added to kept, separated by commas. */
void cw_conf_keep(struct cw_conf *next, const struct cw_conf *base, const char *const *live,
                  struct cw_buf *kept);
/* Every value with its origin: `kill_grace = 30 (default)` / `(crun.conf:12)`, one a line. */
void cw_conf_dump(const struct cw_conf *c, struct cw_buf *out);
