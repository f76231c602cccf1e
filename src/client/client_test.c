/* The library against a small controller and a small node on one loop in a thread: real sockets,
 * the real configuration reader and the real auth/key plugin. */
#include "config.h"

#include "client/client.h"

#include "base/clock.h"
#include "base/file.h"
#include "loop/loop.h"
#include "proto/walk.h"
#include "wire/rpc_server.h"
#include "wire/ticket.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define LOG_BYTES 200000u

/* What the node does with its next LOG requests. */
enum mood { SERVE, EXPIRED_ONCE, ELSEWHERE, NOT_YET };

struct instance {
    char dir[64], conf[96], pub[96], key[96], run[96], ctl_url[128], node_url[128];
    struct cw_keypair ctl_key, node_key;
    uint8_t ticket_key[32];
    struct cw_loop *loop;
    struct cw_rpc_server *ctl, *node;
    pthread_t thread;
    bool running, mute;
    enum mood mood;
    uint8_t log[LOG_BYTES];
    uint64_t ticket_life_ns;
    unsigned n_tickets, n_logs;
    struct cw_rpc_call *held;
};

static int verify(const uint8_t bind[32], const uint8_t *cred, size_t len, struct cw_identity *ret,
                  void *arg, struct cw_error *err)
{
    (void)bind;
    (void)arg;
    if (len < 8)
        return cw_fail(err, -EACCES, "credential: none was sent");
    memcpy(&ret->uid, cred + 4, 4); /* where auth/key has it; its own test checks the rest */
    ret->expires_ns = INT64_MAX;
    return 0;
}

static void answer_ticket(struct instance *w, struct cw_rpc_call *c)
{
    Cw__TicketReply m = CW__TICKET_REPLY__INIT;
    Cw__TicketBody b = CW__TICKET_BODY__INIT;
    Cw__AttemptRecord at = CW__ATTEMPT_RECORD__INIT;
    Cw__Owner o = CW__OWNER__INIT;
    Cw__Grant g = CW__GRANT__INIT;
    cw_autobuf struct cw_buf ticket = {0};
    bool wrong = w->mood == ELSEWHERE && w->n_tickets == 0;

    w->n_tickets++;
    if (w->mood == NOT_YET && w->n_tickets < 4) {
        cw_rpc_reply_failure(c, -EAGAIN, "job 12 has not started yet", true);
        return;
    }
    b.id = at.id = at.job_id = 12;
    b.attempt = at.attempt = 3;
    at.state = CW__STATE__RUNNING;
    g.node = "n1";
    g.cores = g.cpus = "0";
    at.grant = &g;
    b.right = "logs";
    b.owner = &o;
    b.expires_ns = cw_clock_real_ns() + (int64_t)w->ticket_life_ns;
    cw_ticket_make(w->ticket_key, &b, &ticket);
    m.node = "n1";
    m.address =
        wrong ? cw_arena_printf(cw_rpc_call_arena(c), "ipc://%s/gone", w->dir) : w->node_url;
    m.public_key.data = w->node_key.pub;
    m.public_key.len = 32;
    m.ticket.data = (uint8_t *)ticket.data;
    m.ticket.len = ticket.len;
    m.attempt = &at;
    cw_rpc_reply(c, &m.base);
}

static void on_ctl_call(struct cw_rpc_call *c, void *arg)
{
    struct instance *w = arg;
    Cw__PingReply m = CW__PING_REPLY__INIT;

    if (cw_rpc_call_kind(c) == CW_KIND_TICKET) {
        answer_ticket(w, c);
        return;
    }
    if (w->mute) {
        w->held = c;
        return;
    }
    m.version = cw_arena_printf(cw_rpc_call_arena(c), "%u", cw_rpc_call_identity(c)->uid);
    m.cluster = "x";
    cw_rpc_reply(c, &m.base);
}

