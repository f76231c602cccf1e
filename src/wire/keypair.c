/* Key files. A secret that others could read is refused, not repaired: it must be taken as known to
 * them. Test: channel_test.c. */
#include "config.h"

#include "wire/keypair.h"

#include "base/file.h"
#include "base/mem.h"
#include "wire/channel.h"

#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cw_keypair_make(struct cw_keypair *ret)
{
    if (sodium_init() < 0)
        abort();
    randombytes_buf(ret->sec, sizeof(ret->sec));
    (void)crypto_scalarmult_base(ret->pub, ret->sec);
}

void cw_keypair_clear(struct cw_keypair *k)
{
    sodium_memzero(k, sizeof(*k));
}

static int check_secret_file(int fd, const char *path, struct cw_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return cw_fail_errno(err, -errno, "key %s: stat", path);
    if (!S_ISREG(st.st_mode))
        return cw_fail(err, -EINVAL, "key %s: not a regular file", path);
    if ((st.st_mode & 077) != 0)
        return cw_fail(err, -EPERM,
                       "key %s: mode %03o lets others read it; make a new key with mode 600", path,
                       (unsigned)(st.st_mode & 0777));
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return cw_fail(err, -EPERM, "key %s: belongs to user %u", path, (unsigned)st.st_uid);
    if (st.st_size != 32)
        return cw_fail(err, -EINVAL, "key %s: %lld bytes instead of 32", path,
                       (long long)st.st_size);
    return 0;
}

static int load_secret(const char *path, struct cw_keypair *ret, struct cw_error *err)
{
    cw_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int r;

    if (fd < 0)
        return cw_fail_errno(err, -errno, "key %s: open", path);
    r = check_secret_file(fd, path, err);
    if (r < 0)
        return r;
    if (read(fd, ret->sec, sizeof(ret->sec)) != (ssize_t)sizeof(ret->sec))
        return cw_fail(err, -EIO, "key %s: cannot be read in full", path);
    (void)crypto_scalarmult_base(ret->pub, ret->sec);
    return 0;
}

static int save_public(const char *path, const uint8_t pub[32], struct cw_error *err)
{
    char hex[66];
    uint8_t old[32];

    if (cw_public_key_load(path, old, NULL) == 0 && memcmp(old, pub, 32) == 0)
        return 0;
    (void)sodium_bin2hex(hex, sizeof(hex), pub, 32);
    hex[64] = '\n';
    return cw_file_write_atomic(path, hex, 65, 0644, err);
}

int cw_keypair_load(const char *sec_path, const char *pub_path, bool create, struct cw_keypair *ret,
                    struct cw_error *err)
{
    struct cw_keypair k;
    int r;

    if (sodium_init() < 0)
        return cw_fail(err, -EIO, "key %s: libsodium does not start", sec_path);
    r = load_secret(sec_path, &k, err);
    if (r == -ENOENT && create) {
        cw_keypair_make(&k);
        r = cw_file_write_atomic(sec_path, k.sec, sizeof(k.sec), 0600, err);
    }
    if (r == 0 && pub_path != NULL)
        r = save_public(pub_path, k.pub, err);
    if (r == 0)
        *ret = k;
    cw_keypair_clear(&k);
    return r;
}
