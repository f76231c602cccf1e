/* Requests over real ipc and tcp sockets: a server on a loop in a thread, the blocking client here,
 * and raw sockets for what only an attacker or an accident would send. */
#include "config.h"

#include "wire/rpc_client.h"
#include "wire/rpc_server.h"

#include "base/clock.h"
#include "proto/walk.h"
#include "proto/wire.pb-c.h"
#include "wire/nnsock.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define CW_HELD_MAX 3000
/* ---- the server in its thread ---- */
enum manner { ANSWER, HOLD, LOSE, BIG };
struct server {
    char dir[64], url[128];
    struct cw_keypair key;
    struct cw_loop *loop;
    struct cw_rpc_server *rpc;
    pthread_t thread;
    bool running;
    sem_t done;
    /* loop thread only, or while it is quiet */
    enum manner manner;
    struct cw_rpc_call *held[CW_HELD_MAX];
    unsigned n_held, submits, pings;
    bool anonymous;
};

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

static void answer_submit(struct server *s, struct cw_rpc_call *c)
{
    Cw__SubmitReply m = CW__SUBMIT_REPLY__INIT;
    Cw__SubmitResult one = CW__SUBMIT_RESULT__INIT, *p = &one;

    one.has_job_id = true;
    one.job_id = s->submits;
    m.results = &p;
    m.n_results = 1;
    cw_rpc_reply(c, &m.base);
}

static void answer_ping(struct server *s, struct cw_rpc_call *c)
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

static void answer(struct server *s, struct cw_rpc_call *c)
{
    if (cw_rpc_call_kind(c) == CW_KIND_SUBMIT)
        answer_submit(s, c);
    else
        answer_ping(s, c);
}

static void on_call(struct cw_rpc_call *c, void *arg)
{
    struct server *s = arg;

    if (cw_rpc_call_kind(c) == CW_KIND_SUBMIT)
        s->submits++;
    else
        s->pings++;
    if (s->manner == HOLD && s->n_held < CW_HELD_MAX)
        s->held[s->n_held++] = c;
    else if (s->manner == LOSE)
        cw_rpc_drop(c);
    else
        answer(s, c);
}

static void open_server(struct server *s)
{
    struct cw_rpc_server_config conf = {.url = s->url,
                                        .key = &s->key,
                                        .epoch = 7,
                                        .verify = s->anonymous ? NULL : verify,
                                        .call = on_call,
                                        .arg = s};
    struct cw_error err;

    if (cw_rpc_server_open(s->loop, &conf, &s->rpc, &err) < 0)
        fail_msg("%s", err.text);
}

static void *run_loop(void *arg)
{
    struct server *s = arg;

    (void)cw_loop_run(s->loop);
    return NULL;
}

static void start(struct server *s)
{
    s->loop = cw_loop_create();
    open_server(s);
    assert_int_equal(pthread_create(&s->thread, NULL, run_loop, s), 0);
    s->running = true;
}

static void on_stop(void *arg)
{
    struct server *s = arg;

    cw_rpc_server_close(s->rpc);
    s->rpc = NULL;
    for (unsigned i = 0; i < s->n_held; i++)
        cw_rpc_drop(s->held[i]);
    s->n_held = 0;
    cw_loop_stop(s->loop);
}

static void stop(struct server *s)
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
    struct server *s = arg;

    for (unsigned i = 0; i < s->n_held; i++)
        answer(s, s->held[i]);
    s->n_held = 0;
    s->manner = ANSWER;
    (void)sem_post(&s->done);
}

/* Answers what is held, and waits until that has happened. */
static void release(struct server *s)
{
    cw_loop_post(s->loop, on_release, s);
    while (sem_wait(&s->done) < 0)
        ;
}

