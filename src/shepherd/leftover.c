/* Finds a process that is left of a task; see leftover.h. */
#include "shepherd/leftover.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

struct stat_line {
    int pid, ppid, session;
    char state, comm[32];
};

/* proc_pid_stat(5): "pid (comm) state ppid pgrp session"; comm may hold ')' and spaces. */
static bool read_stat(const char *pid, struct stat_line *ret)
{
    char path[64];
    cw_autobuf struct cw_buf b = { 0 };
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    if (cw_file_read(path, 4096, &b, NULL) < 0 || b.len == 0)
        return false;
    char *open = strchr(b.data, '('), *close = strrchr(b.data, ')');
    if (open == NULL || close == NULL || close < open)
        return false;
    int pgrp;
    ret->pid = (int)strtol(b.data, NULL, 10);
    snprintf(ret->comm, sizeof ret->comm, "%.*s", (int)(close - open - 1), open + 1);
    return sscanf(close + 1, " %c %d %d %d", &ret->state, &ret->ppid, &pgrp, &ret->session) == 4;
}

void cw_leftover_describe(pid_t leader, int n, char *buf, size_t cap)
{
    snprintf(buf, cap, "%d process%s", n, n == 1 ? "" : "es");
    if (leader == 0)
        return;
    DIR *d = opendir("/proc");
    if (d == NULL)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat_line s;
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || !read_stat(e->d_name, &s))
            continue;
        if (s.state == 'Z' || (s.session != leader && s.pid != leader))
            continue;
        snprintf(buf, cap, "pid %d (%s) in state %c", s.pid, s.comm, s.state);
        break;
    }
    closedir(d);
}

/* Opened first, looked at then: what the descriptor names cannot become another process. */
static void kill_if_of(const char *name, pid_t session)
{
    struct stat_line s;
    pid_t pid = (pid_t)strtol(name, NULL, 10);
    cw_autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0 && read_stat(name, &s) && s.session == session && s.state != 'Z')
        syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

void cw_leftover_kill_session(pid_t leader)
{
    DIR *d = leader > 1 ? opendir("/proc") : NULL;
    if (d == NULL)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            kill_if_of(e->d_name, leader);
    closedir(d);
}
