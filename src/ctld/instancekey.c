/* instancekey.c: makes or reads the keys. A key that others can read is refused, never repaired:
 * whoever had it may still have it. Tested by the component test. */
#include "ctld/instancekey.h"

#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

static int cluster_key_make(const char *path, struct cw_error *err)
{
    uint8_t key[32];
    randombytes_buf(key, sizeof key);
    int rc = cw_file_write_atomic(path, key, sizeof key, 0600, err);
    sodium_memzero(key, sizeof key);
    return rc;
}

static int cluster_key_load(const char *path, uint8_t ret[32], struct cw_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0 && errno == ENOENT) {
        int rc = cluster_key_make(path, err);
        if (rc < 0)
            return cw_wrap(err, rc, "cluster key");
        if (lstat(path, &st) != 0)
            return cw_fail_errno(err, -errno, "cluster key %s", path);
    }
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0 ||
        (st.st_uid != geteuid() && st.st_uid != 0))
        return cw_fail(err, -EACCES,
                       "cluster key %s: it has to be a plain file of mode 0600 that we own", path);
    cw_autobuf struct cw_buf b = {0};
    int rc = cw_file_read(path, 33, &b, err);
    if (rc < 0)
        return cw_wrap(err, rc, "cluster key");
    if (b.len != 32)
        return cw_fail(err, -EINVAL, "cluster key %s: it has %zu bytes, 32 are wanted", path,
                       b.len);
    memcpy(ret, b.data, 32);
    sodium_memzero(b.data, b.len);
    return 0;
}

int cw_instancekey_load(struct cw_ctld *c, struct cw_error *err)
{
    cw_autofree char *sec = cw_file_join(c->conf->state_dir, "controller.key");
    int rc = cluster_key_load(c->conf->key_file, c->cluster_key, err);
    if (rc < 0)
        return rc;
    rc = cw_keypair_load(sec, c->conf->public_key_file, true, &c->key, err);
    return rc < 0 ? cw_wrap(err, rc, "controller's key") : 0;
}
