/* Allocatable memory from /proc/meminfo and the cgroup limits above us.
 *
 * hwloc's figure is that of the NUMA nodes and may be far smaller while the kernel still brings
 * memory up, so it is never used here. A limit that cannot be read is no limit: the root of v2 has
 * no memory.max, and in a cgroup namespace our own path may lie outside of the mount. Test:
 * topomem_test.c. */
#include "config.h"

#include "topo/topomem.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROC_MAX (1024 * 1024) /* bytes of one file under /proc */

struct cgroup_mount {
    bool v2;
    char *root;  /* the part of the hierarchy that is mounted */
    char *point; /* where */
};

static int read_mem_total(const char *root, uint64_t *ret, struct cw_error *err)
{
    cw_autofree char *path = cw_xasprintf("%s/proc/meminfo", root);
    cw_autobuf struct cw_buf text = { 0 };
    int rc = cw_file_read(path, PROC_MAX, &text, err);
    if (rc < 0)
        return rc;
    uint64_t kib;
    const char *line = strstr(cw_buf_str(&text), "MemTotal:");
    if (line == NULL || sscanf(line, "MemTotal: %" SCNu64 " kB", &kib) != 1)
        return cw_fail_node(err, -EINVAL, "%s: no MemTotal line", path);
    *ret = kib * 1024;
    return 0;
}

/* Is word one of the comma-separated words of list? */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p != '\0'; p += strcspn(p, ",\n"), p += *p == ',') {
        if (*p == '\n')
            return false;
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == '\0' || p[n] == '\n'))
            return true;
    }
    return false;
}

/* One line of mountinfo (proc(5)): id parent major:minor ROOT POINT options [tags] - TYPE source
 * SUPER. */
static bool parse_mount(char *line, struct cgroup_mount *ret)
{
    char *tail = strstr(line, " - ");
    if (tail == NULL)
        return false;
    *tail = '\0';
    char type[32], super[512];
    if (sscanf(tail + 3, "%31s %*s %511s", type, super) != 2)
        return false;
    bool v2 = strcmp(type, "cgroup2") == 0;
    if (!v2 && (strcmp(type, "cgroup") != 0 || !has_word(super, "memory")))
        return false;
    char *root = NULL, *point = NULL;
    if (sscanf(line, "%*s %*s %*s %ms %ms", &root, &point) != 2) {
        free(root);
        return false;
    }
    *ret = (struct cgroup_mount){ v2, root, point };
    return true;
}

/* Our path in the hierarchy (cgroups(7): "ID:CONTROLLERS:PATH", v2 has ID 0); heap or NULL. */
static char *find_own_path(const char *proc_cgroup, bool v2)
{
    const char *line = proc_cgroup;
    while (line != NULL && *line != '\0') {
        const char *end = strchr(line, '\n');
        size_t len = end != NULL ? (size_t)(end - line) : strlen(line);
        cw_autofree char *copy = cw_xstrndup(line, len);
        line = end != NULL ? end + 1 : NULL;
        char *controllers = strchr(copy, ':');
        char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *controllers++ = *path++ = '\0';
        bool match =
            v2 ? strcmp(copy, "0") == 0 && *controllers == '\0' : has_word(controllers, "memory");
        if (match)
            return cw_xstrdup(path);
    }
    return NULL;
}

/* Our path below the mount, "" when it is the mount itself or lies outside of it. */
static const char *below_mount(const char *path, const char *mount_root)
{
    size_t n = strlen(mount_root);
    if (strcmp(path, "/") == 0 || strncmp(path, "/..", 3) == 0)
        return "";
    if (strcmp(mount_root, "/") == 0)
        return path;
    bool inside = strncmp(path, mount_root, n) == 0 && (path[n] == '/' || path[n] == '\0');
    return inside ? path + n : "";
}

static void lower_to_limit(const char *dir, const char *name, uint64_t *bytes)
{
    cw_autofree char *path = cw_xasprintf("%s/%s", dir, name);
    cw_autobuf struct cw_buf text = { 0 };
    uint64_t limit;
    if (cw_file_read(path, 4096, &text, NULL) == 0 &&
        sscanf(cw_buf_str(&text), "%" SCNu64, &limit) == 1 &&
        limit < *bytes) /* "max" does not scan */
        *bytes = limit;
}

/* The limit of each directory from our own up to the mount. */
static void lower_to_limits(const char *root, const struct cgroup_mount *m, const char *path,
                            uint64_t *bytes)
{
    const char *name = m->v2 ? "memory.max" : "memory.limit_in_bytes";
    cw_autofree char *top = cw_xasprintf("%s%s", root, m->point);
    cw_autofree char *dir = cw_xasprintf("%s%s", top, below_mount(path, m->root));
    while (strlen(dir) >= strlen(top)) {
        lower_to_limit(dir, name, bytes);
        char *slash = strrchr(dir, '/');
        if (slash == NULL)
            break;
        *slash = '\0';
    }
}

int cw_topomem_read(const char *root, uint64_t *ret_bytes, struct cw_error *err)
{
    uint64_t bytes = 0;
    int rc = read_mem_total(root, &bytes, err);
    if (rc < 0)
        return rc;
    cw_autofree char *mounts_path = cw_xasprintf("%s/proc/self/mountinfo", root);
    cw_autofree char *own_path = cw_xasprintf("%s/proc/self/cgroup", root);
    cw_autobuf struct cw_buf mounts = { 0 }, own = { 0 };
    if (cw_file_read(mounts_path, PROC_MAX, &mounts, NULL) < 0 ||
        cw_file_read(own_path, PROC_MAX, &own, NULL) < 0)
        mounts.len = 0; /* a kernel without cgroups */
    char *save = NULL;
    for (char *line = mounts.len > 0 ? strtok_r(mounts.data, "\n", &save) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        struct cgroup_mount m;
        if (!parse_mount(line, &m))
            continue;
        cw_autofree char *path = find_own_path(cw_buf_str(&own), m.v2);
        if (path != NULL)
            lower_to_limits(root, &m, path, &bytes);
        free(m.root);
        free(m.point);
    }
    *ret_bytes = bytes;
    return 0;
}
