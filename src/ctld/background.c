/* background.c: the little ceremony around a daemon's start. Tested by the component test. */
#include "ctld/background.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

static int ready_fd = -1; /* the pipe to our waiting parent */

static void wait_for_child(int fd, pid_t child) __attribute__((noreturn));
static void wait_for_child(int fd, pid_t child)
{
    char c;
    ssize_t n;
    do
        n = read(fd, &c, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1)
        _exit(0);
    waitpid(child, NULL, 0); /* it printed why */
    _exit(1);
}

int cw_background_enter(struct cw_error *err)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) != 0)
        return cw_fail_errno(err, -errno, "pipe");
    pid_t child = fork();
    if (child < 0)
        return cw_fail_errno(err, -errno, "fork");
    if (child > 0) {
        close(p[1]);
        wait_for_child(p[0], child);
    }
    close(p[0]);
    ready_fd = p[1];
    setsid();
    cw_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0)
        return cw_fail_errno(err, -errno, "/dev/null");
    return 0;
}

int cw_background_log_to(const char *path, struct cw_error *err)
{
    cw_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        return cw_fail_errno(err, -errno, "log %s", path);
    return 0;
}

void cw_background_ready(void)
{
    static const char line[] = "ready\n";
    const char *named = getenv("CRUN_READY_FD");
    if (named != NULL) {
        char *end;
        long fd = strtol(named, &end, 10);
        if (*end == '\0' && fd > 2 && fd < 1024) {
            (void)cw_file_write_all((int)fd, line, strlen(line));
            close((int)fd);
        }
        unsetenv("CRUN_READY_FD");
    }
    if (ready_fd >= 0) {
        (void)cw_file_write_all(ready_fd, line, 1);
        close(ready_fd);
        ready_fd = -1;
    }
}

int cw_background_write_pid(const char *path, struct cw_error *err)
{
    cw_autofree char *text = cw_xasprintf("%d\n", (int)getpid());
    return cw_file_write_atomic(path, text, strlen(text), 0644, err);
}
