/* volume/local: a directory of the node below one of the roots that the site allows.
 *
 * check() looks at the text only (it runs in the controller, which may not see the node's disk): an
 * absolute source without "." or ".." below an allowed root. plan() runs on the node and walks from
 * the root with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, so no link inside leads out. It adds one
 * mount line; whether a mount is possible is the isolation plugin's answer. Test: local_test.c. */
#include <crunwlm/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct local_ctx {
    const char *allow;
};

static const struct cw_option options[] = {
    {"allow", CW_OPT_STRING, "", "directories below which volumes may lie, separated by colons"},
    {NULL, CW_OPT_STRING, NULL, NULL},
};

static int refuse(struct cw_plugin_err *err, int code, const char *path, const char *why)
{
    snprintf(err->text, sizeof(err->text), "volume %.120s: %.110s", path, why);
    return code;
}

static int local_open(const struct cw_host *host, void **ret_ctx, struct cw_plugin_err *err)
{
    struct local_ctx *c;
    const char *allow = host->option(host, "allow");

    for (const char *at = allow; *at != '\0';) {
        size_t len = strcspn(at, ":");
        if (len > 0 && at[0] != '/') {
            snprintf(err->text, sizeof(err->text), "option 'allow': %.*s is not an absolute path",
                     (int)(len > 100 ? 100 : len), at);
            return -EINVAL;
        }
        at += len + (at[len] == ':');
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return -ENOMEM;
    c->allow = allow;
    *ret_ctx = c;
    return 0;
}

static void local_close(void *ctx)
{
    free(ctx);
}

/* "." and ".." as a component. */
static bool has_dots(const char *path)
{
    for (const char *at = path; *at != '\0';) {
        size_t len = strcspn(at, "/");
        if ((len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
            return true;
        at += len + (at[len] == '/');
    }
    return false;
}

/* The allowed root that holds source, with *ret_len; NULL: none. A root holds itself. */
static const char *root_of(const struct local_ctx *c, const char *source, size_t *ret_len)
{
    for (const char *at = c->allow; *at != '\0';) {
        size_t len = strcspn(at, ":"), root = len;
        while (root > 1 && at[root - 1] == '/')
            root--;
        if (root > 0 && strncmp(source, at, root) == 0 &&
            (root == 1 || source[root] == '/' || source[root] == '\0')) {
            *ret_len = root;
            return at;
        }
        at += len + (at[len] == ':');
    }
    return NULL;
}

static int local_check(void *ctx, const char *source, const char *target, int read_only,
                       struct cw_plugin_err *err)
{
    size_t len;

    (void)read_only;
    if (source[0] != '/')
        return refuse(err, -ENOTSUP, source, "not an absolute path");
    if (has_dots(source))
        return refuse(err, -EINVAL, source, "'.' and '..' are not allowed in it");
    if (target[0] != '/' || has_dots(target))
        return refuse(err, -EINVAL, target, "the target must be an absolute path without '..'");
    if (root_of(ctx, source, &len) == NULL)
        return refuse(err, -ENOTSUP, source, "not below a directory that this site allows");
    return 0;
}

/* For kernels before 5.6: the same walk, component by component. */
static int walk_no_links(int root, const char *below)
{
    int dir = fcntl(root, F_DUPFD_CLOEXEC, 0);

    for (const char *at = below; dir >= 0 && *at != '\0';) {
        size_t len = strcspn(at, "/");
        char name[256];
        int next = -ENAMETOOLONG;
        if (len < sizeof(name)) {
            memcpy(name, at, len);
            name[len] = '\0';
            next = len == 0 ? fcntl(dir, F_DUPFD_CLOEXEC, 0)
                            : openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            next = next < 0 ? -errno : next;
        }
        close(dir);
        dir = next;
        at += len + (at[len] == '/');
    }
    return dir;
}

static int open_beneath(int root, const char *below)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, root, below[0] == '\0' ? "." : below, &how, sizeof(how));

    if (fd < 0 && errno == ENOSYS)
        return walk_no_links(root, below);
    return fd < 0 ? -errno : (int)fd;
}

/* 0 when source is a directory that is reached from its root without a link. */
static int resolve(const struct local_ctx *c, const char *source, struct cw_plugin_err *err)
{
    size_t len = 0;
    const char *at = root_of(c, source, &len), *below = source + len;
    char *root = strndup(at, len);
    int dir, fd;

    if (root == NULL)
        return -ENOMEM;
    dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(root);
    if (dir < 0)
        return refuse(err, -errno, source, strerror(errno));
    fd = open_beneath(dir, below + strspn(below, "/"));
    close(dir);
    if (fd == -ELOOP)
        return refuse(err, -EINVAL, source, "a symbolic link is in the path");
    if (fd < 0)
        return refuse(err, fd == -ENOENT || fd == -ENOTDIR ? -EINVAL : fd, source, strerror(-fd));
    close(fd);
    return 0;
}

static int local_plan(void *ctx, const struct cw_host *host, const struct cw_task_view *task,
                      const char *source, const char *target, int read_only, struct cw_plan *plan,
                      struct cw_plugin_err *err)
{
    struct cw_plan_line line = {
        .size = sizeof(line),
        .kind = CW_PLAN_MOUNT,
        .a = source,
        .b = target,
        .c = read_only ? "ro,nosuid,nodev" : "nosuid,nodev",
    };
    int r = local_check(ctx, source, target, read_only, err);

    (void)task;
    if (r == 0)
        r = resolve(ctx, source, err);
    return r < 0 ? r : host->plan_add(host, plan, &line);
}

static const struct cw_volume_ops ops = {.check = local_check, .plan = local_plan};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = sizeof(struct cw_plugin),
    .abi_major = CW_PLUGIN_ABI_MAJOR,
    .abi_minor = CW_PLUGIN_ABI_MINOR,
    .family = "volume",
    .name = "local",
    .version = "1.0",
    .options = options,
    .open = local_open,
    .close = local_close,
    .ops = &ops,
    .ops_size = sizeof(ops),
};
