/* Who could have written a plugin's file: the walk over its resolved path.
 *
 * The path is resolved first and the result is what gets opened: with every component in trusted
 * hands nobody can swap one between the check and the load. */
#include "plug/plug_trust.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static bool is_private_group(const struct stat *st)
{
    return geteuid() != 0 && st->st_uid == geteuid() && st->st_gid == (gid_t)geteuid();
}

static int check_component(const char *path, struct cw_error *err)
{
    struct stat st;
    bool sticky_dir;

    if (lstat(path, &st) < 0)
        return cw_fail_errno(err, -errno, "%s", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return cw_fail(err, -EPERM, "%s belongs to user %u; it must belong to root or to user %u",
                       path, (unsigned)st.st_uid, (unsigned)geteuid());
    sticky_dir = S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX) != 0;
    if ((st.st_mode & S_IWOTH) != 0 && !sticky_dir)
        return cw_fail(err, -EPERM, "%s can be written by everyone (mode %04o); chmod o-w it", path,
                       (unsigned)(st.st_mode & 07777));
    if ((st.st_mode & S_IWGRP) != 0 && !sticky_dir && !is_private_group(&st))
        return cw_fail(err, -EPERM, "%s can be written by its group (mode %04o); chmod g-w it",
                       path, (unsigned)(st.st_mode & 07777));
    return 0;
}

static int check_regular(const char *path, struct cw_error *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return cw_fail_errno(err, -errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return cw_fail(err, -EINVAL, "%s: not a regular file", path);
    return 0;
}

int cw_plug_trust_check(const char *file, char **ret_real, struct cw_error *err)
{
    cw_autofree char *real = realpath(file, NULL);
    int r;

    if (real == NULL)
        return cw_fail_errno(err, -errno, "%s", file);
    r = check_component("/", err);
    for (char *slash = strchr(real + 1, '/'); r == 0 && slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        r = check_component(real, err);
        *slash = '/';
    }
    if (r == 0)
        r = check_component(real, err);
    if (r == 0)
        r = check_regular(real, err);
    if (r == 0)
        *ret_real = cw_steal(real);
    return r;
}