static int setup(void **state)
{
    struct server *s = cw_xcalloc(1, sizeof(*s));

    (void)snprintf(s->dir, sizeof(s->dir), "/tmp/cw-rpc-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    (void)snprintf(s->url, sizeof(s->url), "ipc://%s/s", s->dir);
    (void)sem_init(&s->done, 0, 0);
    cw_keypair_make(&s->key);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct server *s = *state;
    char path[80];

    stop(s);
    (void)snprintf(path, sizeof(path), "%s/s", s->dir);
    (void)unlink(path);
    (void)rmdir(s->dir);
    (void)sem_destroy(&s->done);
    free(s);
    return 0;
}

/* ---- the asking side ---- */
static int credential(const uint8_t bind[32], uint8_t *buf, size_t cap, size_t *ret_len, void *arg,
                      struct cw_error *err)
{
    (void)err;
    assert_true(cap >= 32);
    memcpy(buf, bind, 32);
    if (arg != NULL)
        buf[0] ^= 1; /* forged */
    *ret_len = 32;
    return 0;
}

static struct cw_rpc_client *client_of(struct server *s, void *forged)
{
    struct cw_rpc_client *c = NULL;

    assert_int_equal(cw_rpc_client_open(s->url, s->key.pub, credential, forged, &c, NULL), 0);
    return c;
}

static int ping(struct cw_rpc_client *c, uint32_t timeout_ms, char *ret_version,
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

static int64_t ms(void)
{
    return cw_clock_mono_ns() / CW_NS_PER_MS;
}

/* A frame as an attacker or a retrying client would build it. */
struct raw {
    struct cw_channel ch;
    uint8_t id[16];
    struct cw_buf frame;
};

static void raw_frame(struct raw *w, unsigned kind, int64_t stamp_offset_ms, size_t plain_len)
{
    uint64_t t = (uint64_t)(cw_clock_real_ns() / CW_NS_PER_MS + stamp_offset_ms);
    struct cw_frame f = {
        .type = CW_FRAME_REQUEST, .kind = (uint16_t)kind, .cred = w->ch.eph_pub, .cred_len = 32};
    uint8_t plain[8];

    for (int i = 0; i < 8; i++)
        plain[i] = (uint8_t)(t >> (8 * i));
    memcpy(f.request_id, w->id, 16);
    cw_buf_clear(&w->frame);
    cw_channel_seal(&w->ch, &f, plain, plain_len, &w->frame);
}

static struct cw_nnsock *raw_socket(struct server *s)
{
    struct cw_nnsock *n = NULL;
    struct pollfd p;

    assert_int_equal(cw_nnsock_connect(s->url, &n, NULL), 0);
    p = (struct pollfd){.fd = cw_nnsock_send_fd(n), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 5000), 1);
    return n;
}

static void raw_send(struct cw_nnsock *n, const struct raw *w)
{
    assert_int_equal(cw_nnsock_send(n, NULL, w->frame.data, w->frame.len), 0);
}

static void raw_send_patiently(struct cw_nnsock *n, const struct raw *w)
{
    while (cw_nnsock_send(n, NULL, w->frame.data, w->frame.len) == -EAGAIN) {
        struct pollfd p = {.fd = cw_nnsock_send_fd(n), .events = POLLIN};

        assert_int_equal(poll(&p, 1, 5000), 1);
    }
}

/* The type of the next frame; *plain its opened body (a refusal's body as it is). 0: nothing in
 * wait_ms. */
static int raw_recv(struct cw_nnsock *n, const struct raw *w, int wait_ms, struct cw_frame *ret,
                    struct cw_buf *plain)
{
    static struct cw_buf in; /* the frame borrows from it */
    struct pollfd p = {.fd = cw_nnsock_fd(n), .events = POLLIN};

    cw_buf_fini(&in);
    if (poll(&p, 1, wait_ms) != 1)
        return 0;
    assert_int_equal(cw_nnsock_recv(n, NULL, &in), 0);
    assert_int_equal(cw_frame_unpack(in.data, in.len, ret, NULL), 0);
    cw_buf_clear(plain);
    if (ret->type == CW_FRAME_REFUSAL)
        cw_buf_add(plain, ret->body, ret->body_len);
    else
        assert_int_equal(cw_channel_open(&w->ch, ret, plain), 0);
    return ret->type;
}

static void expect_failure(const struct cw_buf *body, int code, const char *text)
{
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m = NULL;

    assert_int_equal(cw_walk_unpack(&cw__failure__descriptor, body->data, body->len, a, &m, NULL),
                     0);
    assert_int_equal(((Cw__Failure *)(void *)m)->code, code);
    assert_non_null(strstr(((Cw__Failure *)(void *)m)->text, text));
    cw_arena_destroy(a);
}

static uint64_t job_of(const struct cw_buf *body)
{
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m = NULL;
    uint64_t id;

    assert_int_equal(
        cw_walk_unpack(&cw__submit_reply__descriptor, body->data, body->len, a, &m, NULL), 0);
    id = ((Cw__SubmitReply *)(void *)m)->results[0]->job_id;
    cw_arena_destroy(a);
    return id;
}

static struct raw raw_channel(struct server *s)
{
    struct raw w = {.id = {42}};

    assert_int_equal(cw_channel_initiate(s->key.pub, &w.ch), 0);
    return w;
}

/* ---- behaviours ---- */
static void ipc_request_is_answered_with_the_identity(void **state)
{
    struct server *s = *state;
    struct cw_rpc_client *c = client_of(s, NULL);
    char version[32];

    start(s);
    assert_int_equal(ping(c, 5000, version, NULL), 0);
    assert_string_equal(version, "uid 1234");
    assert_int_equal(ping(c, 5000, version, NULL), 0);
    cw_rpc_client_close(c);
}

static unsigned free_port(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 sa = {.sin6_family = (sa_family_t)family};
    socklen_t n = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(sa);
    unsigned port = 0;

    if (fd >= 0 && bind(fd, (struct sockaddr *)&sa, n) == 0 &&
        getsockname(fd, (struct sockaddr *)&sa, &n) == 0)
        port = ntohs(sa.sin6_port); /* at the same place in both families */
    if (fd >= 0)
        (void)close(fd);
    return port;
}

static void over_tcp(struct server *s, const char *host, int family)
{
    struct cw_rpc_client *c;
    char version[32];
    unsigned port = free_port(family);

    if (port == 0)
        skip(); /* no such address family here */
    (void)snprintf(s->url, sizeof(s->url), "tcp://%s:%u", host, port);
    c = client_of(s, NULL);
    start(s);
    assert_int_equal(ping(c, 5000, version, NULL), 0);
    assert_string_equal(version, "uid 1234");
    cw_rpc_client_close(c);
}

static void tcp_request_is_answered(void **state)
{
    over_tcp(*state, "127.0.0.1", AF_INET);
}

static void tcp6_request_is_answered(void **state)
{
    over_tcp(*state, "[::1]", AF_INET6);
}

static void *start_later(void *arg)
{
    struct server *s = arg;
    struct pollfd none = {.fd = -1};

    (void)poll(&none, 1, 400); /* the controller takes its time to start */
    start(s);
    return NULL;
}

static void client_waits_for_a_server_that_is_starting(void **state)
{
    struct server *s = *state;
    struct cw_rpc_client *c = client_of(s, NULL);
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, start_later, s), 0);
    assert_int_equal(ping(c, 10000, NULL, NULL), 0);
    (void)pthread_join(t, NULL);
    cw_rpc_client_close(c);
}

