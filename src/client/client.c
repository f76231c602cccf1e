/* A command's way to the controller: configuration, auth plugin, public key, request client. Owns
 * nothing of what a request means. Test: client_test.c. */
#include "config.h"

#include "client/client.h"

#include "plug/plug.h"
#include "wire/rpc_client.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_TIMEOUT_S 60u
#define TIMEOUT_MAX_S     (UINT32_MAX / 1000u)

struct cw_client {
    struct cw_conf *conf;
    struct cw_plug_registry *plugins;
    struct cw_plug *auth;
    struct cw_rpc_client *rpc;
    uint32_t timeout_ms;
    volatile sig_atomic_t *interrupt;
};

static int credential(const uint8_t bind[32], uint8_t *buf, size_t cap, size_t *ret_len, void *arg,
                      struct cw_error *err)
{
    struct cw_client *c = arg;
    struct cw_plugin_err why = {.text = ""};
    int r =
        CW_PLUG_OPS(auth, c->auth)->credential(cw_plug_ctx(c->auth), bind, buf, cap, ret_len, &why);

    return r < 0 ? cw_fail(err, r, "%s", why.text) : 0;
}

static int load_conf(struct cw_client *c, const char *conf_path, struct cw_error *err)
{
    cw_autofree char *path = NULL;
    int r = cw_conf_find(conf_path, &path, err);

    return r < 0 ? r : cw_conf_load(path, &c->conf, err);
}

static int load_auth(struct cw_client *c, struct cw_error *err)
{
    int r;

    c->plugins = cw_plug_registry_create(c->conf, NULL);
    r = cw_plug_load(c->plugins, "auth", c->conf->auth, &c->auth, err);
    if (r < 0)
        return r;
    if (!CW_PLUG_HAS(auth, c->auth, credential))
        return cw_fail(err, -ENOTSUP, "plugin auth/%s: cannot make credentials", c->conf->auth);
    return 0;
}

static int read_timeout(struct cw_client *c, struct cw_error *err)
{
    const char *text = getenv("CRUN_TIMEOUT");
    char *end = NULL;
    unsigned long s = DEFAULT_TIMEOUT_S;

    if (text != NULL && text[0] != '\0') {
        s = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;
        if (s == 0 || s > TIMEOUT_MAX_S || *end != '\0')
            return cw_fail(err, -EINVAL, "CRUN_TIMEOUT=%s: not a number of seconds from 1 to %u",
                           text, TIMEOUT_MAX_S);
    }
    c->timeout_ms = (uint32_t)(s * 1000);
    return 0;
}

static int open_rpc(struct cw_client *c, struct cw_error *err)
{
    uint8_t pub[32];
    int r = cw_public_key_load(c->conf->public_key_file, pub, err);

    if (r == -ENOENT)
        return cw_wrap(err, r, "controller's public key (was this instance ever started?)");
    return r < 0 ? r
                 : cw_rpc_client_open(c->conf->client_connect, pub, credential, c, &c->rpc, err);
}

int cw_client_open(const char *conf_path, struct cw_client **ret, struct cw_error *err)
{
    struct cw_client *c = cw_xcalloc(1, sizeof(*c));
    int r = read_timeout(c, err);

    r = r < 0 ? r : load_conf(c, conf_path, err);
    r = r < 0 ? r : load_auth(c, err);
    r = r < 0 ? r : open_rpc(c, err);
    if (r < 0) {
        cw_client_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

void cw_client_close(struct cw_client *c)
{
    if (c == NULL)
        return;
    cw_rpc_client_close(c->rpc);
    cw_plug_registry_destroy(c->plugins);
    cw_conf_destroy(c->conf);
    free(c);
}

const struct cw_conf *cw_client_conf(const struct cw_client *c)
{
    return c->conf;
}

void cw_client_set_interrupt(struct cw_client *c, volatile sig_atomic_t *flag)
{
    c->interrupt = flag;
    cw_rpc_client_set_interrupt(c->rpc, flag);
}

volatile sig_atomic_t *cw_client_interrupt(const struct cw_client *c)
{
    return c->interrupt;
}

int cw_client_pause(struct cw_client *c, uint32_t ms)
{
    return cw_rpc_client_pause(c->rpc, ms);
}

int cw_client_call(struct cw_client *c, enum cw_kind kind, const ProtobufCMessage *m,
                   uint32_t timeout_ms, struct cw_arena *a, ProtobufCMessage **ret,
                   struct cw_error *err)
{
    return cw_rpc_client_call(c->rpc, kind, m, timeout_ms != 0 ? timeout_ms : c->timeout_ms, a, ret,
                              err);
}

int cw_client_exit_code(int negative_errno)
{
    switch (negative_errno) {
    case 0:
        return 0;
    case -EHOSTUNREACH:
        return 240;
    case -EINTR:
        return 130;
    default:
        return 1;
    }
}
