/* auth/munge: who asks, proved by the site's MUNGE. A credential carries the channel's public key and,
 * from a node daemon, its name; munged adds the uid and gid that the kernel told it. One that was
 * copied from the wire counts for no other channel, so munge's own memory of used credentials is not
 * needed: a controller may look at one again when it has forgotten the channel. Only root and the
 * user that the controller runs as may speak for a node. Calls wait for the local munged, about
 * half a millisecond. Test: auth_munge_test.c, testsuite/t6010-munge.t. */
#include <crunwlm/plugin.h>

#include <errno.h>
#include <munge.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIND_BYTES 32u
#define NODE_MAX   63u
#define HEAD       "CM\1"
#define AT_BIND    3u
#define AT_NODE    (AT_BIND + BIND_BYTES)
#define SKEW_S     60 /* clocks of two machines */
#define NS         1000000000LL

struct auth_munge {
    const char *socket; /* NULL: munge's own */
    int ttl_s;
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

/* NULL: no memory. */
static munge_ctx_t context(const struct auth_munge *a)
{
    munge_ctx_t ctx = munge_ctx_create();

    if (ctx == NULL)
        return NULL;
    if (a->socket != NULL)
        (void)munge_ctx_set(ctx, MUNGE_OPT_SOCKET, a->socket);
    (void)munge_ctx_set(ctx, MUNGE_OPT_TTL, a->ttl_s);
    return ctx;
}

static int errno_of(munge_err_t e)
{
    switch (e) {
    case EMUNGE_NO_MEMORY: return -ENOMEM;
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT: return -EAGAIN; /* munged may come back */
    default: return -EACCES;
    }
}

static const char *words_of(munge_ctx_t ctx, munge_err_t e)
{
    const char *text = ctx != NULL ? munge_ctx_strerror(ctx) : NULL;

    return text != NULL ? text : munge_strerror(e);
}

static bool node_name_ok(const char *name, size_t n)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

    for (size_t i = 0; i < n; i++)
        if (name[i] == '\0' || strchr(allowed, name[i]) == NULL)
            return false;
    return n <= NODE_MAX;
}

/* node "": a user. */
static int make(const struct auth_munge *a, const char *node, const uint8_t bind[32], uint8_t *buf,
                size_t cap, size_t *ret_len, struct cw_plugin_err *err)
{
    char text[AT_NODE + NODE_MAX];
    char *cred = NULL;
    size_t n = strlen(node), len;
    munge_ctx_t ctx = context(a);
    munge_err_t e;
    int r = 0;

    if (ctx == NULL)
        return fail(err, -ENOMEM, "munge: no memory");
    memcpy(text, HEAD, AT_BIND);
    memcpy(text + AT_BIND, bind, BIND_BYTES);
    memcpy(text + AT_NODE, node, n);
    e = munge_encode(&cred, ctx, text, (int)(AT_NODE + n));
    len = e == EMUNGE_SUCCESS ? strlen(cred) + 1 : 0;
    if (e != EMUNGE_SUCCESS)
        r = fail(err, errno_of(e), "munge: %s", words_of(ctx, e));
    else if (len > cap)
        r = fail(err, -ENOSPC, "munge: a credential of %zu bytes, %zu fit", len, cap);
    else
        memcpy(buf, cred, len);
    *ret_len = len;
    free(cred);
    munge_ctx_destroy(ctx);
    return r;
}

static int munge_credential(void *ctx, const uint8_t bind[32], uint8_t *buf, size_t cap,
                            size_t *ret_len, struct cw_plugin_err *err)
{
    return make(ctx, "", bind, buf, cap, ret_len, err);
}

static int munge_node_credential(void *ctx, const char *node, const uint8_t bind[32], uint8_t *buf,
                                 size_t cap, size_t *ret_len, struct cw_plugin_err *err)
{
    if (node[0] == '\0' || !node_name_ok(node, strlen(node)))
        return fail(err, -EINVAL,
                    "node name `%.70s`: letters, digits, . - _ and at most %u of them", node,
                    NODE_MAX);
    return make(ctx, node, bind, buf, cap, ret_len, err);
}

/* ---- verify ---- */
struct opened {
    uid_t uid;
    gid_t gid;
    int64_t made_s, lives_s;
    char *text;
    int len;
};

static int open_cred(const struct auth_munge *a, const char *cred, struct opened *ret,
                     struct cw_plugin_err *err)
{
    munge_ctx_t ctx = context(a);
    void *text = NULL;
    time_t made = 0;
    int ttl = 0, r = 0;
    munge_err_t e;

