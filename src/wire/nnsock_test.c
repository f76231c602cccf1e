/* Raw sockets: the traps of nanomsg that must stay shut. */
#include "config.h"

#include "wire/nnsock.h"

#include "base/mem.h"
#include "wire/frame.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
    char dir[64], path[300], url[320];
};

static void set_name(struct place *p, const char *name)
{
    (void)snprintf(p->path, sizeof(p->path), "%s/%s", p->dir, name);
    (void)snprintf(p->url, sizeof(p->url), "ipc://%s", p->path);
}

static int setup(void **state)
{
    struct place *p = cw_xcalloc(1, sizeof(*p));

    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/cw-nnsock-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    set_name(p, "s");
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    (void)unlink(p->path);
    (void)rmdir(p->dir);
    free(p);
    return 0;
}

static int listen_url(const char *url, struct cw_error *err)
{
    struct cw_nnsock *s = NULL;
    int r = cw_nnsock_listen(url, &s, err);

    cw_nnsock_close(s);
    return r;
}

static bool ready(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

static void bad_urls_are_refused_before_the_library_sees_them(void **state)
{
    static const struct {
        const char *url;
        int result;
    } cases[] = {
        {"", -EINVAL},           {"ipc:", -EINVAL},
        {"inproc://x", -EINVAL}, {"ipc://@x", -EINVAL},
        {"ipc://", -EINVAL},     {"ipc://relative", -EINVAL},
        {"ws://x", -EINVAL},     {"tcp://eth0;1.2.3.4:5", -EINVAL},
        {"tcp://", -EINVAL},     {"tcp://127.0.0.1:99999", -EINVAL},
    };
    struct cw_nnsock *s = NULL;

    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        assert_int_equal(listen_url(cases[i].url, NULL), cases[i].result);
        assert_int_equal(cw_nnsock_connect(cases[i].url, &s, NULL), cases[i].result);
    }
}

static void path_of_107_bytes_works_and_108_is_refused(void **state)
{
    struct place *p = *state;
    struct cw_nnsock *s = NULL;
    char name[128];

    memset(name, 'n', sizeof(name));
    name[107 - strlen(p->dir) - 1] = '\0';
    set_name(p, name);
    assert_int_equal(strlen(p->path), 107);
    assert_int_equal(listen_url(p->url, NULL), 0);
    (void)unlink(p->path);
    name[107 - strlen(p->dir) - 1] = 'n';
    name[108 - strlen(p->dir) - 1] = '\0';
    set_name(p, name);
    assert_int_equal(listen_url(p->url, NULL), -ENAMETOOLONG);
    assert_int_equal(cw_nnsock_connect(p->url, &s, NULL), -ENAMETOOLONG);
}

static void file_at_the_path_is_left_alone(void **state)
{
    struct place *p = *state;
    struct cw_error err;
    struct stat st;
    int fd = open(p->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, "dear", 4), 4);
    (void)close(fd);
    assert_int_equal(listen_url(p->url, &err), -EEXIST);
    assert_non_null(strstr(err.text, "not a socket"));
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_size, 4);
}

static void second_listener_is_refused_and_a_dead_socket_replaced(void **state)
{
    struct place *p = *state;
    struct cw_nnsock *s = NULL;
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(cw_nnsock_probe(p->path), -ENOENT);
    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%.100s", p->path);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    (void)close(fd); /* the file stays, nobody listens */
    assert_int_equal(cw_nnsock_probe(p->path), -ECONNREFUSED);
    assert_int_equal(cw_nnsock_listen(p->url, &s, NULL), 0);
    assert_int_equal(cw_nnsock_probe(p->path), 0);
    assert_int_equal(listen_url(p->url, NULL), -EADDRINUSE);
    cw_nnsock_close(s);
}

static void socket_is_its_owners_whatever_the_umask(void **state)
{
    struct place *p = *state;
    struct cw_nnsock *s = NULL;
    struct stat st;
    mode_t old = umask(022);

    assert_int_equal(cw_nnsock_listen(p->url, &s, NULL), 0);
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(umask(old), 022);
    cw_nnsock_close(s);
}

struct link {
    struct cw_nnsock *a, *b;
};
static struct link make_link(const char *url)
{
    struct link l = {NULL, NULL};

    assert_int_equal(cw_nnsock_listen(url, &l.a, NULL), 0);
    assert_int_equal(cw_nnsock_connect(url, &l.b, NULL), 0);
    assert_true(ready(cw_nnsock_send_fd(l.b), 5000));
    return l;
}

