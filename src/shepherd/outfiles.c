/* Files of a task, opened as its user; see outfiles.h. */
#include "shepherd/outfiles.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "spec/outpath.h"

/* O_NONBLOCK: a FIFO without a reader must not stop the shepherd; cleared again after the open. */
#define OPEN_FLAGS (O_NOCTTY | O_CLOEXEC | O_NONBLOCK)

static int fail(struct cw_error *err, int rc, const struct cw_herd *h, const struct cw_task *t,
                const char *what, const char *path)
{
    return cw_fail(err, rc, "%s %s: %s (as user %s on node %s)", what, path, strerror(-rc),
                   t->as->name, h->node);
}

static int check_workdir(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    const char *dir = t->start->spec->workdir;
    if (dir == NULL || *dir == '\0')
        return 0;
    cw_autofree char *inside = cw_xasprintf("%s/.", dir); /* opening "." needs the right to enter */
    cw_autoclose int fd = open(inside, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? fail(err, -errno, h, t, "working directory", dir) : 0;
}

static int blocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

/* Opened inside the shepherd, /proc/self and the like would be the shepherd's own. */
static int refuse_own_proc(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return -errno;
    return fs.f_type == PROC_SUPER_MAGIC ? -EACCES : 0;
}

/* As open(2), without links of the magic kind: /dev/stdout would be the shepherd's. */
static int open_as_user(const char *path, int flags, mode_t mode)
{
    struct open_how how = { .flags = (uint64_t)(unsigned)flags,
                            .mode = (flags & O_CREAT) != 0 ? mode : 0,
                            .resolve = RESOLVE_NO_MAGICLINKS };
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (fd < 0 && errno == ENOSYS) /* before Linux 5.6 */
        fd = open(path, flags, mode);
    if (fd < 0)
        return -1;
    int rc = refuse_own_proc(fd);
    if (rc == 0)
        return fd;
    close(fd);
    errno = -rc;
    return -1;
}

static int make_parents(const char *path)
{
    cw_autofree char *dir = cw_xstrdup(path);
    char *slash = strrchr(dir, '/');
    if (slash == NULL || slash == dir)
        return 0;
    *slash = '\0';
    return cw_file_mkdirs(dir, 0777, NULL);
}

int cw_outfiles_open_output(const char *path, bool append)
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | OPEN_FLAGS | (append ? 0 : O_TRUNC);
    cw_autoclose int fd = open_as_user(path, flags, 0666);
    if (fd < 0 && errno == ENOENT) {
        int rc = make_parents(path);
        if (rc < 0)
            return rc;
        fd = open_as_user(path, flags, 0666);
    }
    if (fd < 0)
        return -errno;
    int rc = blocking(fd);
    return rc < 0 ? rc : cw_steal_fd(fd);
}

int cw_outfiles_open_input(const char *path)
{
    cw_autoclose int fd = open_as_user(path, O_RDONLY | OPEN_FLAGS, 0);
    if (fd < 0)
        return -errno;
    int rc = blocking(fd);
    return rc < 0 ? rc : cw_steal_fd(fd);
}

