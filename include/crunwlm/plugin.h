/* crun-wlm plugin interface, version 1. C11 and C++ clean; needs nothing else of ours.
 *
 * A plugin is a shared object with ONE exported constant named cw_plugin. It links to nothing of
 * crun-wlm: everything it may call arrives in struct cw_host. Rules of compatibility:
 *  - the same abi_major loads for ever; a different one is refused;
 *  - structs grow at the end only; `size`/`ops_size` say how much the plugin knows: the host calls a
 *    member only if it lies inside, and a plugin may use a host member only if host->size covers it;
 *  - plugins are never unloaded.
 * Errors: 0, or a negative errno and a sentence in err: -ENOTSUP "not me, try the next", -EAGAIN
 * "later", -EINVAL "the spec is wrong" (the job fails), anything else "this node is broken".
 * Threads: controller-side calls come from one thread and must not block; node-side calls run inside
 * a shepherd, where a crash costs its tasks only. See doc/PLUGINS.md. */
#ifndef CRUNWLM_PLUGIN_H
#define CRUNWLM_PLUGIN_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CW_PLUGIN_MAGIC 0x43575047u /* "CWPG" */
#define CW_PLUGIN_ABI_MAJOR 1
#define CW_PLUGIN_ABI_MINOR 0

#define CW_PLUGIN_ERR_MAX 256
struct cw_plugin_err { char text[CW_PLUGIN_ERR_MAX]; };

enum cw_option_type { CW_OPT_STRING, CW_OPT_INT, CW_OPT_BOOL, CW_OPT_SIZE, CW_OPT_DURATION };
/* One row per option that the site may set in `plugin "family/name" { options { name = value } }`.
 * The host checks type and name before open; ends with a row whose name is NULL. */
struct cw_option {
    const char *name;
    enum cw_option_type type;
    const char *default_value; /* as text; NULL: none */
    const char *help;          /* one line */
};

/* The lines of a plan: what has to be true before the process starts. gpu, volume, image, secret and
 * network plugins add lines; the isolation plugin alone carries them out. */
enum cw_plan_kind {
    CW_PLAN_ENV = 1,   /* a=name b=value */
    CW_PLAN_MOUNT = 2, /* a=source b=target c=options ("ro,nosuid,nodev") */
    CW_PLAN_DEVICE = 3,/* a=path b="rw" ; n1=major n2=minor */
    CW_PLAN_LIMIT = 4, /* a="memory"|"pids"|"nofile"|"core" n1=value */
    CW_PLAN_CPUS = 5,  /* a=OS processor list "0-3" b=NUMA node list */
    CW_PLAN_HOOK = 6   /* a=when ("start"|"end") b=program, run as root outside the job */
};
struct cw_plan_line {
    uint32_t size; /* sizeof, set by the host */
    uint32_t kind; /* enum cw_plan_kind */
    const char *a, *b, *c;
    int64_t n1, n2;
    const char *origin; /* "gpu/fake": set by the host */
};
struct cw_plan; /* opaque, owned by the host */

struct cw_host {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    void (*log)(const struct cw_host *host, int level /* 0 error .. 3 debug */, const char *text);
    /* Value of an option: the site's, else the default, else NULL. Valid until close. */
    const char *(*option)(const struct cw_host *host, const char *name);
    int (*plan_add)(const struct cw_host *host, struct cw_plan *plan, const struct cw_plan_line *line);
    /* Line i (from 0), or NULL behind the last. Valid until the plan goes. */
    const struct cw_plan_line *(*plan_get)(const struct cw_host *host, const struct cw_plan *plan, uint32_t i);
    const char *(*instance)(const struct cw_host *host, const char *what); /* "cluster" "node" "key_file" "door" "run_dir" "node_dir"; NULL unknown */
    void *priv;
};

struct cw_plugin {
    uint32_t magic; /* CW_PLUGIN_MAGIC */
    uint32_t size;  /* sizeof(struct cw_plugin) */
    uint16_t abi_major, abi_minor;
    const char *family, *name, *version;
    uint64_t caps; /* per family */
    const struct cw_option *options; /* NULL: none */
    /* host lives until close. ret_ctx goes to every other call. May be NULL: nothing to do. */
    int (*open)(const struct cw_host *host, void **ret_ctx, struct cw_plugin_err *err);
    int (*reload)(void *ctx, struct cw_plugin_err *err); /* options changed; NULL: restart needed */
    void (*close)(void *ctx);
    const void *ops; /* struct cw_FAMILY_ops */
    uint32_t ops_size;
};