static void on_node_call(struct cw_rpc_call *c, void *arg)
{
    struct instance *w = arg;
    struct cw_arena *a = cw_rpc_call_arena(c);
    const struct cw_buf *body = cw_rpc_call_body(c);
    Cw__LogReply m = CW__LOG_REPLY__INIT;
    ProtobufCMessage *pm = NULL;
    const Cw__LogRequest *q;
    Cw__TicketBody *t = NULL;
    uint64_t at;

    if (w->mood == EXPIRED_ONCE && w->n_logs++ == 0) {
        cw_rpc_reply_failure(c, -EKEYEXPIRED, "ticket: expired", false);
        return;
    }
    if (w->mood == NOT_YET && w->n_logs++ < 2) {
        cw_rpc_reply_failure(c, -EAGAIN, "it has not started yet", true);
        return;
    }
    if (cw_walk_unpack(&cw__log_request__descriptor, body->data, body->len, a, &pm, NULL) < 0) {
        cw_rpc_reply_failure(c, -EBADMSG, "bad", false);
        return;
    }
    q = (const Cw__LogRequest *)(const void *)pm;
    if (cw_ticket_open(w->ticket_key, q->ticket.data, q->ticket.len, cw_clock_real_ns(), a, &t,
                       NULL) < 0 ||
        t->attempt != 3) {
        cw_rpc_reply_failure(c, -EACCES, "bad ticket", false);
        return;
    }
    at = !q->from_end ? q->offset : q->offset < LOG_BYTES ? LOG_BYTES - q->offset : 0;
    m.offset = at;
    m.data.data = w->log + at;
    m.data.len = LOG_BYTES - at < q->max ? LOG_BYTES - at : q->max;
    m.eof = at + m.data.len == LOG_BYTES;
    cw_rpc_reply(c, &m.base);
}

static void *run_loop(void *arg)
{
    struct instance *w = arg;

    (void)cw_loop_run(w->loop);
    return NULL;
}

