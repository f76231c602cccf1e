/* auth/key: who asks, proved by a MAC under the cluster key. Whoever can read the key file makes
 * its own credential; others ask at the door, where the kernel says who they are. A credential
 * counts for one channel (its public key is under the MAC but not in the text), so a copied one is
 * worth nothing. doc/PROTOCOL.md draws the bytes. Test: auth_key_test.c. */
#include <crunwlm/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define KEY_BYTES      32u
#define MAC_BYTES      32u
#define NODE_MAX       63u
#define LIFE_NS        (300 * 1000000000LL)
#define SKEW_NS        (60 * 1000000000LL)
#define DOOR_TIMEOUT_S 3

enum cred_type { CRED_USER = 1, CRED_NODE = 2 };
enum {
    AT_TYPE = 3,
    AT_UID = 4,
    AT_GID = 8,
    AT_ISSUED = 12,
    AT_EXPIRES = 20,
    AT_NODE_LEN = 28,
    AT_NODE = 29
};

static const char mac_context[] = "crun-wlm auth/key 1";
static const char node_context[] = "node/";

struct auth_key {
    const struct cw_host *host;
    bool have_key;
    uint8_t key[KEY_BYTES];
};

/* What a credential says. */
struct claim {
    enum cred_type type;
    uint32_t uid, gid;
    int64_t issued_ns, expires_ns;
    char node[NODE_MAX + 1];
};

