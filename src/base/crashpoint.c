/* Named points at which a process can be told to die.
 *
 * The table is read once from CRUN_FAULT and never changes; only the counters do. A malformed
 * CRUN_FAULT ends the process, so that no test passes because its fault was misspelt. Test:
 * crashpoint_test.c. */
#include "config.h"

#include "base/crashpoint.h"

#ifdef CW_FAULTINJECT

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define FAULTS_MAX 16
#define NAME_LEN 64

struct fault {
    char name[NAME_LEN];
    int fail;         /* 0: kill, else the positive errno */
    unsigned long at; /* 0: every time */
    atomic_ulong seen;
};

static struct fault faults[FAULTS_MAX];
static size_t n_faults;

static const struct {
    const char *name;
    int code;
} errnos[] = {
    { "EACCES", EACCES },
    { "EAGAIN", EAGAIN },
    { "EBADF", EBADF },
    { "EBUSY", EBUSY },
    { "ECONNREFUSED", ECONNREFUSED },
    { "ECONNRESET", ECONNRESET },
    { "EDQUOT", EDQUOT },
    { "EEXIST", EEXIST },
    { "EFBIG", EFBIG },
    { "EINTR", EINTR },
    { "EINVAL", EINVAL },
    { "EIO", EIO },
    { "EMFILE", EMFILE },
    { "ENFILE", ENFILE },
    { "ENODEV", ENODEV },
    { "ENOENT", ENOENT },
    { "ENOMEM", ENOMEM },
    { "ENOSPC", ENOSPC },
    { "ENOSYS", ENOSYS },
    { "ENOTSUP", ENOTSUP },
    { "EPERM", EPERM },
    { "EPIPE", EPIPE },
    { "EROFS", EROFS },
    { "ESTALE", ESTALE },
    { "ETIMEDOUT", ETIMEDOUT },
};

static bool parse_count(const char *s, unsigned long *ret)
{
    char *end;

    if (*s < '0' || *s > '9')
        return false;
    *ret = strtoul(s, &end, 10);
    return *end == '\0' && *ret > 0;
}

static bool parse_errno(const char *s, int *ret)
{
    unsigned long n;

    for (size_t i = 0; i < CW_ARRAY_LEN(errnos); i++) {
        if (strcmp(errnos[i].name, s) == 0) {
            *ret = errnos[i].code;
            return true;
        }
    }
    if (!parse_count(s, &n) || n > 4095)
        return false;
    *ret = (int)n;
    return true;
}

/* NAME:kill | NAME:kill=N | NAME:fail=E | NAME:fail=E,N */
static bool parse_fault(char *text, struct fault *f)
{
    char *what = strrchr(text, ':');

    if (what == NULL || what == text || (size_t)(what - text) >= NAME_LEN)
        return false;
    *what++ = '\0';
    memcpy(f->name, text, strlen(text) + 1);
    f->at = 1;
    if (strcmp(what, "kill") == 0)
        return true;
    if (strncmp(what, "kill=", 5) == 0)
        return parse_count(what + 5, &f->at);
    if (strncmp(what, "fail=", 5) != 0)
        return false;
    what += 5;
    char *comma = strchr(what, ',');
    f->at = 0;
    if (comma != NULL)
        *comma = '\0';
    return parse_errno(what, &f->fail) && (comma == NULL || parse_count(comma + 1, &f->at));
}

void cw_crashpoint_init(void)
{
    const char *env = secure_getenv("CRUN_FAULT");
    cw_autofree char *copy = cw_xstrdup(env);
    char *save = NULL;

    n_faults = 0;
    if (copy == NULL)
        return;
    for (char *s = strtok_r(copy, ";", &save); s != NULL; s = strtok_r(NULL, ";", &save)) {
        struct fault *f = &faults[n_faults];
        if (n_faults < FAULTS_MAX) {
            f->fail = 0;
            atomic_store(&f->seen, 0);
        }
        if (n_faults == FAULTS_MAX || !parse_fault(s, f)) {
            dprintf(STDERR_FILENO, "CRUN_FAULT: '%s' is not NAME:kill[=N] or NAME:fail=ERRNO[,N]\n",
                    env);
            _exit(2);
        }
        n_faults++;
    }
}

static bool due(struct fault *f)
{
    unsigned long seen = atomic_fetch_add(&f->seen, 1) + 1;

    return f->at == 0 || f->at == seen;
}

void cw_crashpoint(const char *name)
{
    for (size_t i = 0; i < n_faults; i++) {
        struct fault *f = &faults[i];
        if (f->fail == 0 && strcmp(f->name, name) == 0 && due(f))
            kill(getpid(), SIGKILL);
    }
}

int cw_crashpoint_fail(const char *name)
{
    for (size_t i = 0; i < n_faults; i++) {
        struct fault *f = &faults[i];
        if (f->fail != 0 && strcmp(f->name, name) == 0 && due(f))
            return -f->fail;
    }
    return 0;
}

#else

void cw_crashpoint_init(void)
{
}

void cw_crashpoint(const char *name)
{
    (void)name;
}

int cw_crashpoint_fail(const char *name)
{
    (void)name;
    return 0;
}

#endif