static void close_link(struct link *l)
{
    cw_nnsock_close(l->b);
    cw_nnsock_close(l->a);
}

static void route_of_a_message_leads_back(void **state)
{
    struct place *p = *state;
    struct link l = make_link(p->url);
    cw_autobuf struct cw_buf b = {0};
    struct cw_route route;

    assert_int_equal(cw_nnsock_recv(l.a, &route, &b), -EAGAIN);
    assert_int_equal(cw_nnsock_send(l.b, NULL, "ask", 3), 0);
    assert_true(ready(cw_nnsock_fd(l.a), 5000));
    assert_int_equal(cw_nnsock_recv(l.a, &route, &b), 0);
    assert_string_equal(cw_buf_str(&b), "ask");
    for (int i = 0; i < 3; i++) { /* any number of times */
        cw_buf_clear(&b);
        assert_int_equal(cw_nnsock_send(l.a, &route, "tell", 4), 0);
        assert_true(ready(cw_nnsock_fd(l.b), 5000));
        assert_int_equal(cw_nnsock_recv(l.b, NULL, &b), 0);
        assert_string_equal(cw_buf_str(&b), "tell");
    }
    assert_true(cw_nnsock_connected(l.b));
    assert_int_equal(cw_nnsock_established(l.b), 1);
    close_link(&l);
}

static void largest_frame_passes(void **state)
{
    struct place *p = *state;
    struct link l = make_link(p->url);
    cw_autofree char *big = cw_xcalloc(1, CW_FRAME_MAX);
    const size_t n = CW_FRAME_HEADER + CW_FRAME_CRED_MAX + CW_FRAME_BODY_MAX + CW_FRAME_SEAL;
    cw_autobuf struct cw_buf b = {0};
    struct cw_route route;

    assert_true(n + 8 <= CW_FRAME_MAX);
    assert_int_equal(cw_nnsock_send(l.b, NULL, big, n), 0);
    assert_true(ready(cw_nnsock_fd(l.a), 5000));
    assert_int_equal(cw_nnsock_recv(l.a, &route, &b), 0);
    assert_int_equal(b.len, n);
    close_link(&l);
}

static void connecting_side_says_when_nobody_is_there(void **state)
{
    struct place *p = *state;
    struct cw_nnsock *s = NULL;

    assert_int_equal(cw_nnsock_connect(p->url, &s, NULL), 0);
    assert_int_equal(cw_nnsock_send(s, NULL, "x", 1), -EAGAIN);
    assert_false(cw_nnsock_connected(s));
    cw_nnsock_close(s);
}

static void reconnect_keeps_the_descriptor(void **state)
{
    struct place *p = *state;
    struct link l = make_link(p->url);
    cw_autobuf struct cw_buf b = {0};
    struct cw_route route;
    int fd = cw_nnsock_fd(l.b);

    for (int i = 0; i < 20; i++) {
        assert_int_equal(cw_nnsock_reconnect(l.b), 0);
        while (cw_nnsock_established(l.b) < (uint64_t)i + 2)
            assert_true(ready(cw_nnsock_send_fd(l.b), 5000));
        assert_true(ready(cw_nnsock_send_fd(l.b), 5000));
        assert_int_equal(cw_nnsock_send(l.b, NULL, "x", 1), 0);
        cw_buf_clear(&b);
        assert_true(ready(cw_nnsock_fd(l.a), 5000));
        assert_int_equal(cw_nnsock_recv(l.a, &route, &b), 0);
    }
    assert_int_equal(cw_nnsock_fd(l.b), fd);
    close_link(&l);
}

/* A peer that speaks nanomsg's framing but not the request header: EAGAIN must not hide what
 * follows. */