/* What a plugin may know about a task. */
struct cw_task_view {
    uint32_t size;
    uint64_t id, job_id;
    uint32_t attempt;
    uint32_t uid, gid;
    const char *user, *name, *partition, *workdir;
    const char *cpus, *mems;   /* OS processor and NUMA lists, e.g. "0-3" */
    uint64_t mem_bytes;        /* 0: no limit */
    const uint32_t *gpus;      /* indices granted */
    uint32_t n_gpus;
    const char *key;           /* unique on this node, usable as a file name: "12.1" */
};

/* ---- isolation: carries a plan out; owns the box a task lives in ----------------------------------- */
#define CW_ISOLATION_CAP_LIMITS 1u    /* enforces memory and pids */
#define CW_ISOLATION_CAP_CPUSET 2u    /* the task cannot leave its CPUs */
#define CW_ISOLATION_CAP_CONTAIN 4u   /* signal and empty reach every process, whatever it does */
#define CW_ISOLATION_CAP_PRIVATE 8u   /* own mounts, pids, network */
struct cw_box_usage {
    uint32_t size;
    uint64_t cpu_user_ns, cpu_sys_ns, mem_peak_bytes;
    uint32_t oom_kills;
    const char *source; /* "cgroup1", "cgroup2", "" when this plugin measures nothing */
    uint64_t mem_now_bytes;  /* with page cache; 0 not known */
    uint64_t mem_anon_bytes; /* anonymous and shared memory now; 0 not known */
    uint64_t throttled_ns;
};
struct cw_isolation_ops {
    /* 0: usable on this machine now; -ENOTSUP with the reason. */
    int (*probe)(void *ctx, struct cw_plugin_err *err);
    /* Builds the box. What it makes must be found again by task->key alone (reclaim). */
    int (*prepare)(void *ctx, const struct cw_task_view *task, const struct cw_plan *plan, void **ret_box, struct cw_plugin_err *err);
    /* In the new process, still root, single-threaded, before the identity is dropped; async-signal-safe
     * calls only. Returns 0 or a negative errno. */
    int (*enter)(void *ctx, void *box);
    /* Sends sig to every process in the box; returns how many, or a negative errno. sig 0 counts. */
    int (*signal)(void *ctx, void *box, int sig);
    /* SIGKILL to all of it in a way that cannot be outrun (freeze or cgroup.kill). Same return. */
    int (*kill)(void *ctx, void *box);
    int (*usage)(void *ctx, void *box, struct cw_box_usage *ret);
    /* Tears down; -EBUSY while processes are left. Tolerates parts never built. Frees box on 0. */
    int (*release)(void *ctx, void *box);
    /* After a crash: kill and remove whatever a box of this key left behind. 0 also when nothing was. */
    int (*reclaim)(void *ctx, const char *key, struct cw_plugin_err *err);
    /* In the parent, right after a process was spawned that went through enter (the leader, then tasks of
     * steps) and before any other call on the box: its pid, not reaped yet. May be NULL: needs no pid. */
    int (*started)(void *ctx, void *box, pid_t pid);
};

/* ---- gpu ------------------------------------------------------------------------------------------------ */
struct cw_gpu_info {
    uint32_t size;
    uint32_t index;
    char uuid[64], model[64], pci[32];
    uint64_t mem_bytes;
    int32_t numa; /* -1 unknown */
};
struct cw_gpu_ops {
    int (*count)(void *ctx, struct cw_plugin_err *err); /* 0 or more */
    int (*get)(void *ctx, uint32_t i, struct cw_gpu_info *ret, struct cw_plugin_err *err);
    /* Adds devices and environment for the task's GPUs; with n_gpus == 0 the lines that deny. */
    int (*plan)(void *ctx, const struct cw_host *host, const struct cw_task_view *task, struct cw_plan *plan, struct cw_plugin_err *err);
};

/* ---- volume, image, secret, network: one line adder each -------------------------------------------------- */
struct cw_volume_ops {
    /* Pure: may this use be accepted? Runs in the controller. */
    int (*check)(void *ctx, const char *source, const char *target, int read_only, struct cw_plugin_err *err);
    int (*plan)(void *ctx, const struct cw_host *host, const struct cw_task_view *task, const char *source, const char *target,
                int read_only, struct cw_plan *plan, struct cw_plugin_err *err);
    int (*release)(void *ctx, const struct cw_task_view *task, const char *source);
};
struct cw_image_ops {
    int (*check)(void *ctx, const char *image, struct cw_plugin_err *err);
    int (*plan)(void *ctx, const struct cw_host *host, const struct cw_task_view *task, const char *image, struct cw_plan *plan, struct cw_plugin_err *err);
    int (*release)(void *ctx, const struct cw_task_view *task, const char *image);
};
struct cw_secret_ops {
    int (*plan)(void *ctx, const struct cw_host *host, const struct cw_task_view *task, const char *name, const void *value, size_t len,
                struct cw_plan *plan, struct cw_plugin_err *err);
};
struct cw_network_ops {
    int (*check)(void *ctx, const char *network, struct cw_plugin_err *err);
    int (*plan)(void *ctx, const struct cw_host *host, const struct cw_task_view *task, const char *network, struct cw_plan *plan, struct cw_plugin_err *err);
    int (*release)(void *ctx, const struct cw_task_view *task);
};

