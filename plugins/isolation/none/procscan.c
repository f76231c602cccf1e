/* Reading /proc: the directory by getdents, one stat file for every process that is not known to be
 * older than ourselves. */
#include "isolation/none/procscan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DIRENTS_BYTES (32 * 1024)
#define ENVIRON_MAX   (4u << 20)

struct linux_dirent64 {
    uint64_t d_ino;
    int64_t d_off;
    unsigned short d_reclen;
    unsigned char d_type;
    char d_name[];
};

static ssize_t read_file(const struct procscan *s, pid_t pid, const char *name, char *buf,
                         size_t cap)
{
    char path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
    fd = openat(s->proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = read(fd, buf, cap);
    close(fd);
    return n < 0 ? -errno : n;
}

/* pid (comm) state ppid pgrp session ... num_threads(20) itrealvalue starttime(22). comm may hold
 * anything, also ')': the last one ends it. A dead leader of living threads has state Z and several
 * threads. Returns false for the dead. */
static bool parse_stat(char *text, struct procscan_proc *ret)
{
    char *open_paren = strchr(text, '('), *close_paren = strrchr(text, ')');
    unsigned long long start = 0;
    long threads = 0;
    char state;
    int ppid, pgrp, session;

    if (open_paren == NULL || close_paren == NULL || close_paren < open_paren)
        return false;
    if (sscanf(close_paren + 1,
               " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &state, &ppid, &pgrp, &session, &threads, &start) != 6)
        return false;
    if ((state == 'Z' || state == 'X') && threads <= 1)
        return false;
    *close_paren = '\0';
    *ret = (struct procscan_proc){.pid = (pid_t)strtol(text, NULL, 10),
                                  .ppid = ppid,
                                  .pgrp = pgrp,
                                  .session = session,
                                  .start_ticks = start};
    snprintf(ret->comm, sizeof(ret->comm), "%s", open_paren + 1);
    return true;
}

static bool read_proc(const struct procscan *s, pid_t pid, struct procscan_proc *ret)
{
    char text[1024];
    ssize_t n = read_file(s, pid, "stat", text, sizeof(text) - 1);

    if (n <= 0)
        return false;
    text[n] = '\0';
    return parse_stat(text, ret);
}

int procscan_open(struct procscan *s)
{
    struct procscan_proc self;

    *s = (struct procscan){.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (s->proc_fd < 0)
        return -errno;
    if (!read_proc(s, getpid(), &self)) {
        procscan_close(s);
        return -ENOTSUP;
    }
    s->self_start_ticks = self.start_ticks;
    s->dirents = malloc(DIRENTS_BYTES);
    if (s->dirents == NULL) {
        procscan_close(s);
        return -ENOMEM;
    }
    return 0;
}

void procscan_close(struct procscan *s)
{
    if (s->proc_fd > 0)
        close(s->proc_fd);
    free(s->old);
    free(s->procs);
    free(s->dirents);
    *s = (struct procscan){0};
}

/* Where pid is, or would be, in the sorted list of the old. */
static size_t old_position(const struct procscan *s, pid_t pid)
{
    size_t lo = 0, hi = s->n_old;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->old[mid].pid < pid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool is_old(const struct procscan *s, pid_t pid, uint64_t inode)
{
    size_t i = old_position(s, pid);

    return i < s->n_old && s->old[i].pid == pid && s->old[i].inode == inode;
}

static int grow(void *array, size_t *cap, size_t n, size_t size)
{
    void *bigger;
    size_t wanted = *cap == 0 ? 64 : *cap * 2;

    if (n < *cap)
        return 0;
    bigger = realloc(*(void **)array, wanted * size);
    if (bigger == NULL)
        return -ENOMEM;
    *(void **)array = bigger;
    *cap = wanted;
    return 0;
}

static int remember_old(struct procscan *s, pid_t pid, uint64_t inode)
{
    size_t i = old_position(s, pid);
    int r;

    if (i < s->n_old && s->old[i].pid == pid) {
        s->old[i].inode = inode;
        return 0;
    }
    r = grow(&s->old, &s->cap_old, s->n_old, sizeof(*s->old));
    if (r < 0)
        return r;
    memmove(&s->old[i + 1], &s->old[i], (s->n_old - i) * sizeof(*s->old));
    s->old[i].pid = pid;
    s->old[i].inode = inode;
    s->n_old++;
    return 0;
}

static int take_entry(struct procscan *s, const struct linux_dirent64 *d, bool with_old)
{
    struct procscan_proc p;
    pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
    int r;

    if (pid <= 0 || (!with_old && is_old(s, pid, d->d_ino)) || !read_proc(s, pid, &p))
        return 0;
    if (!with_old && p.start_ticks < s->self_start_ticks)
        return remember_old(s, pid, d->d_ino);
    r = grow(&s->procs, &s->cap, s->n, sizeof(*s->procs));
    if (r == 0)
        s->procs[s->n++] = p;
    return r;
}

int procscan_run(struct procscan *s, bool with_old)
{
    s->n = 0;
    if (lseek(s->proc_fd, 0, SEEK_SET) < 0)
        return -errno;
    for (;;) {
        long bytes = syscall(SYS_getdents64, s->proc_fd, s->dirents, DIRENTS_BYTES);
        if (bytes <= 0)
            return bytes < 0 ? -errno : 0;
        for (long at = 0; at < bytes;) {
            const struct linux_dirent64 *d = (const void *)(s->dirents + at);
            int r = take_entry(s, d, with_old);
            if (r < 0)
                return r;
            at += d->d_reclen;
        }
    }
}

struct procscan_proc *procscan_find(struct procscan *s, pid_t pid)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->procs[i].pid == pid)
            return &s->procs[i];
    return NULL;
}

uint64_t procscan_start_ticks(struct procscan *s, pid_t pid)
{
    struct procscan_proc p;

    return read_proc(s, pid, &p) ? p.start_ticks : 0;
}

/* The whole file, NUL-terminated; NULL when unreadable or larger than anything sensible. */
static char *read_environ(const struct procscan *s, pid_t pid, size_t *ret_len)
{
    char path[32], *text = NULL;
    size_t len = 0, cap = 0;
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof(path), "%d/environ", (int)pid);
    fd = openat(s->proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    do {
        char *bigger = len + 1 < cap ? text : realloc(text, cap = cap == 0 ? 8192 : cap * 2);
        if (bigger == NULL)
            break;
        text = bigger;
        n = read(fd, text + len, cap - len - 1);
        len += n > 0 ? (size_t)n : 0;
    } while (n > 0 && len < ENVIRON_MAX);
    close(fd);
    if (n != 0) {
        free(text);
        return NULL;
    }
    text[len] = '\0';
    *ret_len = len;
    return text;
}

bool procscan_has_env(struct procscan *s, pid_t pid, const char *const *pairs, size_t n)
{
    size_t len, found = 0;
    char *text = read_environ(s, pid, &len);

    for (size_t at = 0; text != NULL && at < len; at += strlen(text + at) + 1)
        for (size_t i = 0; i < n; i++)
            found += strcmp(text + at, pairs[i]) == 0;
    free(text);
    return found >= n;
}