    if (ctx == NULL)
        return fail(err, -ENOMEM, "munge: no memory");
    e = munge_decode(cred, ctx, &text, &ret->len, &ret->uid, &ret->gid);
    ret->text = text;
    if (e != EMUNGE_SUCCESS && e != EMUNGE_CRED_REPLAYED) /* the channel is bound, see above */
        r = fail(err, errno_of(e), "munge: %s", words_of(ctx, e));
    else if (munge_ctx_get(ctx, MUNGE_OPT_ENCODE_TIME, &made) != EMUNGE_SUCCESS ||
             munge_ctx_get(ctx, MUNGE_OPT_TTL, &ttl) != EMUNGE_SUCCESS)
        r = fail(err, -EACCES, "munge: a credential without its times");
    ret->made_s = made;
    ret->lives_s = ttl;
    munge_ctx_destroy(ctx);
    return r;
}

static int read_claim(const struct opened *o, const uint8_t bind[32], struct cw_identity *ret,
                      struct cw_plugin_err *err)
{
    size_t n = o->len > 0 ? (size_t)o->len : 0;

    if (n < AT_NODE || n - AT_NODE > NODE_MAX || memcmp(o->text, HEAD, AT_BIND) != 0)
        return fail(err, -EACCES, "munge: a credential that was not made for crun-wlm");
    if (memcmp(o->text + AT_BIND, bind, BIND_BYTES) != 0)
        return fail(err, -EACCES, "munge: a credential of another connection");
    if (!node_name_ok(o->text + AT_NODE, n - AT_NODE))
        return fail(err, -EACCES, "munge: a credential with a bad node name");
    if (n > AT_NODE && o->uid != 0 && o->uid != geteuid())
        return fail(err, -EACCES, "munge: user %u may not speak for a node", (unsigned)o->uid);
    memset(ret->node, 0, sizeof(ret->node));
    memcpy(ret->node, o->text + AT_NODE, n - AT_NODE);
    ret->uid = n == AT_NODE ? o->uid : UINT32_MAX;
    ret->gid = n == AT_NODE ? o->gid : UINT32_MAX;
    ret->expires_ns = (o->made_s + o->lives_s + SKEW_S) * NS;
    return 0;
}

static int munge_verify(void *ctx, const uint8_t bind[32], const uint8_t *cred, size_t len,
                        int64_t now_ns, struct cw_identity *ret, struct cw_plugin_err *err)
{
    struct opened o = {.text = NULL};
    int r;

    (void)now_ns; /* munged compares the clocks */
    if (ret->size < sizeof(*ret))
        return fail(err, -EINVAL, "auth/munge: the host knows an older struct cw_identity");
    if (len == 0)
        return fail(err, -EACCES, "credential: none was sent");
    if (cred[len - 1] != '\0' || strncmp((const char *)cred, "MUNGE:", 6) != 0)
        return fail(err, -EACCES, "credential: not one of munge");
    r = open_cred(ctx, (const char *)cred, &o, err);
    if (r == 0)
        r = read_claim(&o, bind, ret, err);
    free(o.text);
    return r;
}

/* ---- life ---- */
static int munge_open(const struct cw_host *host, void **ret_ctx, struct cw_plugin_err *err)
{
    const char *socket = host->option(host, "socket"), *ttl = host->option(host, "ttl");
    struct auth_munge *a = calloc(1, sizeof(*a));
    char none[] = "", *end = none;
    long seconds = 300;

    if (a == NULL)
        return fail(err, -ENOMEM, "no memory");
    a->socket = socket != NULL && socket[0] != '\0' ? socket : NULL;
    if (ttl != NULL)
        seconds = strtol(ttl, &end, 10);
    a->ttl_s = (int)seconds;
    if (*end != '\0' || seconds < 10 || seconds > 3600) {
        free(a);
        return fail(err, -EINVAL, "option ttl: %.20s, allowed are 10 to 3600 seconds", ttl);
    }
    *ret_ctx = a;
    return 0;
}

static void munge_close(void *ctx)
{
    free(ctx);
}

static const struct cw_auth_ops ops = {
    .credential = munge_credential,
    .node_credential = munge_node_credential,
    .verify = munge_verify,
};

static const struct cw_option options[] = {
    {"socket", CW_OPT_STRING, "", "munged's socket; empty: munge's default"},
    {"ttl", CW_OPT_INT, "300", "seconds that a credential lives, 10 to 3600"},
    {NULL, CW_OPT_STRING, NULL, NULL},
};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = sizeof(struct cw_plugin),
    .abi_major = CW_PLUGIN_ABI_MAJOR,
    .abi_minor = CW_PLUGIN_ABI_MINOR,
    .family = "auth",
    .name = "munge",
    .version = "1.0",
    .options = options,
    .open = munge_open,
    .close = munge_close,
    .ops = &ops,
    .ops_size = sizeof(ops),
};
