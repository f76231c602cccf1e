#pragma once
/* Makes the process of a task: clone(CLONE_VM | CLONE_VFORK) on a private stack, so nothing of the
 * shepherd is copied, however large it grows; the child does only system calls (and the isolation
 * plugin's enter), and tells its failure through the shared memory. The caller is suspended until
 * the exec. Single-threaded callers only. Test: shepherd_test.c. */
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"
#include "shepherd/runas.h"

enum cw_spawn_stage {
    CW_SPAWN_SESSION,
    CW_SPAWN_BOX,
    CW_SPAWN_LIMITS,
    CW_SPAWN_IDENTITY,
    CW_SPAWN_CHDIR,
    CW_SPAWN_STDIO,
    CW_SPAWN_EXEC
};

struct cw_spawn_limit {
    int resource;
    rlim_t value;
};
#define CW_SPAWN_LIMITS_MAX 8

struct cw_spawn {
    const char *file; /* what to execute; without '/' it is looked up in search */
    char *const *argv, *const *env;
    const char *search;  /* the job's PATH, NULL: a default */
    int fd_file;         /* >= 0: execute this descriptor instead; stays open in the process */
    const char *workdir; /* NULL: "/" */
    int fd_in, fd_out, fd_err;
    bool tty;                  /* fd_in is a terminal: it becomes the controlling one */
    const struct cw_runas *as; /* NULL: stay who we are */
    const cpu_set_t *cpus;     /* NULL: unbound */
    const struct rlimit *nofile; /* the supervisor's own is higher; NULL: as it is */
    struct cw_spawn_limit limits[CW_SPAWN_LIMITS_MAX];
    size_t n_limits;
    int (*enter)(void *ctx, void *box); /* NULL allowed */
    void *ctx, *box;
    bool ret_bound; /* cpus took effect */
};
/* The process id, or a negative errno with a sentence whose fault class says whose mistake it was.
 * ret_exit (set on failure): 127 not found, 126 not executable, 0 anything else. */
pid_t cw_spawn(struct cw_spawn *s, int *ret_exit, struct cw_error *err);
