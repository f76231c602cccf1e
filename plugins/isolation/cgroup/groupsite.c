/* Finds the hierarchies, makes the base groups, learns which controllers a box can have. */
#include "isolation/cgroup/groupsite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "isolation/cgroup/groupbox.h"
#include "isolation/cgroup/groupfile.h"

#define MOUNTS_MAX    32
#define PROC_TEXT_MAX (256 * 1024)
#define OPEN_TRIES    5
#define BASE_LEVELS   3 /* of the default place */

static const char *const controller_names[GROUP_CONTROLLERS] = {"freezer", "cpuacct", "memory",
                                                                "pids", "cpuset"};

static int fail(struct cw_plugin_err *err, int code, const char *what, const char *path)
{
    snprintf(err->text, sizeof(err->text), "%.180s: %s%s%s", path, what,
             what[0] != '\0' ? ": " : "", strerror(-code));
    return code;
}

/* ---- the default place --------------------------------------------------------------------------
 */

static unsigned hash_text(const char *text)
{
    unsigned h = 2166136261u; /* FNV-1a */

    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

static const char *or_else(const char *text, const char *other)
{
    return text != NULL && text[0] != '\0' ? text : other;
}

static void make_base(const struct groupsite_options *o, const struct cw_host *host, char *buf,
                      size_t cap)
{
    const char *node_dir = host->instance(host, "node_dir");

    if (o->base[0] != '\0')
        snprintf(buf, cap, "%s", o->base);
    else
        snprintf(buf, cap, "crun-wlm/%.100s/%.100s.%08x",
                 or_else(host->instance(host, "cluster"), "crun"),
                 or_else(host->instance(host, "node"), "node"), hash_text(or_else(node_dir, "")));
}

/* ---- making one base group ----------------------------------------------------------------------
 */

/* A v1 cpuset takes no process before it has CPUs and memory nodes: hand the parent's down. */
static void inherit_cpuset(int parent, int dir, bool plain)
{
    static const char *const files[] = {"cpuset.cpus", "cpuset.mems"};
    char text[512];

    for (size_t i = 0; i < 2; i++)
        if (groupfile_read(dir, files[i], text, sizeof(text)) <= 1 &&
            groupfile_read(parent, files[i], text, sizeof(text)) > 1)
            groupfile_write(dir, files[i], text, plain);
}

/* v2: a controller reaches a box when every level above hands it down. Returns those that do. */
static unsigned hand_down(int dir, unsigned wanted, bool plain)
{
    char list[512];
    unsigned here = 0;

    if (groupfile_read(dir, "cgroup.controllers", list, sizeof(list)) > 0)
        here = group_controllers_parse(list, " \n");
    else if (plain)
        here = wanted;
    wanted &= here;
    for (size_t i = 0; i < GROUP_CONTROLLERS; i++) {
        char text[32];
        unsigned bit = group_controller_parse(controller_names[i], strlen(controller_names[i]));
        snprintf(text, sizeof(text), "+%s", controller_names[i]);
        if ((wanted & bit) != 0 && groupfile_write(dir, "cgroup.subtree_control", text, plain) < 0)
            wanted &= ~bit;
    }
    return wanted;
}

struct walk {
    int version;
    bool plain;
    unsigned controllers; /* v1: of the mount. v2: what came down so far */
};

static bool is_plain(int dir)
{
    struct statfs fs;

    return fstatfs(dir, &fs) < 0 ||
           (fs.f_type != CGROUP_SUPER_MAGIC && fs.f_type != CGROUP2_SUPER_MAGIC);
}

/* Steps from parent into name, making it. The new descriptor, or a negative errno. */
static int descend(int parent, const char *name, struct walk *w)
{
    int dir;

    if (w->version == 2)
        w->controllers = hand_down(parent, w->controllers, w->plain);
    if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return -errno;
    if (w->version == 1 && (w->controllers & GROUP_CPUSET) != 0)
        inherit_cpuset(parent, dir, w->plain);
    return dir;
}

/* Opens top/below/base, making base. below must exist. */
static int open_base(const char *top, const char *below, const char *base, struct walk *w)
{
    char path[1024], *save = NULL;
    int dir;

    snprintf(path, sizeof(path), "%s/%s", top, below);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    w->plain = is_plain(dir);
    snprintf(path, sizeof(path), "%s", base);
    for (char *name = strtok_r(path, "/", &save); name != NULL; name = strtok_r(NULL, "/", &save)) {
        int next = strcmp(name, "..") == 0 ? -EINVAL : descend(dir, name, w);
        close(dir);
        if (next < 0)
            return next;
        dir = next;
    }
    if (w->version == 2)
        w->controllers = hand_down(dir, w->controllers, w->plain);
    return dir;
}

/* As open_base; another instance may sweep an empty group away between our making and opening it.
 */
static int open_base_again(const char *top, const char *below, const char *base, unsigned wanted,
                           struct walk *w)
{
    int dir = -ENOENT;

    for (int i = 0; i < OPEN_TRIES && dir == -ENOENT; i++) {
        w->controllers = wanted;
        dir = open_base(top, below, base, w);
    }
    return dir;
}

/* Removes the empty groups of instances that ended without doing so. One that is still alive makes
 * its own again when it needs it; one with boxes cannot be removed. */
static void sweep_siblings(const char *path)
{
    char parent[sizeof(((struct group_hier *)0)->path)];
    char *slash;
    struct dirent *d;
    DIR *list;

    snprintf(parent, sizeof(parent), "%s", path);
    slash = strrchr(parent, '/');
    *slash = '\0';
    list = opendir(parent);
    while (list != NULL && (d = readdir(list)) != NULL)
        if (d->d_type == DT_DIR && d->d_name[0] != '.' && strcmp(d->d_name, slash + 1) != 0)
            unlinkat(dirfd(list), d->d_name, AT_REMOVEDIR);
    if (list != NULL)
        closedir(list);
}

/* Adds one hierarchy to the site: at the top, else below our own group. */
static int add_hier(struct groupsite *s, const struct group_mount *m, const char *self_cgroup,
                    const char *base, struct cw_plugin_err *err)
{
    struct walk w = {.version = m->version};
    struct group_hier *h = &s->hier[s->n];
    char own[512];
    int dir;

    group_self_path(self_cgroup, m, own, sizeof(own));
    snprintf(h->path, sizeof(h->path), "%s/%s", m->point, base);
    dir = open_base_again(m->point, "", base, m->controllers, &w);
    if (dir < 0 && own[0] != '\0') {
        snprintf(h->path, sizeof(h->path), "%s/%s/%s", m->point, own, base);
        dir = open_base_again(m->point, own, base, m->controllers, &w);
    }
    if (dir < 0)
        return fail(err, dir, "", h->path);
    h->dir = dir;
    h->controllers = w.controllers | (m->version == 2 ? GROUP_FREEZER | GROUP_CPUACCT : 0u);
    s->plain = w.plain;
    s->have |= h->controllers;
    s->n++;
    if (s->default_base)
        sweep_siblings(h->path);
    return 0;
}

/* ---- choosing the hierarchies -------------------------------------------------------------------
 */

static int read_proc_text(const char *path, char **ret)
{
    char *text = malloc(PROC_TEXT_MAX);
    ssize_t n = 0, got;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || text == NULL) {
        free(text);
        if (fd >= 0)
            close(fd);
        return fd < 0 ? -errno : -ENOMEM;
    }
    while ((got = read(fd, text + n, (size_t)(PROC_TEXT_MAX - 1 - n))) > 0)
        n += got;
    text[n] = '\0';
    close(fd);
    *ret = text;
    return 0;
}

