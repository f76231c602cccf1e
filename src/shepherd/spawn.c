/* Makes the process of a task; see spawn.h. */
#include "shepherd/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

#define STACK_BYTES    (256u * 1024u)
#define DEFAULT_SEARCH "/usr/local/bin:/usr/bin:/bin"
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif

/* What child and parent share while the parent sleeps. */
struct birth {
    struct cw_spawn *s;
    char *candidate; /* room for one path of the search and the file */
    volatile enum cw_spawn_stage stage;
    volatile int error;
};

/* Below here until child: in the new process, in the parent's memory. No heap, no stdio, no locks;
 * raw system calls where libc would signal "all threads". */

static int set_identity(const struct cw_runas *as)
{
    if (syscall(SYS_setgroups, (long)as->n_groups, as->groups) < 0 ||
        syscall(SYS_setresgid, as->gid, as->gid, as->gid) < 0 ||
        syscall(SYS_setresuid, as->uid, as->uid, as->uid) < 0)
        return -errno;
    return 0;
}

/* After enter: until then files may be opened above the task's own ceiling. */
static int set_limits(const struct cw_spawn *s)
{
    if (s->nofile != NULL && setrlimit(RLIMIT_NOFILE, s->nofile) < 0)
        return -errno;
    for (size_t i = 0; i < s->n_limits; i++) {
        struct rlimit r = { s->limits[i].value, s->limits[i].value };
        struct rlimit old;
        if (getrlimit((__rlimit_resource_t)s->limits[i].resource, &old) == 0 &&
            r.rlim_max > old.rlim_max)
            r.rlim_cur = r.rlim_max = old.rlim_max; /* only root raises the ceiling */
        if (setrlimit((__rlimit_resource_t)s->limits[i].resource, &r) < 0)
            return -errno;
    }
    return 0;
}

static int set_stdio(const struct cw_spawn *s)
{
    if (dup2(s->fd_in, 0) < 0 || dup2(s->fd_out, 1) < 0 || dup2(s->fd_err, 2) < 0)
        return -errno;
    /* Ours are CLOEXEC anyway; this is for what a plugin forgot. Old kernels have no such call. */
    syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
    if (s->tty && ioctl(0, TIOCSCTTY, 0) < 0)
        return -errno;
    if (s->fd_file >= 0 && fcntl(s->fd_file, F_SETFD, 0) < 0)
        return -errno;
    return 0;
}

/* As execvp: every directory of the search; a file that may not be run is remembered. */
static int exec_search(struct birth *b)
{
    const struct cw_spawn *s = b->s;
    const char *dir = s->search != NULL ? s->search : DEFAULT_SEARCH;
    size_t len = strlen(s->file);
    int seen = ENOENT;
    for (;;) {
        const char *end = strchrnul(dir, ':');
        size_t n = (size_t)(end - dir);
        memcpy(b->candidate, dir, n);
        if (n > 0)
            b->candidate[n++] = '/';
        memcpy(b->candidate + n, s->file, len + 1);
        execve(b->candidate, s->argv, s->env);
        if (errno == EACCES)
            seen = EACCES;
        else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != ENAMETOOLONG)
            return -errno;
        if (*end == '\0')
            return -seen;
        dir = end + 1;
    }
}

static int exec_file(struct birth *b)
{
    if (b->candidate != NULL)
        return exec_search(b);
    execve(b->s->file, b->s->argv, b->s->env);
    return -errno;
}

static int reset_signals(void)
{
    struct sigaction dfl = { .sa_handler = SIG_DFL };
    sigset_t none;
    sigemptyset(&none);
    /* The shepherd ignores SIGPIPE alone and handles nothing. */
    return sigaction(SIGPIPE, &dfl, NULL) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno
                                                                                           : 0;
}

#define STAGE(name, call)                                                                          \
    do {                                                                                           \
        b->stage = CW_SPAWN_##name;                                                                \
        int rc_ = (call);                                                                          \
        if (rc_ < 0) {                                                                             \
            b->error = rc_;                                                                        \
            _exit(127);                                                                            \
        }                                                                                          \
    } while (0)

