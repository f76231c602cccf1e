#pragma once
/* One task of a shepherd and the herd of all of them: what every part of the shepherd shares. A
 * task is born by cw_herd_start, and goes when its end is reported, forgotten by the node daemon
 * and its box is torn down. One thread; nothing here blocks beyond file calls. */
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/idset.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/table.h"
#include "plug/plan.h"
#include "conf/conf.h"
#include "plug/plug.h"
#include "proto/wire.pb-c.h"
#include "shepherd/journal.h"
#include "shepherd/packet.h"
#include "shepherd/runas.h"

enum cw_task_phase {
    CW_TASK_STARTING, /* set-up steps run */
    CW_TASK_RUNNING,  /* the leader lives */
    CW_TASK_EMPTYING, /* the leader is gone, the box is being emptied */
    CW_TASK_LEFTOVER, /* reported as not empty; still watched */
    CW_TASK_ENDED     /* reported; waits for FORGET and for its box to go */
};

struct cw_task_volume {
    struct cw_plug *plug;
    char *source;
};

struct cw_task {
    struct cw_list link;
    uint64_t id;
    uint32_t attempt;
    char key[36]; /* "12.1" */
    enum cw_task_phase phase;

    /* Only while it starts. */
    struct cw_arena *arena;
    const Cw__TaskStart *start;
    struct cw_runas *as;
    struct cw_plan *plan;
    struct cw_strv env;
    int fd_in, fd_out, fd_err, fd_script;

    /* As long as it lives. */
    uint32_t uid, gid;
    struct cw_plug *isolation;
    void *box;
    char *script; /* path, NULL none */
    char *hostfile; /* path, NULL none */
    struct cw_task_volume *volumes;
    size_t n_volumes;
    char *stdout_path, *stderr_path; /* as opened */
    uint64_t mem_bytes;
    uint64_t anon_peak_bytes; /* largest seen when somebody asked */
    pid_t pid;
    bool headless; /* no leader: a place for steps until it is killed */
    bool reaped, cpus_bound;
    int wait_status;
    struct rusage rusage;
    int64_t start_ns, end_ns;
    uint32_t kill_grace_ms;
    int kill_cause; /* enum Cw__Cause once we began to kill, else 0 */
    struct cw_buf brief;      /* packed TaskStart without its payload, for steps */
    struct cw_list steps;     /* struct cw_step */
    struct cw_idset past_steps; /* begun and gone */

    /* Monotonic ms; 0 none. */
    int64_t limit_at, kill_at, check_at, give_up_at, early_at;
    int early_signal; /* sent at early_at */
    bool early_leader; /* to the leader alone */
    int64_t check_step_ms;

    /* Once ended. */
    struct cw_buf end; /* packed TaskEnd */
    bool emptied;      /* EMPTIED follows END */
    bool forgotten;
};

struct cw_herd {
    const char *node, *node_dir; /* name; node_dir/NAME */
    char hostname[65];
    bool unbound;   /* CPU numbers are not this machine's */
    bool root;      /* may change identity */
    bool reachable; /* every user can walk to node_dir */
    const struct cw_conf *conf;
    struct cw_plug_registry *plugs;
    struct cw_journal *journal;
    struct cw_packets *peer; /* NULL: the node daemon is away */
    bool leaving; /* told to go when nothing is left */
    struct cw_runas_cache *identities;
    struct cw_list tasks;
    struct cw_strtable *by_key;
    struct cw_idtable *by_pid;
    size_t n_tasks, n_emptying;
    struct cw_idtable *step_pids; /* struct cw_steptask */
    size_t n_steps;               /* of all tasks */
    int io_fd;                    /* epoll: the sessions of steps */
    int64_t next_due; /* monotonic ms, INT64_MAX none */
    int dev_null;
    struct rlimit nofile; /* of tasks; rlim_max 0: as ours */
};

int64_t cw_herd_now_ms(void);
/* Sees to it that cw_herd_due runs at at_ms. */
void cw_herd_wake(struct cw_herd *h, int64_t at_ms);
/* Queues a record for the node daemon; without one nothing is lost (a new link begins with a list).
 */
void cw_herd_tell(struct cw_herd *h, enum cw_packet_type type, const void *body, size_t n);
/* Negative errno when it could not be written (logged). */
int cw_herd_journal(struct cw_herd *h, enum cw_journal_type type, const struct cw_task *t,
                    const void *body, size_t n);
