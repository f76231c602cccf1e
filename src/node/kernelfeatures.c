/* Probes of kernel features; see kernelfeatures.h. */
#include "node/kernelfeatures.h"

#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define LANDLOCK_VERSION 1u /* LANDLOCK_CREATE_RULESET_VERSION */

static const char *cgroup_feature(void)
{
    struct statfs root, unified;
    if (statfs("/sys/fs/cgroup", &root) < 0)
        return NULL;
    if (root.f_type == CGROUP2_SUPER_MAGIC)
        return "cgroup:v2";
    if (statfs("/sys/fs/cgroup/unified", &unified) == 0 && unified.f_type == CGROUP2_SUPER_MAGIC)
        return "cgroup:hybrid";
    return access("/sys/fs/cgroup/memory", F_OK) == 0 ? "cgroup:v1" : NULL;
}

static bool has_line(const char *path, const char *word)
{
    cw_autobuf struct cw_buf b = { 0 };
    if (cw_file_read(path, 65536, &b, NULL) < 0)
        return false;
    size_t n = strlen(word);
    for (const char *p = cw_buf_str(&b); (p = strstr(p, word)) != NULL; p += n)
        if (p > b.data && (p[-1] == '\t' || p[-1] == '\n') && (p[n] == '\n' || p[n] == '\0'))
            return true;
    return false;
}

static bool has_userns(void)
{
    cw_autobuf struct cw_buf b = { 0 };
    return access("/proc/self/ns/user", F_OK) == 0 &&
           cw_file_read("/proc/sys/user/max_user_namespaces", 64, &b, NULL) == 0 &&
           strtol(cw_buf_str(&b), NULL, 10) > 0;
}

void cw_kernelfeatures(struct cw_strv *ret)
{
    const char *cgroup = cgroup_feature();
    if (cgroup != NULL)
        cw_strv_add(ret, cgroup);
    if (has_userns())
        cw_strv_add(ret, "userns");
    if (access("/proc/self/ns/net", F_OK) == 0)
        cw_strv_add(ret, "netns");
    if (has_line("/proc/filesystems", "overlay"))
        cw_strv_add(ret, "overlay");
    if (has_line("/proc/filesystems", "erofs"))
        cw_strv_add(ret, "erofs");
    /* A kernel that knows the call refuses these arguments, others do not know it. */
    if (syscall(SYS_mount_setattr, -1, NULL, 0, NULL, 0) < 0 && errno != ENOSYS)
        cw_strv_add(ret, "idmap");
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);
    if (abi > 0)
        cw_strv_add_take(ret, cw_xasprintf("landlock:%ld", abi));
}