static int child(void *arg)
{
    struct birth *b = arg;
    struct cw_spawn *s = b->s;
    STAGE(SESSION, setsid() < 0 ? -errno : 0);
    if (s->enter != NULL)
        STAGE(BOX, s->enter(s->ctx, s->box));
    if (s->cpus != NULL)
        s->ret_bound = sched_setaffinity(0, sizeof *s->cpus, s->cpus) == 0;
    STAGE(LIMITS, set_limits(s));
    if (s->as != NULL)
        STAGE(IDENTITY, set_identity(s->as));
    STAGE(CHDIR, chdir(s->workdir != NULL ? s->workdir : "/") < 0 ? -errno : 0);
    STAGE(STDIO, set_stdio(s));
    STAGE(SESSION, reset_signals());
    STAGE(EXEC, exec_file(b));
    _exit(127);
}

static void *stack(void)
{
    static void *base; /* one stack is enough: the parent sleeps while it is used */
    if (base == NULL) {
        base = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (base == MAP_FAILED)
            abort();
        mprotect(base, 4096, PROT_NONE); /* an overrun faults */
    }
    return (char *)base + STACK_BYTES;
}

/* The interpreter that a script's first line names, when that is what is missing. */
static void missing_interpreter(const char *file, char *buf, size_t cap)
{
    buf[0] = '\0';
    cw_autoclose int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char line[256];
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (n < 3 || line[0] != '#' || line[1] != '!')
        return;
    line[n] = '\0';
    char *name = line + 2 + strspn(line + 2, " \t");
    name[strcspn(name, " \t\r\n")] = '\0';
    if (access(name, F_OK) < 0)
        snprintf(buf, cap, "%s", name);
}

static int fail_exec(const struct cw_spawn *s, int rc, int *ret_exit, struct cw_error *err)
{
    char interpreter[256] = "";
    if (rc == -ENOENT && s->fd_file < 0 && strchr(s->file, '/') != NULL)
        missing_interpreter(s->file, interpreter, sizeof interpreter);
    if (rc == -ENOMEM || rc == -EIO || rc == -EAGAIN || rc == -ENFILE || rc == -EMFILE)
        return cw_fail_node(err, rc, "exec %s: %s", s->file, strerror(-rc));
    *ret_exit = rc == -ENOENT || rc == -ENOTDIR ? 127 : 126;
    if (interpreter[0] != '\0')
        return cw_fail(err, rc, "exec %s: its interpreter %s: %s", s->file, interpreter,
                       strerror(-rc));
    return cw_fail(err, rc, "exec %s: %s", s->file, strerror(-rc));
}

static int fail_birth(const struct birth *b, int *ret_exit, struct cw_error *err)
{
    int rc = b->error;
    /* In the box already, where the job's own limit rules: what it asked for is too little. */
    if (rc == -ENOMEM && b->stage > CW_SPAWN_BOX)
        return cw_fail(err, rc, "start %s: no memory within the limit that the job asked for",
                       b->s->file != NULL ? b->s->file : "the script");
    switch (b->stage) {
    case CW_SPAWN_EXEC:
        return fail_exec(b->s, rc, ret_exit, err);
    case CW_SPAWN_CHDIR:
        return cw_fail(err, rc, "working directory %s: %s", b->s->workdir, strerror(-rc));
    case CW_SPAWN_BOX:
        return cw_fail_node(err, rc, "enter the box: %s", strerror(-rc));
    case CW_SPAWN_IDENTITY:
        return cw_fail_node(err, rc, "take the identity of %s: %s", b->s->as->name, strerror(-rc));
    case CW_SPAWN_SESSION:
    case CW_SPAWN_LIMITS:
    case CW_SPAWN_STDIO:
        break;
    }
    return cw_fail_node(err, rc, "set up the process: %s", strerror(-rc));
}

pid_t cw_spawn(struct cw_spawn *s, int *ret_exit, struct cw_error *err)
{
    struct birth b = { .s = s };
    cw_autofree char *candidate = NULL;
    *ret_exit = 0;
    s->ret_bound = false;
    if (s->fd_file < 0 && strchr(s->file, '/') == NULL) {
        const char *search = s->search != NULL ? s->search : DEFAULT_SEARCH;
        candidate = cw_xmalloc(strlen(search) + strlen(s->file) + 2);
        b.candidate = candidate;
        if (*s->file == '\0') {
            b.stage = CW_SPAWN_EXEC;
            b.error = -ENOENT;
            return fail_birth(&b, ret_exit, err);
        }
    }
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t pid = clone(child, stack(), CLONE_VM | CLONE_VFORK | SIGCHLD, &b);
    int rc = pid < 0 ? -errno : 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (rc < 0)
        return cw_fail_node(err, rc, "make a process: %s", strerror(-rc));
    if (b.error == 0)
        return pid;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return fail_birth(&b, ret_exit, err);
}