/* ---- sched, scale: pure policy --------------------------------------------------------------------------- */
struct cw_sched_job {
    uint32_t size;
    uint64_t id;          /* also the submit order */
    int64_t submit_ns, now_ns;
    uint64_t time_limit_s;
    uint32_t cores, gpus, uid;
    uint64_t mem_bytes;
    const char *partition, *account;
};
#define CW_SCHED_CAP_STRICT 1u /* nothing may start before the first job that waits */
struct cw_sched_ops {
    /* Larger goes first; equal keys go by submit order. */
    int64_t (*priority)(void *ctx, const struct cw_sched_job *job);
};
struct cw_scale_view { uint32_t size; int64_t now_ns; double in_flight, queued, capacity_per_replica; uint32_t replicas, min, max; };
struct cw_scale_ops { int64_t (*replicas)(void *ctx, const struct cw_scale_view *view); };

/* ---- auth: who asks --------------------------------------------------------------------------------------- */
struct cw_identity {
    uint32_t size;
    uint32_t uid, gid;
    char node[64];      /* not "": a node daemon of that name, uid/gid mean nothing */
    int64_t expires_ns; /* real time */
};
#define CW_AUTH_CRED_MAX 1024
struct cw_auth_ops {
    /* Proves the caller's identity for one channel: bind is the channel's public key. ret_len <= cap. */
    int (*credential)(void *ctx, const uint8_t bind[32], uint8_t *buf, size_t cap, size_t *ret_len, struct cw_plugin_err *err);
    /* The same for a node daemon of this name. */
    int (*node_credential)(void *ctx, const char *node, const uint8_t bind[32], uint8_t *buf, size_t cap, size_t *ret_len, struct cw_plugin_err *err);
    /* -EACCES with the reason. now_ns: real time. */
    int (*verify)(void *ctx, const uint8_t bind[32], const uint8_t *cred, size_t len, int64_t now_ns, struct cw_identity *ret, struct cw_plugin_err *err);
    /* Serves one request at the door: a peer with this SO_PEERCRED identity asks for a credential. NULL:
     * this plugin needs no door. */
    int (*issue)(void *ctx, uint32_t uid, uint32_t gid, const uint8_t bind[32], uint8_t *buf, size_t cap, size_t *ret_len, struct cw_plugin_err *err);
};

/* ---- submit, acct, notify, health, power, router ------------------------------------------------------------ */
struct cw_job_view { /* text of a spec field by name; NULL: not set */
    uint32_t size;
    const char *(*get)(const struct cw_job_view *job, const char *field);
    int (*set)(struct cw_job_view *job, const char *field, const char *value); /* -EINVAL, -ENOENT */
    void *priv;
};
struct cw_submit_ops { int (*submit)(void *ctx, struct cw_job_view *job, struct cw_plugin_err *err); /* -EINVAL + text refuses */ };
struct cw_acct_ops { int (*record)(void *ctx, const char *json); /* one finished attempt */ };
struct cw_notify_ops { int (*event)(void *ctx, const char *json); };
struct cw_health_ops { int (*check)(void *ctx, struct cw_plugin_err *err); /* 0 ok; 1 drain; 2 down; text = reason */ };
struct cw_power_ops {
    int (*resume)(void *ctx, const char *node, struct cw_plugin_err *err);
    int (*suspend)(void *ctx, const char *node, struct cw_plugin_err *err);
};
struct cw_router_ops {
    int (*apply)(void *ctx, const char *json, struct cw_plugin_err *err); /* the wanted routes */
    int (*drained)(void *ctx, const char *group, const char *replica, struct cw_plugin_err *err); /* 1 yes, 0 not yet */
    int (*stat)(void *ctx, char *buf, size_t cap, struct cw_plugin_err *err); /* JSON */
};

#if defined(__GNUC__)
#define CW_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define CW_PLUGIN_EXPORT
#endif
/* The constant that a plugin exports, whatever -fvisibility says. */
CW_PLUGIN_EXPORT extern const struct cw_plugin cw_plugin;

#ifdef __cplusplus
}
#endif
#endif