static void malformed_messages_do_not_hide_good_ones(void **state)
{
    static const uint8_t hello[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0}; /* a REQ peer */
    static const uint8_t no_bottom[13] = {1, 0, 0, 0, 0, 0, 0,
                                          0, 4, 0, 0, 0, 7}; /* header word without top bit */
    static const uint8_t good[14] = {1, 0, 0, 0, 0, 0, 0, 0, 5, 0x80, 0, 0, 1, 'g'};
    struct place *p = *state;
    struct cw_nnsock *s = NULL;
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    cw_autobuf struct cw_buf b = {0};
    struct cw_route route;
    cw_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = -EAGAIN;

    assert_int_equal(cw_nnsock_listen(p->url, &s, NULL), 0);
    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%.100s", p->path);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(write(fd, hello, sizeof(hello)), sizeof(hello));
    for (int i = 0; i < 5; i++)
        assert_int_equal(write(fd, no_bottom, sizeof(no_bottom)), sizeof(no_bottom));
    assert_int_equal(write(fd, good, sizeof(good)), sizeof(good));
    while (r == -EAGAIN) {
        assert_true(ready(cw_nnsock_fd(s), 5000));
        r = cw_nnsock_recv(s, &route, &b);
    }
    assert_int_equal(r, 0);
    assert_string_equal(cw_buf_str(&b), "g");
    cw_nnsock_close(s);
}

static void announced_giant_does_not_kill_the_listener(void **state)
{
    static const uint8_t hello[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    static const uint8_t giant[9] = {1, 0x80, 0, 0, 0, 0, 0, 0, 0};
    struct place *p = *state;
    struct cw_nnsock *s = NULL;
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    cw_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint8_t back[16];
    ssize_t n;

    assert_int_equal(cw_nnsock_listen(p->url, &s, NULL), 0);
    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%.100s", p->path);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(write(fd, hello, sizeof(hello)), sizeof(hello));
    assert_int_equal(write(fd, giant, sizeof(giant)), sizeof(giant));
    do { /* its own header, then the end */
        assert_true(ready(fd, 5000));
        n = read(fd, back, sizeof(back));
    } while (n > 0);
    cw_nnsock_close(s);
}

/* The library's thread exists while a socket is open. With every signal blocked in this thread too,
 * one sent to the process stays pending: nobody else took it. */
static void library_thread_takes_no_signals(void **state)
{
    struct place *p = *state;
    struct link l = make_link(p->url);
    sigset_t usr1, old, pending;

    (void)sigemptyset(&usr1);
    (void)sigaddset(&usr1, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &usr1, &old);
    assert_int_equal(kill(getpid(), SIGUSR1), 0); /* its default action would end the process */
    (void)sigpending(&pending);
    assert_true(sigismember(&pending, SIGUSR1));
    assert_int_equal(sigwaitinfo(&usr1, NULL), SIGUSR1);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    close_link(&l);
}

static void descriptors_are_closed_on_exec(void **state)
{
    struct place *p = *state;
    struct link l = make_link(p->url);

    for (int fd = 3; fd < 64; fd++) {
        int flags = fcntl(fd, F_GETFD);

        if (flags >= 0 && fcntl(fd, F_GETFL) >= 0 &&
            (fd == cw_nnsock_fd(l.a) || fd == cw_nnsock_fd(l.b)))
            assert_true((flags & FD_CLOEXEC) != 0);
    }
    close_link(&l);
}

/* An IPv4 literal and nobody listening: with NN_IPV4ONLY 0 the library would abort at its second
 * try. */
static void connecting_to_a_dead_ipv4_address_does_not_abort(void **state)
{
    struct cw_nnsock *s = NULL;
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char url[64];

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)),
                     0); /* bound, not listening: refused */
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
    (void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", ntohs(sa.sin_port));
    assert_int_equal(cw_nnsock_connect(url, &s, NULL), 0);
    for (int i = 0; i < 100 && cw_nnsock_connect_errors(s) < 3; i++)
        (void)ready(cw_nnsock_send_fd(s), 100);
    assert_true(cw_nnsock_connect_errors(s) >= 3);
    cw_nnsock_close(s);
    (void)close(fd);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(bad_urls_are_refused_before_the_library_sees_them),
        T(path_of_107_bytes_works_and_108_is_refused),
        T(file_at_the_path_is_left_alone),
        T(second_listener_is_refused_and_a_dead_socket_replaced),
        T(socket_is_its_owners_whatever_the_umask),
        T(route_of_a_message_leads_back),
        T(largest_frame_passes),
        T(connecting_side_says_when_nobody_is_there),
        T(reconnect_keeps_the_descriptor),
        T(malformed_messages_do_not_hide_good_ones),
        T(announced_giant_does_not_kill_the_listener),
        T(library_thread_takes_no_signals),
        T(descriptors_are_closed_on_exec),
        T(connecting_to_a_dead_ipv4_address_does_not_abort),
    };

    return cmocka_run_group_tests_name("nnsock", tests, NULL, NULL);
}