static void *restart_later(void *arg)
{
    struct server *s = arg;
    struct pollfd none = {.fd = -1};

    (void)poll(&none, 1, 300);
    stop(s);
    s->manner = ANSWER;
    start(s);
    return NULL;
}

static void server_restart_between_tries_is_survived(void **state)
{
    struct server *s = *state;
    struct cw_rpc_client *c = client_of(s, NULL);
    pthread_t t;
    int64_t from;

    s->manner = HOLD;
    start(s);
    assert_int_equal(pthread_create(&t, NULL, restart_later, s), 0);
    from = ms();
    assert_int_equal(ping(c, 10000, NULL, NULL), 0);
    assert_true(ms() - from < 2000); /* the lost connection is seen, not waited out */
    assert_int_equal(s->pings, 2);
    (void)pthread_join(t, NULL);
    cw_rpc_client_close(c);
}

static void client_outlives_a_restart_between_calls(void **state)
{
    struct server *s = *state;
    struct cw_rpc_client *c = client_of(s, NULL);

    start(s);
    assert_int_equal(ping(c, 5000, NULL, NULL), 0);
    stop(s);
    start(s);
    assert_int_equal(ping(c, 8000, NULL, NULL), 0);
    cw_rpc_client_close(c);
}

static void absent_server_is_named_and_not_waited_for(void **state)
{
    struct server *s = *state;
    struct cw_rpc_client *c = client_of(s, NULL);
    struct cw_error err;
    int64_t from = ms();

    assert_int_equal(ping(c, 700, NULL, &err), -EHOSTUNREACH);
    assert_non_null(strstr(err.text, "is not running"));
    assert_non_null(strstr(err.text, "nothing was sent"));
    assert_true(ms() - from < 1500);
    cw_rpc_client_close(c);
}