static int __attribute__((format(printf, 3, 4)))
fail(struct cw_plugin_err *err, int code, const char *fmt, ...)
{
    va_list ap;

    if (err != NULL) {
        va_start(ap, fmt);
        (void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
    }
    return code;
}

static int64_t real_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void put(uint8_t *p, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t take(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

/* ---- the cluster key ---- */
static int check_key_file(int fd, const char *path, struct cw_plugin_err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return fail(err, -errno, "cluster key %s: stat: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size != (off_t)KEY_BYTES)
        return fail(err, -EINVAL, "cluster key %s: not a file of %u bytes", path, KEY_BYTES);
    if ((st.st_mode & 077) != 0)
        return fail(err, -EPERM,
                    "cluster key %s: mode %03o lets others read it: make a new key with mode 600",
                    path, (unsigned)(st.st_mode & 0777));
    if (st.st_uid != 0 && st.st_uid != geteuid() && geteuid() != 0)
        return fail(err, -EPERM, "cluster key %s: belongs to user %u", path, (unsigned)st.st_uid);
    return 0;
}

/* -ENOENT and -EACCES: not for us, the door may help. */
static int load_key(struct auth_key *a, struct cw_plugin_err *err)
{
    const char *path = a->host->instance(a->host, "key_file");
    int fd, r;

    if (a->have_key)
        return 0;
    if (path == NULL)
        return fail(err, -ENOENT, "cluster key: no key_file is configured");
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return fail(err, -errno, "cluster key %s: open: %s", path, strerror(errno));
    r = check_key_file(fd, path, err);
    if (r == 0 && read(fd, a->key, KEY_BYTES) != (ssize_t)KEY_BYTES)
        r = fail(err, -EIO, "cluster key %s: cannot be read in full", path);
    (void)close(fd);
    a->have_key = r == 0;
    return r;
}

static void node_key(const uint8_t cluster_key[KEY_BYTES], const char *node, uint8_t ret[KEY_BYTES])
{
    crypto_generichash_state h;

    (void)crypto_generichash_init(&h, cluster_key, KEY_BYTES, KEY_BYTES);
    (void)crypto_generichash_update(&h, (const uint8_t *)node_context, sizeof(node_context) - 1);
    (void)crypto_generichash_update(&h, (const uint8_t *)node, strlen(node));
    (void)crypto_generichash_final(&h, ret, KEY_BYTES);
    sodium_memzero(&h, sizeof(h));
}

/* ---- credentials ---- */
static void make_mac(const struct auth_key *a, const struct claim *c, const uint8_t *text, size_t n,
                     const uint8_t bind[32], uint8_t ret[MAC_BYTES])
{
    crypto_generichash_state h;
    uint8_t key[KEY_BYTES];

    if (c->type == CRED_NODE)
        node_key(a->key, c->node, key);
    else
        memcpy(key, a->key, KEY_BYTES);
    (void)crypto_generichash_init(&h, key, KEY_BYTES, MAC_BYTES);
    (void)crypto_generichash_update(&h, (const uint8_t *)mac_context, sizeof(mac_context) - 1);
    (void)crypto_generichash_update(&h, text, n);
    (void)crypto_generichash_update(&h, bind, 32);
    (void)crypto_generichash_final(&h, ret, MAC_BYTES);
    sodium_memzero(key, sizeof(key));
    sodium_memzero(&h, sizeof(h));
}

static bool node_name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");

    return n > 0 && n <= NODE_MAX && name[n] == '\0';
}

static int mint(const struct auth_key *a, const struct claim *c, const uint8_t bind[32],
                uint8_t *buf, size_t cap, size_t *ret_len, struct cw_plugin_err *err)
{
    size_t name_len = strlen(c->node), n = AT_NODE + name_len;

    if (cap < n + MAC_BYTES)
        return fail(err, -ENOSPC, "credential: %zu bytes are too few", cap);
    memcpy(buf, "CK\1", 3);
    buf[AT_TYPE] = (uint8_t)c->type;
    put(buf + AT_UID, c->uid, 4);
    put(buf + AT_GID, c->gid, 4);
    put(buf + AT_ISSUED, (uint64_t)c->issued_ns, 8);
    put(buf + AT_EXPIRES, (uint64_t)c->expires_ns, 8);
    buf[AT_NODE_LEN] = (uint8_t)name_len;
    memcpy(buf + AT_NODE, c->node, name_len);
    make_mac(a, c, buf, n, bind, buf + n);
    *ret_len = n + MAC_BYTES;
    return 0;
}

static int parse(const uint8_t *cred, size_t len, struct claim *ret, struct cw_plugin_err *err)
{
    struct claim c = {.type = CRED_USER};

    if (len < AT_NODE + MAC_BYTES || memcmp(cred, "CK\1", 3) != 0 ||
        len != AT_NODE + cred[AT_NODE_LEN] + MAC_BYTES)
        return fail(err, -EACCES,
                    len == 0 ? "credential: none was sent" : "credential: not one of auth/key");
    c.type = cred[AT_TYPE] == CRED_NODE ? CRED_NODE : CRED_USER;
    c.uid = (uint32_t)take(cred + AT_UID, 4);
    c.gid = (uint32_t)take(cred + AT_GID, 4);
    c.issued_ns = (int64_t)take(cred + AT_ISSUED, 8);
    c.expires_ns = (int64_t)take(cred + AT_EXPIRES, 8);
    if (cred[AT_TYPE] != c.type || cred[AT_NODE_LEN] > NODE_MAX)
        return fail(err, -EACCES, "credential: of an unknown type");
    memcpy(c.node, cred + AT_NODE, cred[AT_NODE_LEN]);
    if (c.type == CRED_NODE ? !node_name_ok(c.node) || strlen(c.node) != cred[AT_NODE_LEN]
                            : cred[AT_NODE_LEN] != 0)
        return fail(err, -EACCES, "credential: contradicts itself");
    *ret = c;
    return 0;
}

static int check_time(const struct claim *c, int64_t now_ns, struct cw_plugin_err *err)
{
    if (c->issued_ns > now_ns && c->issued_ns - now_ns > SKEW_NS)
        return fail(err, -EACCES, "credential: issued %lld s in the future: set the clocks (NTP)",
                    (long long)((c->issued_ns - now_ns) / 1000000000LL));
    if (c->expires_ns < c->issued_ns || c->expires_ns - c->issued_ns > LIFE_NS)
        return fail(err, -EACCES, "credential: lives longer than is allowed");
    if (now_ns > c->expires_ns && now_ns - c->expires_ns > SKEW_NS)
        return fail(err, -EACCES, "credential: expired %lld s ago",
                    (long long)((now_ns - c->expires_ns) / 1000000000LL));
    return 0;
}

/* ---- the door ---- */
/* -EAGAIN: nobody is there now. */
static int connect_door(const char *path, struct cw_plugin_err *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = DOOR_TIMEOUT_S};
    int fd, e;

    if (strlen(path) >= sizeof(sa.sun_path))
        return fail(err, -ENAMETOOLONG, "door %s: the path is too long for a unix socket", path);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(err, -errno, "door %s: socket: %s", path, strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
        return fd;
    e = errno;
    (void)close(fd);
    if (e == ENOENT || e == ECONNREFUSED || e == EINTR)
        e = EAGAIN;
    return fail(err, -e, "door %s: %s", path, e == EAGAIN ? "nobody listens" : strerror(e));
}

static int ask_door(const struct auth_key *a, const uint8_t bind[32], uint8_t *buf, size_t cap,
                    size_t *ret_len, struct cw_plugin_err *err)
{
    const char *path = a->host->instance(a->host, "door");
    uint8_t reply[1 + CW_AUTH_CRED_MAX];
    ssize_t n = -1;
    int fd, e;

    if (path == NULL)
        return fail(err, -ENOENT, "door: none is configured");
    fd = connect_door(path, err);
    if (fd < 0)
        return fd;
    if (send(fd, bind, 32, MSG_NOSIGNAL) == 32)
        n = recv(fd, reply, sizeof(reply), 0);
    e = n == 0 || errno == EPIPE || errno == ECONNRESET || errno == EINTR ? EAGAIN : errno;
    (void)close(fd);
    if (n <= 0)
        return fail(err, -e, "door %s: no answer", path);
    if (reply[0] != 0)
        return fail(err, -EACCES, "door %s: %.*s", path, (int)(n - 1), (const char *)reply + 1);
    if ((size_t)(n - 1) > cap || n == 1)
        return fail(err, -EIO, "door %s: an answer of %zd bytes", path, n);
    memcpy(buf, reply + 1, (size_t)(n - 1));
    *ret_len = (size_t)(n - 1);
    return 0;
}

/* ---- ops ---- */
static int key_issue(void *ctx, uint32_t uid, uint32_t gid, const uint8_t bind[32], uint8_t *buf,
                     size_t cap, size_t *ret_len, struct cw_plugin_err *err)
{
    struct auth_key *a = ctx;
    struct claim c = {.type = CRED_USER, .uid = uid, .gid = gid, .issued_ns = real_ns()};
    int r = load_key(a, err);

    c.expires_ns = c.issued_ns + LIFE_NS;
    return r < 0 ? r : mint(a, &c, bind, buf, cap, ret_len, err);
}

static int key_credential(void *ctx, const uint8_t bind[32], uint8_t *buf, size_t cap,
                          size_t *ret_len, struct cw_plugin_err *err)
{
    int r = load_key(ctx, err);

    if (r == -EACCES || r == -ENOENT)
        return ask_door(ctx, bind, buf, cap, ret_len, err);
    return r < 0 ? r
                 : key_issue(ctx, (uint32_t)geteuid(), (uint32_t)getegid(), bind, buf, cap, ret_len,
                             err);
}

static int key_node_credential(void *ctx, const char *node, const uint8_t bind[32], uint8_t *buf,
                               size_t cap, size_t *ret_len, struct cw_plugin_err *err)
{
    struct auth_key *a = ctx;
    struct claim c = {.type = CRED_NODE, .issued_ns = real_ns()};
    int r;

    c.expires_ns = c.issued_ns + LIFE_NS;
    if (!node_name_ok(node))
        return fail(err, -EINVAL,
                    "node name `%.70s`: letters, digits, . - _ and at most %u of them", node,
                    NODE_MAX);
    (void)snprintf(c.node, sizeof(c.node), "%s", node);
    r = load_key(a, err);
    return r < 0 ? r : mint(a, &c, bind, buf, cap, ret_len, err);
}

static int key_verify(void *ctx, const uint8_t bind[32], const uint8_t *cred, size_t len,
                      int64_t now_ns, struct cw_identity *ret, struct cw_plugin_err *err)
{
    struct auth_key *a = ctx;
    uint8_t mac[MAC_BYTES];
    struct claim c;
    int r = load_key(a, err);

    if (r == 0)
        r = parse(cred, len, &c, err);
    if (r < 0)
        return r;
    if (ret->size < sizeof(*ret))
        return fail(err, -EINVAL, "auth/key: the host knows an older struct cw_identity");
    make_mac(a, &c, cred, len - MAC_BYTES, bind, mac);
    if (sodium_memcmp(mac, cred + len - MAC_BYTES, MAC_BYTES) != 0)
        return fail(err, -EACCES,
                    "credential: not made with this instance's key for this connection");
    r = check_time(&c, now_ns, err);
    if (r < 0)
        return r;
    ret->uid = c.type == CRED_USER ? c.uid : UINT32_MAX;
    ret->gid = c.type == CRED_USER ? c.gid : UINT32_MAX;
    (void)snprintf(ret->node, sizeof(ret->node), "%s", c.node);
    ret->expires_ns = c.expires_ns + SKEW_NS;
    return 0;
}

/* ---- life ---- */
static int key_open(const struct cw_host *host, void **ret_ctx, struct cw_plugin_err *err)
{
    struct auth_key *a;

    if (sodium_init() < 0)
        return fail(err, -EIO, "libsodium does not start");
    a = calloc(1, sizeof(*a));
    if (a == NULL)
        return fail(err, -ENOMEM, "no memory");
    a->host = host;
    *ret_ctx = a;
    return 0;
}

/* The key is read again at its next use. */
static int key_reload(void *ctx, struct cw_plugin_err *err)
{
    struct auth_key *a = ctx;

    (void)err;
    sodium_memzero(a->key, sizeof(a->key));
    a->have_key = false;
    return 0;
}

static void key_close(void *ctx)
{
    struct auth_key *a = ctx;

    sodium_memzero(a, sizeof(*a));
    free(a);
}

static const struct cw_auth_ops ops = {
    .credential = key_credential,
    .node_credential = key_node_credential,
    .verify = key_verify,
    .issue = key_issue,
};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = sizeof(struct cw_plugin),
    .abi_major = CW_PLUGIN_ABI_MAJOR,
    .abi_minor = CW_PLUGIN_ABI_MINOR,
    .family = "auth",
    .name = "key",
    .version = "1.0",
    .open = key_open,
    .reload = key_reload,
    .close = key_close,
    .ops = &ops,
    .ops_size = sizeof(ops),
};
