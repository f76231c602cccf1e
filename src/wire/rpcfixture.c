/* The server of rpc_test.c and rpc_raw_test.c. */
#include "config.h"

#include "wire/rpcfixture.h"

#include "proto/wire.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int verify(const uint8_t bind[32], const uint8_t *cred, size_t len, struct cw_identity *ret,
                  void *arg, struct cw_error *err)
{
    (void)arg;
    if (len != 32 || memcmp(bind, cred, 32) != 0)
        return cw_fail(err, -EACCES, "credential: forged");
    ret->uid = 1234;
    ret->gid = 99;
    ret->expires_ns = INT64_MAX;
    return 0;
}

static void answer_submit(struct cw_rpcfixture *s, struct cw_rpc_call *c)
{
    Cw__SubmitReply m = CW__SUBMIT_REPLY__INIT;
    Cw__SubmitResult one = CW__SUBMIT_RESULT__INIT, *p = &one;

    one.has_job_id = true;
    one.job_id = s->submits;
    m.results = &p;
    m.n_results = 1;
    cw_rpc_reply(c, &m.base);
}

static void answer_ping(struct cw_rpcfixture *s, struct cw_rpc_call *c)
{
    Cw__PingReply m = CW__PING_REPLY__INIT;
    char *text = cw_arena_printf(cw_rpc_call_arena(c), "uid %u", cw_rpc_call_identity(c)->uid);

    m.version = text;
    m.cluster = "x";
    if (s->manner == BIG) {
        m.cluster = cw_arena_alloc(cw_rpc_call_arena(c), CW_FRAME_BODY_MAX + 2);
        memset(m.cluster, 'a', CW_FRAME_BODY_MAX + 1);
    }
    cw_rpc_reply(c, &m.base);
}

static void answer(struct cw_rpcfixture *s, struct cw_rpc_call *c)
{
    if (cw_rpc_call_kind(c) == CW_KIND_SUBMIT)
        answer_submit(s, c);
    else
        answer_ping(s, c);
}

static void on_call(struct cw_rpc_call *c, void *arg)
{
    struct cw_rpcfixture *s = arg;

    if (cw_rpc_call_kind(c) == CW_KIND_SUBMIT)
        s->submits++;
    else
        s->pings++;
    if (s->manner == HOLD && s->n_held < CW_RPCFIXTURE_HELD_MAX)
        s->held[s->n_held++] = c;
    else if (s->manner == LOSE)
        cw_rpc_drop(c);
    else
        answer(s, c);
}

static void open_server(struct cw_rpcfixture *s)
{
    struct cw_rpc_server_config conf = {
        .url = s->url, .key = &s->key, .epoch = 7, .verify = verify, .call = on_call, .arg = s};
    struct cw_error err;

    if (cw_rpc_server_open(s->loop, &conf, &s->rpc, &err) < 0)
        fail_msg("%s", err.text);
}

static void *run_loop(void *arg)
{
    struct cw_rpcfixture *s = arg;

    (void)cw_loop_run(s->loop);
    return NULL;
}

void cw_rpcfixture_start(struct cw_rpcfixture *s)
{
    s->loop = cw_loop_create();
    open_server(s);
    assert_int_equal(pthread_create(&s->thread, NULL, run_loop, s), 0);
    s->running = true;
}

static void on_stop(void *arg)
{
    struct cw_rpcfixture *s = arg;

    cw_rpc_server_close(s->rpc);
    s->rpc = NULL;
    for (unsigned i = 0; i < s->n_held; i++)
        cw_rpc_drop(s->held[i]);
    s->n_held = 0;
    cw_loop_stop(s->loop);
}

void cw_rpcfixture_stop(struct cw_rpcfixture *s)
{
    if (!s->running)
        return;
    cw_loop_post(s->loop, on_stop, s);
    (void)pthread_join(s->thread, NULL);
    cw_loop_destroy(s->loop);
    s->running = false;
}

static void on_release(void *arg)
{
    struct cw_rpcfixture *s = arg;

    for (unsigned i = 0; i < s->n_held; i++)
        answer(s, s->held[i]);
    s->n_held = 0;
    s->manner = ANSWER;
    (void)sem_post(&s->done);
}

void cw_rpcfixture_release(struct cw_rpcfixture *s)
{
    cw_loop_post(s->loop, on_release, s);
    while (sem_wait(&s->done) < 0)
        ;
}

int cw_rpcfixture_setup(void **state)
{
    struct cw_rpcfixture *s = cw_xcalloc(1, sizeof(*s));

    (void)snprintf(s->dir, sizeof(s->dir), "/tmp/cw-rpc-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    (void)snprintf(s->url, sizeof(s->url), "ipc://%s/s", s->dir);
    (void)sem_init(&s->done, 0, 0);
    cw_keypair_make(&s->key);
    *state = s;
    return 0;
}

int cw_rpcfixture_teardown(void **state)
{
    struct cw_rpcfixture *s = *state;
    char path[80];

    cw_rpcfixture_stop(s);
    (void)snprintf(path, sizeof(path), "%s/s", s->dir);
    (void)unlink(path);
    (void)rmdir(s->dir);
    (void)sem_destroy(&s->done);
    free(s);
    return 0;
}

int cw_rpcfixture_credential(const uint8_t bind[32], uint8_t *buf, size_t cap, size_t *ret_len,
                             void *arg, struct cw_error *err)
{
    (void)err;
    assert_true(cap >= 32);
    memcpy(buf, bind, 32);
    if (arg != NULL)
        buf[0] ^= 1; /* forged */
    *ret_len = 32;
    return 0;
}

struct cw_rpc_client *cw_rpcfixture_client(struct cw_rpcfixture *s, void *forged)
{
    struct cw_rpc_client *c = NULL;

    assert_int_equal(
        cw_rpc_client_open(s->url, s->key.pub, cw_rpcfixture_credential, forged, &c, NULL), 0);
    return c;
}

int cw_rpcfixture_ping(struct cw_rpc_client *c, uint32_t timeout_ms, char *ret_version,
                       struct cw_error *err)
{
    Cw__PingRequest q = CW__PING_REQUEST__INIT;
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m = NULL;
    int r = cw_rpc_client_call(c, CW_KIND_PING, &q.base, timeout_ms, a, &m, err);

    if (r == 0 && ret_version != NULL)
        (void)snprintf(ret_version, 32, "%s", ((Cw__PingReply *)(void *)m)->version);
    cw_arena_destroy(a);
    return r;
}