static void absent_tcp_server_is_named(void **state)
{
    struct server *s = *state;
    struct cw_rpc_client *c;
    struct cw_error err;

    (void)snprintf(s->url, sizeof(s->url), "tcp://127.0.0.1:%u", free_port(AF_INET));
    c = client_of(s, NULL);
    assert_int_equal(ping(c, 700, NULL, &err), -EHOSTUNREACH);
    assert_non_null(strstr(err.text, "is not running"));
    cw_rpc_client_close(c);
}

static void silence_ends_as_outcome_unknown(void **state)
{
    struct server *s = *state;
    struct cw_rpc_client *c = client_of(s, NULL);
    struct cw_error err;

    s->manner = LOSE;
    start(s);
    assert_int_equal(ping(c, 300, NULL, &err), -EHOSTUNREACH);
    assert_non_null(
        strstr(err.text, "did not answer within 1 s: outcome unknown, retrying is safe"));
    cw_rpc_client_close(c);
}

static volatile sig_atomic_t interrupt_flag;
static void on_alarm(int signo)
{
    interrupt_flag = signo;
}

static void interrupt_ends_the_wait(void **state)
{
    struct server *s = *state;
    struct cw_rpc_client *c = client_of(s, NULL);
    struct sigaction sa = {.sa_handler = on_alarm};
    int64_t from = ms();

    s->manner = HOLD;
    start(s);
    cw_rpc_client_set_interrupt(c, &interrupt_flag);
    (void)sigaction(SIGALRM, &sa, NULL);
    (void)ualarm(150000, 0);
    assert_int_equal(ping(c, 30000, NULL, NULL), -EINTR);
    assert_true(ms() - from < 1500);
    cw_rpc_client_close(c);
}

static void forged_credential_is_refused(void **state)
{
    struct server *s = *state;
    struct cw_rpc_client *c = client_of(s, s);
    struct cw_error err;

    start(s);
    assert_int_equal(ping(c, 5000, NULL, &err), -EACCES);
    assert_string_equal(err.text, "credential: forged");
    assert_int_equal(s->pings, 0);
    cw_rpc_client_close(c);
}

static void other_public_key_is_refused(void **state)
{
    struct server *s = *state;
    struct cw_keypair other;
    struct cw_rpc_client *c = NULL;
    struct cw_error err;

    cw_keypair_make(&other);
    start(s);
    assert_int_equal(cw_rpc_client_open(s->url, other.pub, credential, NULL, &c, NULL), 0);
    assert_int_equal(ping(c, 5000, NULL, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "another public key"));
    cw_rpc_client_close(c);
}

static void answer_too_large_is_a_clear_failure(void **state)
{
    struct server *s = *state;
    struct cw_rpc_client *c = client_of(s, NULL);
    struct cw_error err;

    s->manner = BIG;
    start(s);
    assert_int_equal(ping(c, 5000, NULL, &err), -EMSGSIZE);
    assert_non_null(strstr(err.text, "ask for less"));
    cw_rpc_client_close(c);
}