/* C9: a later attempt's output starts with a line that says so. */
static void mark_attempt(const struct cw_herd *h, const struct cw_task *t, int fd)
{
    struct stat st;
    if (t->attempt <= 1 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    char line[128];
    int n = snprintf(line, sizeof line, "=== attempt %u on %.64s ===\n", t->attempt, h->node);
    cw_file_write_all(fd, line, (size_t)n);
}

static int expand(struct cw_herd *h, struct cw_task *t, const char *pattern, char **ret,
                  struct cw_error *err)
{
    const Cw__TaskStart *s = t->start;
    struct cw_outpath_vars v = {
        .id = t->id,
        .array_id = s->has_index ? s->job_id : 0,
        .index = s->index,
        .attempt = t->attempt,
        .user = t->as->name,
        .name = s->spec->name != NULL ? s->spec->name : "",
        .host = h->node,
    };
    cw_autobuf struct cw_buf path = { 0 };
    const char *dir = s->spec->workdir != NULL ? s->spec->workdir : "/";
    int rc = cw_outpath_expand(pattern, dir, &v, &path, err);
    if (rc < 0)
        return cw_wrap(err, rc, "output file");
    *ret = cw_buf_steal(&path);
    return 0;
}

static int open_stdout(struct cw_herd *h, struct cw_task *t, bool append, struct cw_error *err)
{
    const Cw__TaskStart *s = t->start;
    bool slurm = s->spec->has_slurm_env && s->spec->slurm_env;
    const char *pattern = s->spec->stdout_path != NULL ? s->spec->stdout_path
                                                       : cw_outpath_default(s->has_index, slurm);
    int rc = expand(h, t, pattern, &t->stdout_path, err);
    if (rc < 0)
        return rc;
    t->fd_out = cw_outfiles_open_output(t->stdout_path, append);
    if (t->fd_out < 0)
        return fail(err, t->fd_out, h, t, "output file", t->stdout_path);
    if (append)
        mark_attempt(h, t, t->fd_out);
    return 0;
}

static int open_stderr(struct cw_herd *h, struct cw_task *t, bool append, struct cw_error *err)
{
    if (t->start->spec->stderr_path == NULL)
        return 0;
    int rc = expand(h, t, t->start->spec->stderr_path, &t->stderr_path, err);
    if (rc < 0)
        return rc;
    if (strcmp(t->stderr_path, t->stdout_path) == 0)
        return 0; /* two descriptors of one file would truncate or overwrite each other */
    t->fd_err = cw_outfiles_open_output(t->stderr_path, append);
    if (t->fd_err < 0)
        return fail(err, t->fd_err, h, t, "error file", t->stderr_path);
    if (append)
        mark_attempt(h, t, t->fd_err);
    return 0;
}

static int open_stdin(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    if (t->start->spec->stdin_path == NULL)
        return 0;
    cw_autofree char *path = NULL;
    int rc = expand(h, t, t->start->spec->stdin_path, &path, err);
    if (rc < 0)
        return rc;
    t->fd_in = cw_outfiles_open_input(path);
    return t->fd_in < 0 ? fail(err, t->fd_in, h, t, "input file", path) : 0;
}

int cw_outfiles_open(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    bool append = !t->start->spec->has_open_append || t->start->spec->open_append;
    if (t->start->has_node && t->start->node > 0)
        return 0; /* the job's files are its leader's, on another node */
    int rc = check_workdir(h, t, err);
    if (t->headless)
        return rc;
    if (rc == 0)
        rc = open_stdin(h, t, err);
    if (rc == 0)
        rc = open_stdout(h, t, append, err);
    if (rc == 0)
        rc = open_stderr(h, t, append, err);
    return rc;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void cw_outfiles_close(struct cw_task *t)
{
    close_one(&t->fd_in);
    close_one(&t->fd_out);
    close_one(&t->fd_err);
    close_one(&t->fd_script);
}

static int open_regular(const char *path, int flags)
{
    cw_autoclose int fd = open(path, flags | OPEN_FLAGS);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? cw_steal_fd(fd) : -EINVAL;
}

void cw_outfiles_say(struct cw_herd *h, const struct cw_task *t, const char *line)
{
    const char *path = t->stderr_path != NULL ? t->stderr_path : t->stdout_path;
    if (path == NULL)
        return;
    const struct cw_runas *as = cw_runas_find(h->identities, t->uid, t->gid, cw_herd_now_ms());
    if (cw_runas_enter(h->identities, as, NULL) < 0)
        return;
    cw_autoclose int fd = open_regular(path, O_WRONLY | O_APPEND);
    cw_runas_leave(h->identities);
    if (fd >= 0)
        cw_file_write_all(fd, line, strlen(line));
}

int cw_outfiles_open_log(struct cw_herd *h, uid_t uid, gid_t gid, const char *path,
                         struct cw_error *err)
{
    const struct cw_runas *as = cw_runas_find(h->identities, uid, gid, cw_herd_now_ms());
    int rc = cw_runas_enter(h->identities, as, err);
    if (rc < 0)
        return rc;
    rc = open_regular(path, O_RDONLY);
    cw_runas_leave(h->identities);
    if (rc == -EINVAL)
        return cw_fail(err, rc, "%s: not a regular file, its output cannot be read back", path);
    if (rc < 0)
        return cw_fail(err, rc, "%s: %s (as user %s on node %s)", path, strerror(-rc), as->name,
                       h->node);
    return rc;
}
