/* Lists, signals and awaits the processes of a group tree. */
#include "isolation/cgroup/groupprocs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEPTH 8 /* of groups that a task made below its own */

struct visit {
    int sig;
    int n;
    pid_t first;
};

static void visit_pid(pid_t pid, struct visit *v)
{
    if (pid <= 0)
        return;
    v->n++;
    if (v->first == 0)
        v->first = pid;
    if (v->sig != 0)
        kill(pid, v->sig);
}

/* Numbers one a line; one may be cut at the end of a block. */
static int visit_procs(int fd, struct visit *v)
{
    char block[4096];
    off_t at = 0;
    long pid = 0;
    ssize_t n;

    while ((n = pread(fd, block, sizeof(block), at)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (block[i] >= '0' && block[i] <= '9') {
                pid = pid * 10 + (block[i] - '0');
                continue;
            }
            visit_pid((pid_t)pid, v);
            pid = 0;
        }
        at += n;
    }
    visit_pid((pid_t)pid, v);
    return n < 0 ? (errno == ENODEV ? 0 : -errno) : 0;
}

static int visit_tree(int parent, const char *name, struct visit *v, int depth)
{
    int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), procs, r = 0;
    struct dirent *d;
    DIR *list;

    if (dir < 0)
        return errno == ENOENT ? 0 : -errno;
    procs = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    if (procs >= 0) {
        r = visit_procs(procs, v);
        close(procs);
    }
    list = fdopendir(dir);
    if (list == NULL) {
        close(dir);
        return -ENOMEM;
    }
    while (r == 0 && depth < MAX_DEPTH && (d = readdir(list)) != NULL)
        if (d->d_type == DT_DIR && d->d_name[0] != '.')
            r = visit_tree(dirfd(list), d->d_name, v, depth + 1);
    closedir(list);
    return r;
}

/* Most boxes have no groups below them: then one file is all. It is opened anew every time, because
 * version 1 shows a descriptor that has read before the same list again for a second. */
static int visit_box(int base, const char *key, struct visit *v)
{
    char path[PATH_MAX];
    struct stat st;
    int fd, r;

    if (fstatat(base, key, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink > 2)
        return visit_tree(base, key, v, 0);
    snprintf(path, sizeof(path), "%s/cgroup.procs", key);
    fd = openat(base, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENODEV ? 0 : -errno;
    r = visit_procs(fd, v);
    close(fd);
    return r;
}

int groupprocs_signal(int base, const char *key, int sig)
{
    struct visit v = {.sig = sig};
    int r = visit_box(base, key, &v);

    return r < 0 ? r : v.n;
}

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A millisecond at most where the kernel has no pidfd or the process is not a leader any more. */
static void await_end(pid_t pid, long timeout_ms)
{
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

    if (p.fd < 0) {
        poll(NULL, 0, errno == ESRCH ? 0 : 1);
        return;
    }
    poll(&p, 1, (int)timeout_ms);
    close(p.fd);
}

int groupprocs_await_empty(int base, const char *key, int timeout_ms)
{
    long deadline = now_ms() + timeout_ms, left = timeout_ms;

    for (;;) {
        struct visit v = {0};
        int r = visit_box(base, key, &v);
        if (r < 0 || v.n == 0)
            return r;
        if (left <= 0)
            return -EBUSY;
        await_end(v.first, left);
        left = deadline - now_ms();
    }
}