static void retry_of_an_answered_submit_gets_the_same_answer(void **state)
{
    struct server *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a, *b;
    struct cw_frame f;

    start(s);
    a = raw_socket(s);
    raw_frame(&w, CW_KIND_SUBMIT, 0, 8);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    assert_int_equal(job_of(&plain), 1);
    cw_nnsock_close(a); /* as if the answer had been lost */
    b = raw_socket(s);
    raw_frame(&w, CW_KIND_SUBMIT, 1000, 8);
    raw_send(b, &w);
    assert_int_equal(raw_recv(b, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    assert_int_equal(job_of(&plain), 1);
    assert_int_equal(s->submits, 1);
    cw_nnsock_close(b);
    cw_buf_fini(&w.frame);
}

static void retry_over_another_channel_gets_the_same_answer(void **state)
{
    struct server *s = *state;
    struct raw w = raw_channel(s), v = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    start(s);
    a = raw_socket(s);
    raw_frame(&w, CW_KIND_SUBMIT, 0, 8);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    raw_frame(&v, CW_KIND_SUBMIT, 0, 8);
    raw_send(a, &v);
    assert_int_equal(raw_recv(a, &v, 5000, &f, &plain), CW_FRAME_REPLY);
    assert_int_equal(job_of(&plain), 1);
    assert_int_equal(s->submits, 1);
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
    cw_buf_fini(&v.frame);
}

static void retry_joins_the_call_in_progress(void **state)
{
    struct server *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a, *b;
    struct cw_frame f;

    s->manner = HOLD;
    start(s);
    a = raw_socket(s);
    raw_frame(&w, CW_KIND_SUBMIT, 0, 8);
    raw_send(a, &w);
    b = raw_socket(s);
    assert_int_equal(raw_recv(a, &w, 200, &f, &plain), 0);
    raw_frame(&w, CW_KIND_SUBMIT, 2000, 8);
    raw_send(b, &w);
    assert_int_equal(raw_recv(b, &w, 5000, &f, &plain), CW_FRAME_ACK);
    release(s);
    assert_int_equal(raw_recv(b, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    assert_int_equal(job_of(&plain), 1);
    assert_int_equal(raw_recv(a, &w, 100, &f, &plain), 0);
    assert_int_equal(s->submits, 1);
    cw_nnsock_close(a);
    cw_nnsock_close(b);
    cw_buf_fini(&w.frame);
}

static void copied_frame_is_not_taken(void **state)
{
    struct server *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    start(s);
    a = raw_socket(s);
    raw_frame(&w, CW_KIND_PING, 0, 8);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 300, &f, &plain), 0);
    assert_int_equal(s->pings, 1);
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
}

static void wrong_clock_is_told(void **state)
{
    static const int64_t offsets_ms[] = {-301000, 302000, INT64_MAX / 2};
    struct server *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    start(s);
    a = raw_socket(s);
    for (size_t i = 0; i < CW_ARRAY_LEN(offsets_ms); i++) {
        raw_frame(&w, CW_KIND_PING, offsets_ms[i], 8);
        raw_send(a, &w);
        assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
        assert_int_equal(f.seq, 1);
        expect_failure(&plain, ESTALE, "set the clocks");
    }
    raw_frame(&w, CW_KIND_PING, 0, 7);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    expect_failure(&plain, EBADMSG, "time stamp");
    assert_int_equal(s->pings, 0);
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
}

static void unknown_request_is_refused(void **state)
{
    struct server *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    start(s);
    a = raw_socket(s);
    raw_frame(&w, 9999, 0, 8);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    expect_failure(&plain, ENOSYS, "does not know");
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
}

static void garbage_gets_one_refusal_and_harms_nobody(void **state)
{
    struct server *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_rpc_client *c = client_of(s, NULL);
    struct cw_nnsock *a;
    struct cw_frame f;

    start(s);
    a = raw_socket(s);
    for (size_t n = 0; n < 400; n += 7) {
        uint8_t junk[400];

        memset(junk, (int)(n & 0xff), sizeof(junk));
        assert_int_equal(cw_nnsock_send(a, NULL, junk, n), 0);
        assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REFUSAL);
    }
    for (size_t i = 0; i < CW_FRAME_HEADER; i++) { /* every header byte changed once */
        int type;

        raw_frame(&w, CW_KIND_PING, 0, 8);
        w.frame.data[i] = (char)(w.frame.data[i] ^ 0x55);
        raw_send(a, &w);
        type = raw_recv(a, &w, 5000, &f, &plain);
        assert_true(type == CW_FRAME_REFUSAL);
    }
    assert_int_equal(s->pings, 0);
    assert_int_equal(ping(c, 5000, NULL, NULL), 0);
    cw_nnsock_close(a);
    cw_rpc_client_close(c);
    cw_buf_fini(&w.frame);
}

static void channel_has_at_most_256_calls(void **state)
{
    struct server *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    s->manner = HOLD;
    start(s);
    a = raw_socket(s);
    for (unsigned i = 0; i <= 256; i++) {
        w.id[1] = (uint8_t)i;
        w.id[2] = (uint8_t)(i >> 8);
        raw_frame(&w, CW_KIND_PING, (int64_t)i, 8);
        raw_send_patiently(a, &w);
    }
    assert_int_equal(raw_recv(a, &w, 5000, &f, &plain), CW_FRAME_REPLY);
    expect_failure(&plain, EAGAIN, "256");
    release(s);
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
}

static void user_has_at_most_2048_calls(void **state)
{
    struct server *s = *state;
    struct raw w[9];
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;
    unsigned n = 0;

    s->manner = HOLD;
    start(s);
    a = raw_socket(s);
    for (unsigned k = 0; k < 9; k++)
        w[k] = raw_channel(s);
    for (unsigned i = 0; i < 9 * 240; i++) {
        struct raw *r = &w[i / 240];

        r->id[1] = (uint8_t)i;
        r->id[2] = (uint8_t)(i >> 8);
        raw_frame(r, CW_KIND_PING, i % 240, 8);
        raw_send_patiently(a, r);
    }
    while (raw_recv(a, &w[8], 1000, &f, &plain) == CW_FRAME_REPLY) {
        expect_failure(&plain, EAGAIN, "2048");
        n++;
    }
    assert_in_range(n, 1, 9 * 240 - 2048); /* the server's sends may be lost in a burst */
    release(s);
    assert_int_equal(s->pings, 2048);
    cw_nnsock_close(a);
    for (unsigned k = 0; k < 9; k++)
        cw_buf_fini(&w[k].frame);
}

static void ended_calls_after_close_only_free(void **state)
{
    struct server *s = *state;
    struct raw w = raw_channel(s);
    cw_autobuf struct cw_buf plain = {0};
    struct cw_nnsock *a;
    struct cw_frame f;

    s->manner = HOLD;
    start(s);
    a = raw_socket(s);
    raw_frame(&w, CW_KIND_SUBMIT, 0, 8);
    raw_send(a, &w);
    assert_int_equal(raw_recv(a, &w, 100, &f, &plain), 0);
    stop(s); /* closes the server, then drops the held call */
    assert_int_equal(s->n_held, 0);
    cw_nnsock_close(a);
    cw_buf_fini(&w.frame);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(ipc_request_is_answered_with_the_identity),
        T(tcp_request_is_answered),
        T(tcp6_request_is_answered),
        T(client_waits_for_a_server_that_is_starting),
        T(server_restart_between_tries_is_survived),
        T(client_outlives_a_restart_between_calls),
        T(absent_server_is_named_and_not_waited_for),
        T(absent_tcp_server_is_named),
        T(silence_ends_as_outcome_unknown),
        T(interrupt_ends_the_wait),
        T(forged_credential_is_refused),
        T(other_public_key_is_refused),
        T(answer_too_large_is_a_clear_failure),
        T(retry_of_an_answered_submit_gets_the_same_answer),
        T(retry_over_another_channel_gets_the_same_answer),
        T(retry_joins_the_call_in_progress),
        T(copied_frame_is_not_taken),
        T(wrong_clock_is_told),
        T(unknown_request_is_refused),
        T(garbage_gets_one_refusal_and_harms_nobody),
        T(channel_has_at_most_256_calls),
        T(user_has_at_most_2048_calls),
        T(ended_calls_after_close_only_free),
    };

    return cmocka_run_group_tests_name("rpc", tests, NULL, NULL);
}
