#pragma once
/* For tests of requests: a server on a loop in a thread of its own, in a directory of its own, that
 * counts, answers, holds or loses calls. Its verify takes the channel's key itself for a
 * credential. */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "loop/loop.h"
#include "wire/keypair.h"
#include "wire/rpc_client.h"
#include "wire/rpc_server.h"

#define CW_RPCFIXTURE_HELD_MAX 3000
enum cw_manner { ANSWER, HOLD, LOSE, BIG };
struct cw_rpcfixture {
    char dir[64], url[128];
    struct cw_keypair key;
    struct cw_loop *loop;
    struct cw_rpc_server *rpc;
    pthread_t thread;
    bool running;
    sem_t done;
    /* loop thread only, or while it is quiet */
    enum cw_manner manner;
    struct cw_rpc_call *held[CW_RPCFIXTURE_HELD_MAX];
    unsigned n_held, submits, pings;
};

int cw_rpcfixture_setup(void **state); /* not started yet */
int cw_rpcfixture_teardown(void **state);
void cw_rpcfixture_start(struct cw_rpcfixture *s);
void cw_rpcfixture_stop(struct cw_rpcfixture *s); /* closes the server, drops what is held */
/* Answers what is held, and waits until that has happened. */
void cw_rpcfixture_release(struct cw_rpcfixture *s);
/* forged not NULL: with a credential that does not verify. */
struct cw_rpc_client *cw_rpcfixture_client(struct cw_rpcfixture *s, void *forged);
int cw_rpcfixture_credential(const uint8_t bind[32], uint8_t *buf, size_t cap, size_t *ret_len,
                             void *forged, struct cw_error *err);
int cw_rpcfixture_ping(struct cw_rpc_client *c, uint32_t timeout_ms, char *ret_version,
                       struct cw_error *err);
