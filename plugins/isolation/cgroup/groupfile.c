/* Reading and writing control group files: one open, one call, one close. */
#include "isolation/cgroup/groupfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int groupfile_write(int dir, const char *path, const char *text, bool create)
{
    int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_TRUNC : 0);
    int fd = openat(dir, path, flags, 0644), r = 0;

    if (fd < 0)
        return -errno;
    if (write(fd, text, strlen(text)) < 0)
        r = -errno;
    close(fd);
    return r;
}

ssize_t groupfile_read(int dir, const char *path, char *buf, size_t cap)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = read(fd, buf, cap - 1);
    if (n < 0)
        n = -errno;
    else
        buf[n] = '\0';
    close(fd);
    return n;
}

int groupfile_read_u64(int dir, const char *path, uint64_t *ret)
{
    char text[64], *end;
    unsigned long long v;
    ssize_t n = groupfile_read(dir, path, text, sizeof(text));

    if (n < 0)
        return (int)n;
    v = strtoull(text, &end, 10);
    if (end == text)
        return -EINVAL;
    *ret = v;
    return 0;
}

int groupfile_read_field(int dir, const char *path, const char *name, uint64_t *ret)
{
    char text[4096];
    size_t len = strlen(name);
    ssize_t n = groupfile_read(dir, path, text, sizeof(text));

    if (n < 0)
        return (int)n;
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, name, len) == 0 && line[len] == ' ') {
            *ret = strtoull(line + len + 1, NULL, 10);
            return 0;
        }
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return -ENOENT;
}

/* "first[-last]" at *at; moves *at behind it and a comma. */
static bool next_range(const char **at, unsigned long *first, unsigned long *last)
{
    char *end;

    if (**at < '0' || **at > '9')
        return false;
    *first = *last = strtoul(*at, &end, 10);
    if (*end == '-')
        *last = strtoul(end + 1, &end, 10);
    *at = end + (*end == ',');
    return true;
}

bool groupfile_list_within(const char *inner, const char *outer)
{
    unsigned long first, last, from, to;

    while (next_range(&inner, &first, &last)) {
        const char *rest = outer;
        bool covered = false;
        while (!covered && next_range(&rest, &from, &to))
            covered = from <= first && last <= to;
        if (!covered)
            return false;
    }
    return *inner == '\0' || *inner == '\n';
}
