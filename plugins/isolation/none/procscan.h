#pragma once
/* A snapshot of the machine's processes: enough to tell whose child, group and session each is.
 *
 * Processes older than ourselves cannot be of our tasks: they are remembered by pid and /proc inode
 * (a reused pid has another inode) and not read again, which is most of the cost of a scan.
 * One scanner per thread. Test: none_test.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct procscan_proc {
    pid_t pid, ppid, pgrp, session;
    uint64_t start_ticks; /* since boot; with pid it names a process for ever */
    bool member;          /* the caller's mark */
    char comm[16];
};

struct procscan {
    int proc_fd;
    uint64_t self_start_ticks;
    struct {
        pid_t pid;
        uint64_t inode;
    } * old; /* sorted by pid */
    size_t n_old, cap_old;
    struct procscan_proc *procs; /* of the last run; the dead and the skipped are not in it */
    size_t n, cap;
    char *dirents;
};

int procscan_open(struct procscan *s);
void procscan_close(struct procscan *s); /* zeroed is allowed */
/* Reads the living processes; with_old also those older than ourselves. */
int procscan_run(struct procscan *s, bool with_old);
struct procscan_proc *procscan_find(struct procscan *s, pid_t pid); /* NULL: not in the snapshot */
/* Start time of a pid, 0 when it is gone. */
uint64_t procscan_start_ticks(struct procscan *s, pid_t pid);
/* Is NAME=VALUE in the environment that pid was started with? Unreadable counts as no. */
bool procscan_has_env(struct procscan *s, pid_t pid, const char *const *pairs, size_t n);
