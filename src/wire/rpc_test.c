/* Requests over real ipc and tcp sockets: the blocking client against a server in a thread. */
#include "config.h"

#include "wire/rpcfixture.h"

#include "base/clock.h"

#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int64_t ms(void)
{
    return cw_clock_mono_ns() / CW_NS_PER_MS;
}

static void ipc_request_is_answered_with_the_identity(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct cw_rpc_client *c = cw_rpcfixture_client(s, NULL);
    char version[32];

    cw_rpcfixture_start(s);
    assert_int_equal(cw_rpcfixture_ping(c, 5000, version, NULL), 0);
    assert_string_equal(version, "uid 1234");
    assert_int_equal(cw_rpcfixture_ping(c, 5000, version, NULL), 0);
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

static void over_tcp(struct cw_rpcfixture *s, const char *host, int family)
{
    struct cw_rpc_client *c;
    char version[32];
    unsigned port = free_port(family);

    if (port == 0)
        skip(); /* no such address family here */
    (void)snprintf(s->url, sizeof(s->url), "tcp://%s:%u", host, port);
    c = cw_rpcfixture_client(s, NULL);
    cw_rpcfixture_start(s);
    assert_int_equal(cw_rpcfixture_ping(c, 5000, version, NULL), 0);
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
    struct cw_rpcfixture *s = arg;
    struct pollfd none = {.fd = -1};

    (void)poll(&none, 1, 400); /* the controller takes its time to start */
    cw_rpcfixture_start(s);
    return NULL;
}

static void client_waits_for_a_server_that_is_starting(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct cw_rpc_client *c = cw_rpcfixture_client(s, NULL);
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, start_later, s), 0);
    assert_int_equal(cw_rpcfixture_ping(c, 10000, NULL, NULL), 0);
    (void)pthread_join(t, NULL);
    cw_rpc_client_close(c);
}

static void *restart_later(void *arg)
{
    struct cw_rpcfixture *s = arg;
    struct pollfd none = {.fd = -1};

    (void)poll(&none, 1, 300);
    cw_rpcfixture_stop(s);
    s->manner = ANSWER;
    cw_rpcfixture_start(s);
    return NULL;
}

static void server_restart_between_tries_is_survived(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct cw_rpc_client *c = cw_rpcfixture_client(s, NULL);
    pthread_t t;
    int64_t from;

    s->manner = HOLD;
    cw_rpcfixture_start(s);
    assert_int_equal(pthread_create(&t, NULL, restart_later, s), 0);
    from = ms();
    assert_int_equal(cw_rpcfixture_ping(c, 10000, NULL, NULL), 0);
    assert_true(ms() - from < 2000); /* the lost connection is seen, not waited out */
    assert_int_equal(s->pings, 2);
    (void)pthread_join(t, NULL);
    cw_rpc_client_close(c);
}

static void client_outlives_a_restart_between_calls(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct cw_rpc_client *c = cw_rpcfixture_client(s, NULL);

    cw_rpcfixture_start(s);
    assert_int_equal(cw_rpcfixture_ping(c, 5000, NULL, NULL), 0);
    cw_rpcfixture_stop(s);
    cw_rpcfixture_start(s);
    assert_int_equal(cw_rpcfixture_ping(c, 8000, NULL, NULL), 0);
    cw_rpc_client_close(c);
}

static void absent_server_is_named_and_not_waited_for(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct cw_rpc_client *c = cw_rpcfixture_client(s, NULL);
    struct cw_error err;
    int64_t from = ms();

    assert_int_equal(cw_rpcfixture_ping(c, 700, NULL, &err), -EHOSTUNREACH);
    assert_non_null(strstr(err.text, "is not running"));
    assert_non_null(strstr(err.text, "nothing was sent"));
    assert_true(ms() - from < 1500);
    cw_rpc_client_close(c);
}

static void absent_tcp_server_is_named(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct cw_rpc_client *c;
    struct cw_error err;

    (void)snprintf(s->url, sizeof(s->url), "tcp://127.0.0.1:%u", free_port(AF_INET));
    c = cw_rpcfixture_client(s, NULL);
    assert_int_equal(cw_rpcfixture_ping(c, 700, NULL, &err), -EHOSTUNREACH);
    assert_non_null(strstr(err.text, "is not running"));
    cw_rpc_client_close(c);
}

static void silence_ends_as_outcome_unknown(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct cw_rpc_client *c = cw_rpcfixture_client(s, NULL);
    struct cw_error err;

    s->manner = LOSE;
    cw_rpcfixture_start(s);
    assert_int_equal(cw_rpcfixture_ping(c, 300, NULL, &err), -EHOSTUNREACH);
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
    struct cw_rpcfixture *s = *state;
    struct cw_rpc_client *c = cw_rpcfixture_client(s, NULL);
    struct sigaction sa = {.sa_handler = on_alarm};
    int64_t from = ms();

    s->manner = HOLD;
    cw_rpcfixture_start(s);
    cw_rpc_client_set_interrupt(c, &interrupt_flag);
    (void)sigaction(SIGALRM, &sa, NULL);
    (void)ualarm(150000, 0);
    assert_int_equal(cw_rpcfixture_ping(c, 30000, NULL, NULL), -EINTR);
    assert_true(ms() - from < 1500);
    cw_rpc_client_close(c);
}

static void forged_credential_is_refused(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct cw_rpc_client *c = cw_rpcfixture_client(s, s);
    struct cw_error err;

    cw_rpcfixture_start(s);
    assert_int_equal(cw_rpcfixture_ping(c, 5000, NULL, &err), -EACCES);
    assert_string_equal(err.text, "credential: forged");
    assert_int_equal(s->pings, 0);
    cw_rpc_client_close(c);
}

static void other_public_key_is_refused(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct cw_keypair other;
    struct cw_rpc_client *c = NULL;
    struct cw_error err;

    cw_keypair_make(&other);
    cw_rpcfixture_start(s);
    assert_int_equal(
        cw_rpc_client_open(s->url, other.pub, cw_rpcfixture_credential, NULL, &c, NULL), 0);
    assert_int_equal(cw_rpcfixture_ping(c, 5000, NULL, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "another public key"));
    cw_rpc_client_close(c);
}

static void answer_too_large_is_a_clear_failure(void **state)
{
    struct cw_rpcfixture *s = *state;
    struct cw_rpc_client *c = cw_rpcfixture_client(s, NULL);
    struct cw_error err;

    s->manner = BIG;
    cw_rpcfixture_start(s);
    assert_int_equal(cw_rpcfixture_ping(c, 5000, NULL, &err), -EMSGSIZE);
    assert_non_null(strstr(err.text, "ask for less"));
    cw_rpc_client_close(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, cw_rpcfixture_setup, cw_rpcfixture_teardown)
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
    };

    return cmocka_run_group_tests_name("rpc", tests, NULL, NULL);
}