static void start(struct instance *w)
{
    struct cw_rpc_server_config ctl = {
        .url = w->ctl_url, .key = &w->ctl_key, .verify = verify, .call = on_ctl_call, .arg = w};
    struct cw_rpc_server_config node = {
        .url = w->node_url, .key = &w->node_key, .call = on_node_call, .arg = w};
    struct cw_error err;

    assert_int_equal(mkdir(w->run, 0700), 0);
    w->loop = cw_loop_create();
    if (cw_rpc_server_open(w->loop, &ctl, &w->ctl, &err) < 0 ||
        cw_rpc_server_open(w->loop, &node, &w->node, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(pthread_create(&w->thread, NULL, run_loop, w), 0);
    w->running = true;
}

static void on_stop(void *arg)
{
    struct instance *w = arg;

    cw_rpc_server_close(w->ctl);
    cw_rpc_server_close(w->node);
    if (w->held != NULL)
        cw_rpc_drop(w->held);
    cw_loop_stop(w->loop);
}

static void stop(struct instance *w)
{
    if (!w->running)
        return;
    cw_loop_post(w->loop, on_stop, w);
    (void)pthread_join(w->thread, NULL);
    cw_loop_destroy(w->loop);
    w->running = false;
}

static int setup(void **state)
{
    struct instance *w = cw_xcalloc(1, sizeof(*w));
    cw_autobuf struct cw_buf conf = {0};

    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/cw-client-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->conf, sizeof(w->conf), "%s/crun.conf", w->dir);
    (void)snprintf(w->pub, sizeof(w->pub), "%s/controller.pub", w->dir);
    (void)snprintf(w->key, sizeof(w->key), "%s/key", w->dir);
    (void)snprintf(w->run, sizeof(w->run), "%s/run", w->dir);
    (void)snprintf(w->ctl_url, sizeof(w->ctl_url), "ipc://%s/ctl.sock", w->run);
    (void)snprintf(w->node_url, sizeof(w->node_url), "ipc://%s/n1.sock", w->run);
    cw_buf_addf(&conf, "plugin_path = \"%s\"\n", CW_TEST_PLUGINS);
    assert_int_equal(cw_file_write_atomic(w->conf, conf.data, conf.len, 0600, NULL), 0);
    assert_int_equal(cw_file_write_atomic(w->key, w->dir, 32, 0600, NULL), 0);
    cw_keypair_make(&w->node_key);
    cw_ticket_node_key((const uint8_t *)w->dir, "n1", w->ticket_key);
    w->ticket_life_ns = 300 * CW_NS_PER_S;
    for (size_t i = 0; i < LOG_BYTES; i++)
        w->log[i] = (uint8_t)(i * 7 + i / 251);
    *state = w;
    return 0;
}

static int setup_started(void **state)
{
    struct instance *w;
    char sec[96];

    (void)setup(state);
    w = *state;
    (void)snprintf(sec, sizeof(sec), "%s/sec", w->dir);
    assert_int_equal(cw_keypair_load(sec, w->pub, true, &w->ctl_key, NULL), 0);
    (void)unlink(sec);
    start(w);
    return 0;
}

static int teardown(void **state)
{
    struct instance *w = *state;

    stop(w);
    (void)unlink(w->ctl_url + 6);
    (void)unlink(w->node_url + 6);
    (void)unlink(w->conf);
    (void)unlink(w->pub);
    (void)unlink(w->key);
    (void)rmdir(w->run);
    assert_int_equal(rmdir(w->dir), 0);
    free(w);
    return 0;
}

static struct cw_client *open_client(struct instance *w)
{
    struct cw_client *c = NULL;
    struct cw_error err;

    if (cw_client_open(w->conf, &c, &err) < 0)
        fail_msg("%s", err.text);
    return c;
}

static int ping(struct cw_client *c, char *ret_version, struct cw_error *err)
{
    Cw__PingRequest q = CW__PING_REQUEST__INIT;
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m = NULL;
    int r = cw_client_call(c, CW_KIND_PING, &q.base, 0, a, &m, err);

    if (r == 0)
        (void)snprintf(ret_version, 32, "%s", ((Cw__PingReply *)(void *)m)->version);
    cw_arena_destroy(a);
    return r;
}

/* ---- opening and calling ---- */
static void missing_configuration_is_told(void **state)
{
    struct instance *w = *state;
    struct cw_client *c = NULL;
    struct cw_error err;

    (void)unlink(w->conf);
    assert_int_equal(cw_client_open(w->conf, &c, &err), -ENOENT);
    assert_non_null(strstr(err.text, w->conf));
}

static void instance_that_never_started_is_told(void **state)
{
    struct instance *w = *state;
    struct cw_client *c = NULL;
    struct cw_error err;

    assert_int_equal(cw_client_open(w->conf, &c, &err), -ENOENT);
    assert_non_null(strstr(err.text, "was this instance ever started?"));
}

static void bad_timeouts_are_refused(void **state)
{
    static const char *const values[] = {"0", "x", "-1", "5s", "99999999999999999999"};
    struct instance *w = *state;
    struct cw_client *c = NULL;
    struct cw_error err;

    for (size_t i = 0; i < CW_ARRAY_LEN(values); i++) {
        (void)setenv("CRUN_TIMEOUT", values[i], 1);
        assert_int_equal(cw_client_open(w->conf, &c, &err), -EINVAL);
        assert_non_null(strstr(err.text, "not a number of seconds"));
    }
    (void)unsetenv("CRUN_TIMEOUT");
}

static void call_reaches_the_controller_as_the_caller(void **state)
{
    struct cw_client *c = open_client(*state);
    char version[32], uid[32];
    struct cw_error err;

    (void)snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
    if (ping(c, version, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(version, uid);
    cw_client_close(c);
}

static void timeout_of_the_environment_bounds_a_call(void **state)
{
    struct instance *w = *state;
    struct cw_client *c;
    char version[32];
    struct cw_error err;
    int r;

    w->mute = true;
    (void)setenv("CRUN_TIMEOUT", "1", 1);
    c = open_client(w);
    r = ping(c, version, &err);
    (void)unsetenv("CRUN_TIMEOUT");
    assert_int_equal(r, -EHOSTUNREACH);
    assert_non_null(strstr(err.text, "outcome unknown"));
    cw_client_close(c);
}

static void exit_codes_are_the_documented_ones(void **state)
{
    (void)state;
    assert_int_equal(cw_client_exit_code(0), 0);
    assert_int_equal(cw_client_exit_code(-EHOSTUNREACH), 240);
    assert_int_equal(cw_client_exit_code(-EINTR), 130);
    assert_int_equal(cw_client_exit_code(-ENOENT), 1);
}

/* ---- logs ---- */
static struct cw_logreader *open_reader(struct cw_client *c)
{
    struct cw_logreader *r = NULL;
    struct cw_error err;

    if (cw_logreader_open(c, "12", 0, false, &r, &err) < 0)
        fail_msg("%s", err.text);
    return r;
}

static void read_all(struct cw_logreader *r, struct cw_buf *ret)
{
    struct cw_error err;
    bool eof = false;

    while (!eof)
        if (cw_logreader_read(r, 1000, ret, &eof, &err) < 0)
            fail_msg("%s", err.text);
}

static void check_log(struct instance *w, size_t from)
{
    struct cw_client *c = open_client(w);
    struct cw_logreader *r = open_reader(c);
    cw_autobuf struct cw_buf b = {0};

    if (from > 0)
        cw_logreader_seek_end(r, LOG_BYTES - from);
    read_all(r, &b);
    assert_int_equal(b.len, LOG_BYTES - from);
    assert_memory_equal(b.data, w->log + from, b.len);
    cw_logreader_close(r);
    cw_client_close(c);
}

static void whole_log_arrives_in_chunks(void **state)
{
    struct instance *w = *state;

    check_log(w, 0);
    assert_int_equal(w->n_tickets, 1);
}

static void tail_begins_where_it_was_asked(void **state)
{
    check_log(*state, LOG_BYTES - 100000);
}

static void expired_ticket_is_renewed(void **state)
{
    struct instance *w = *state;

    w->mood = EXPIRED_ONCE;
    check_log(w, 0);
    assert_int_equal(w->n_tickets, 2);
}

static void ticket_is_renewed_before_it_expires(void **state)
{
    struct instance *w = *state;

    w->ticket_life_ns = 20 * CW_NS_PER_S; /* less than the reader wants to have left */
    check_log(w, 0);
    assert_true(w->n_tickets > 3);
}

static void node_that_moved_is_asked_for_again(void **state)
{
    struct instance *w = *state;

    w->mood = ELSEWHERE;
    check_log(w, 0);
    assert_int_equal(w->n_tickets, 2);
}

static void job_that_has_not_started_is_waited_for(void **state)
{
    struct instance *w = *state;

    w->mood = NOT_YET;
    check_log(w, 0);
    /* 3 refused, 1 that names no file yet, and one more each time the node cannot do with that */
    assert_int_equal(w->n_tickets, 6);
}

static void job_that_has_not_started_is_told_without_a_wait(void **state)
{
    struct instance *w = *state;
    struct cw_client *c = open_client(w);
    struct cw_logreader *r;
    cw_autobuf struct cw_buf b = {0};
    struct cw_error err;
    bool eof = true;

    w->mood = NOT_YET;
    r = open_reader(c);
    assert_int_equal(cw_logreader_read(r, 0, &b, &eof, &err), -EAGAIN);
    assert_string_equal(err.text, "job 12 has not started yet");
    assert_int_equal(cw_logreader_read(r, 1, &b, &eof, &err), 0); /* in time, but nothing yet */
    assert_false(eof);
    assert_int_equal(b.len, 0);
    cw_logreader_close(r);
    cw_client_close(c);
}

#define T(name, up) cmocka_unit_test_setup_teardown(name, up, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(missing_configuration_is_told, setup),
        T(instance_that_never_started_is_told, setup),
        T(bad_timeouts_are_refused, setup),
        T(call_reaches_the_controller_as_the_caller, setup_started),
        T(timeout_of_the_environment_bounds_a_call, setup_started),
        cmocka_unit_test(exit_codes_are_the_documented_ones),
        T(whole_log_arrives_in_chunks, setup_started),
        T(tail_begins_where_it_was_asked, setup_started),
        T(expired_ticket_is_renewed, setup_started),
        T(ticket_is_renewed_before_it_expires, setup_started),
        T(node_that_moved_is_asked_for_again, setup_started),
        T(job_that_has_not_started_is_waited_for, setup_started),
        T(job_that_has_not_started_is_told_without_a_wait, setup_started),
    };

    return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
