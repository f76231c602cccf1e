/* listeners.c: opens the sockets and says who may speak: the auth plugin proves each channel's
 * owner. */
#include "ctld/listeners.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "ctld/dispatch.h"
#include "ctld/doorkeeper.h"
#include "ctld/nodelink.h"
#include "plug/plug.h"
#include "wire/rpc_server.h"

static int verify(const uint8_t bind[32], const uint8_t *cred, size_t len, struct cw_identity *ret,
                  void *arg, struct cw_error *err)
{
    const struct cw_ctld *c = arg;
    struct cw_plugin_err perr = {{0}};
    int rc = CW_PLUG_OPS(auth, c->auth)
                 ->verify(cw_plug_ctx(c->auth), bind, cred, len, cw_clock_real_ns(), ret, &perr);
    return rc < 0 ? cw_fail(err, rc, "%s", perr.text[0] != '\0' ? perr.text : strerror(-rc)) : 0;
}

static int open_sockets(struct cw_ctld *c, struct cw_error *err)
{
    struct cw_rpc_server_config conf = {.url = c->conf->client_listen,
                                        .key = &c->key,
                                        .epoch = (uint64_t)c->start_ns,
                                        .verify = verify,
                                        .call = cw_dispatch,
                                        .arg = c};
    int rc = cw_rpc_server_open(c->loop, &conf, &c->clients, err);
    if (rc < 0)
        return rc;
    conf.url = c->conf->node_listen;
    conf.other = cw_nodelinks_frame;
    rc = cw_rpc_server_open(c->loop, &conf, &c->nodes, err);
    if (rc < 0)
        return rc;
    return cw_door_open(c, &c->door, err);
}

int cw_listeners_open(struct cw_ctld *c, struct cw_error *err)
{
    /* nanomsg's thread inherits this mask: signals stay ours. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = open_sockets(c, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

void cw_listeners_close(struct cw_ctld *c)
{
    cw_door_close(c->door);
    cw_rpc_server_close(c->nodes);
    cw_rpc_server_close(c->clients);
    c->door = NULL;
    c->nodes = c->clients = NULL;
}
