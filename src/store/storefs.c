/* Refusing file systems on which LMDB is not safe. Test: storefs_test.c. */
#include "config.h"

#include "store/storefs.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

/* f_type values: statfs(2), linux/magic.h, and the file systems' own headers. */
static const struct {
    uint32_t type;
    const char *name;
} remote[] = {
    { 0x00006969, "nfs" },      { 0x0000517b, "smb" },    { 0xff534d42, "cifs" },
    { 0xfe534d42, "smb2" },     { 0x01021997, "9p" },     { 0x65735546, "fuse" },
    { 0x0bd00bd0, "lustre" },   { 0x00c36400, "ceph" },   { 0x5346414f, "afs" },
    { 0x6b414653, "afs" },      { 0x73757245, "coda" },   { 0x01161970, "gfs2" },
    { 0x7461636f, "ocfs2" },    { 0x47504653, "gpfs" },   { 0x19830326, "beegfs" },
    { 0xaad7aaea, "panfs" },    { 0x786f4256, "vboxsf" }, { 0x0000564c, "ncp" },
    { 0x20030528, "orangefs" },
};

const char *cw_storefs_remote(unsigned long type)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(remote); i++)
        if (remote[i].type == (uint32_t)type)
            return remote[i].name;
    return NULL;
}

int cw_storefs_check(const char *dir, struct cw_error *err)
{
    const char *any = getenv("CRUN_STORE_ANY_FS");
    struct statfs st;
    if (any != NULL && strcmp(any, "1") == 0)
        return 0;
    if (statfs(dir, &st) < 0)
        return cw_fail_errno(err, -errno, "store %s: file system", dir);
    const char *name = cw_storefs_remote((unsigned long)st.f_type);
    if (name == NULL)
        return 0;
    return cw_fail_node(
        err, -ENOTSUP,
        "store %s: lies on %s, where locks and shared maps are not safe: use a local disk "
        "(CRUN_STORE_ANY_FS=1 overrules)",
        dir, name);
}
