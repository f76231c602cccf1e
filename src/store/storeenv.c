/* The environment: map size, limits, errors.
 *
 * The map is fixed at open because mdb_env_set_mapsize moves it under open readers. 1 TiB costs
 * only address space; where `ulimit -v` refuses it a smaller one must do. Test: store_test.c. */
#include "config.h"

#include "store/storeenv.h"

#include "base/mem.h"

#include <errno.h>
#include <stdint.h>

static int open_with_map(const char *dir, unsigned flags, size_t map_bytes, MDB_env **ret)
{
    MDB_env *env;
    int rc = mdb_env_create(&env);
    if (rc != 0)
        return rc;
    rc = mdb_env_set_maxdbs(env, 32);
    if (rc == 0)
        rc = mdb_env_set_maxreaders(env, 126);
    if (rc == 0)
        rc = mdb_env_set_mapsize(env, map_bytes);
    if (rc == 0)
        rc = mdb_env_open(env, dir, flags, 0600);
    if (rc != 0)
        mdb_env_close(env);
    else
        *ret = env;
    return rc;
}

int cw_storeenv_open(const char *dir, unsigned flags, MDB_env **ret)
{
    static const uint64_t map_gib[] = { 1024, 64, 4 };
    int rc = ENOMEM;
    for (size_t i = 0; i < CW_ARRAY_LEN(map_gib) && rc == ENOMEM; i++)
        rc = open_with_map(dir, flags, (size_t)(map_gib[i] << 30), ret);
    return rc;
}

int cw_storeenv_errno(int code)
{
    if (code >= 0)
        return -code;
    switch (code) {
    case MDB_NOTFOUND:
        return -ENOENT;
    case MDB_MAP_FULL:
        return -ENOSPC;
    case MDB_READERS_FULL:
        return -EAGAIN;
    case MDB_BAD_VALSIZE:
        return -EINVAL;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
        return -EBADMSG;
    default:
        return -EIO;
    }
}