/* A directory that stands for the mount points: root itself for v2, root/CONTROLLER for v1. */
static size_t mounts_of_root(const char *root, int version, struct group_mount *ret)
{
    size_t n = 0;

    if (version == 2) {
        ret[0] = (struct group_mount){.version = 2, .root = "/"};
        snprintf(ret[0].point, sizeof(ret[0].point), "%s", root);
        return 1;
    }
    for (size_t i = 0; i < GROUP_CONTROLLERS; i++) {
        ret[n] = (struct group_mount){.version = 1, .root = "/"};
        ret[n].controllers = group_controllers_parse(controller_names[i], ",");
        snprintf(ret[n].point, sizeof(ret[n].point), "%s/%s", root, controller_names[i]);
        n += access(ret[n].point, F_OK) == 0;
    }
    return n;
}

/* v2 where it has the memory controller or where there is nothing else; in a hybrid machine v1. */
static int choose_version(const struct group_mount *m, size_t n, const char *option)
{
    const struct group_mount *v2 = NULL;
    unsigned v1 = 0;
    char path[300], list[512];

    if (strcmp(option, "auto") != 0)
        return option[0] == '1' ? 1 : 2;
    for (size_t i = 0; i < n; i++) {
        v2 = m[i].version == 2 ? &m[i] : v2;
        v1 |= m[i].controllers;
    }
    if (v2 == NULL || (v1 & GROUP_FREEZER) == 0)
        return v2 == NULL ? 1 : 2;
    snprintf(path, sizeof(path), "%s/cgroup.controllers", v2->point);
    if (groupfile_read(AT_FDCWD, path, list, sizeof(list)) > 0 &&
        (group_controllers_parse(list, " \n") & GROUP_MEMORY) != 0)
        return 2;
    return 1;
}

