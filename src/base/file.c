/* Whole files, directories, locks.
 *
 * Every descriptor is O_CLOEXEC; every sentence names the path. What is written atomically is
 * either there whole or not at all, also after a power cut. Test: file_test.c. */
#include "config.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define READ_STEP 65536U

int cw_file_read_fd(int fd, const char *name, size_t max, struct cw_buf *ret, struct cw_error *err)
{
    cw_autobuf struct cw_buf b = { 0 };

    for (;;) {
        size_t room = max - b.len < READ_STEP ? max - b.len + 1 : READ_STEP;
        ssize_t n = read(fd, cw_buf_reserve(&b, room), room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cw_fail_errno(err, -errno, "read %s", name);
        if (n == 0)
            break;
        b.len += (size_t)n;
        b.data[b.len] = '\0';
        if (b.len > max)
            return cw_fail(err, -EFBIG, "read %s: larger than %zu bytes", name, max);
    }
    cw_buf_fini(ret);
    *ret = b;
    b = (struct cw_buf){ 0 };
    return 0;
}

int cw_file_read(const char *path, size_t max, struct cw_buf *ret, struct cw_error *err)
{
    cw_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return cw_fail_errno(err, -errno, "open %s", path);
    return cw_file_read_fd(fd, path, max, ret, err);
}

int cw_file_write_all(int fd, const void *p, size_t n)
{
    const char *s = p;

    while (n > 0) {
        ssize_t done = write(fd, s, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        s += done;
        n -= (size_t)done;
    }
    return 0;
}

static int sync_parent(const char *path, struct cw_error *err)
{
    const char *slash = strrchr(path, '/');
    cw_autofree char *dir = slash == NULL   ? cw_xstrdup(".")
                            : slash == path ? cw_xstrdup("/")
                                            : cw_xstrndup(path, (size_t)(slash - path));
    cw_autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return cw_fail_errno(err, -errno, "sync directory %s", dir);
    return 0;
}

static int fill_and_rename(int fd, const char *tmp, const char *path, const void *p, size_t n,
                           mode_t mode, struct cw_error *err)
{
    int rc = cw_file_write_all(fd, p, n);

    if (rc < 0)
        return cw_fail_errno(err, rc, "write %s", path);
    if (fchmod(fd, mode) < 0 || fsync(fd) < 0)
        return cw_fail_errno(err, -errno, "write %s", path);
    if (rename(tmp, path) < 0)
        return cw_fail_errno(err, -errno, "rename %s to %s", tmp, path);
    return 0;
}

int cw_file_write_atomic(const char *path, const void *p, size_t n, mode_t mode,
                         struct cw_error *err)
{
    cw_autofree char *tmp = cw_xasprintf("%s.XXXXXX", path);
    cw_autoclose int fd = mkostemp(tmp, O_CLOEXEC);

    if (fd < 0)
        return cw_fail_errno(err, -errno, "create %s", tmp);
    int rc = fill_and_rename(fd, tmp, path, p, n, mode, err);
    if (rc < 0) {
        unlink(tmp);
        return rc;
    }
    return sync_parent(path, err);
}

static int make_dir(const char *path, mode_t mode, struct cw_error *err)
{
    struct stat st;

    if (mkdir(path, mode) == 0)
        return 0;
    int code = -errno;
    /* Some file systems say EROFS or EACCES before they say EEXIST. */
    if (stat(path, &st) < 0)
        return cw_fail_errno(err, code, "make directory %s", path);
    if (!S_ISDIR(st.st_mode))
        return cw_fail_errno(err, -ENOTDIR, "make directory %s", path);
    return 0;
}

int cw_file_mkdirs(const char *path, mode_t mode, struct cw_error *err)
{
    cw_autofree char *part = cw_xstrdup(path);

    if (path[0] == '\0')
        return cw_fail(err, -EINVAL, "make directory: empty path");
    for (char *p = part + 1; *p != '\0'; p++) {
        if (*p != '/' || p[-1] == '/')
            continue;
        *p = '\0';
        int rc = make_dir(part, mode, err);
        if (rc < 0)
            return rc;
        *p = '/';
    }
    return make_dir(part, mode, err);
}

static int say_holder(int fd, const char *path, struct cw_error *err)
{
    char text[24] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    long pid = n > 0 ? strtol(text, NULL, 10) : 0;

    if (pid > 0)
        return cw_fail(err, -EBUSY, "lock %s: in use by pid %ld", path, pid);
    return cw_fail(err, -EBUSY, "lock %s: in use by another process", path);
}

int cw_file_lock(const char *path, int *ret_fd, struct cw_error *err)
{
    cw_autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    /* Open-file-description locks: not lost when some other part of the process closes the file. */
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    char text[24];

    if (fd < 0)
        return cw_fail_errno(err, -errno, "open %s", path);
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
        if (errno == EAGAIN || errno == EACCES)
            return say_holder(fd, path, err);
        return cw_fail_errno(err, -errno, "lock %s", path);
    }
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) < 0)
        return cw_fail_errno(err, -errno, "write %s", path);
    *ret_fd = cw_steal_fd(fd);
    return 0;
}

char *cw_file_join(const char *dir, const char *name)
{
    size_t n = strlen(dir);

    if (name[0] == '/' || n == 0)
        return cw_xstrdup(name);
    return cw_xasprintf("%s%s%s", dir, dir[n - 1] == '/' ? "" : "/", name);
}