static int by_kill_first(const void *a, const void *b)
{
    const struct group_hier *x = a, *y = b;

    return ((y->controllers & GROUP_FREEZER) != 0) - ((x->controllers & GROUP_FREEZER) != 0);
}

static int add_all(struct groupsite *s, struct group_mount *m, size_t n, int version,
                   const char *self_cgroup, const char *base, struct cw_plugin_err *err)
{
    int first_failure = 0;

    for (size_t i = 0; i < n && s->n < GROUP_CONTROLLERS; i++) {
        struct cw_plugin_err local = {{0}};
        int r;
        if (m[i].version != version || (m[i].controllers & s->have) != 0)
            continue; /* another version, or mounted twice */
        if (version == 2)
            m[i].controllers = GROUP_MEMORY | GROUP_PIDS | GROUP_CPUSET;
        r = add_hier(s, &m[i], self_cgroup, base, &local);
        if (r < 0 && first_failure == 0) {
            first_failure = r;
            *err = local;
        }
        if (version == 2)
            break;
    }
    qsort(s->hier, s->n, sizeof(s->hier[0]), by_kill_first);
    return first_failure;
}

static int check_required(const struct groupsite *s, unsigned require, int failure,
                          struct cw_plugin_err *err)
{
    unsigned missing = (require | GROUP_FREEZER) & ~s->have;

    if (missing == 0)
        return 0;
    for (size_t i = 0; failure == 0 && i < GROUP_CONTROLLERS; i++)
        if ((missing & group_controllers_parse(controller_names[i], ",")) != 0) {
            snprintf(err->text, sizeof(err->text), "%.150s has no controller %s for us",
                     s->n > 0 ? s->hier[0].path : "this machine", controller_names[i]);
            break;
        }
    return -ENOTSUP;
}

static void read_machine(struct groupsite *s)
{
    groupfile_read(AT_FDCWD, "/sys/devices/system/cpu/online", s->cpus_online,
                   sizeof(s->cpus_online));
    if (groupfile_read(AT_FDCWD, "/sys/devices/system/node/online", s->mems_online,
                       sizeof(s->mems_online)) < 0)
        snprintf(s->mems_online, sizeof(s->mems_online), "0");
    for (size_t i = 0; i < s->n; i++)
        if ((s->hier[i].controllers & GROUP_CPUSET) != 0 &&
            groupfile_read(s->hier[i].dir, "cpuset.mems", s->mems_base, sizeof(s->mems_base)) < 0)
            s->mems_base[0] = '\0';
}

int groupsite_open(struct groupsite *s, const struct cw_host *host,
                   const struct groupsite_options *opts, struct cw_plugin_err *err)
{
    struct group_mount mounts[MOUNTS_MAX];
    char *mountinfo = NULL, *self_cgroup = NULL, base[512];
    size_t n = 0;
    int version, r;

    *s = (struct groupsite){.default_base = opts->base[0] == '\0'};
    r = read_proc_text("/proc/self/mountinfo", &mountinfo);
    if (r == 0)
        r = read_proc_text("/proc/self/cgroup", &self_cgroup);
    if (r < 0) {
        free(mountinfo);
        return fail(err, r, "", "/proc/self");
    }
    if (opts->root[0] == '\0')
        n = group_mounts_parse(mountinfo, mounts, MOUNTS_MAX);
    version = opts->root[0] != '\0' && strcmp(opts->version, "1") != 0
                  ? 2
                  : choose_version(mounts, n, opts->version);
    if (opts->root[0] != '\0')
        n = mounts_of_root(opts->root, version, mounts);
    make_base(opts, host, base, sizeof(base));
    s->backend = version == 2 ? &group_backend_v2 : &group_backend_v1;
    r = add_all(s, mounts, n, version, self_cgroup, base, err);
    r = check_required(s, opts->require, r, err);
    free(mountinfo);
    free(self_cgroup);
    s->is_open = true;
    if (r < 0) {
        groupsite_close(s, true);
        return r;
    }
    read_machine(s);
    return 0;
}

static void remove_base(const struct group_hier *h)
{
    char path[sizeof(h->path)];

    memcpy(path, h->path, sizeof(path));
    for (int i = 0; i < BASE_LEVELS; i++) {
        char *slash = strrchr(path, '/');
        if (rmdir(path) < 0 || slash == NULL)
            return;
        *slash = '\0';
    }
}

void groupsite_close(struct groupsite *s, bool remove)
{
    if (!s->is_open)
        return;
    for (size_t i = 0; i < s->n; i++) {
        close(s->hier[i].dir);
        if (remove && s->default_base)
            remove_base(&s->hier[i]);
    }
    *s = (struct groupsite){0};
}
