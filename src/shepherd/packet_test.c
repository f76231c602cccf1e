/* Records over a socket pair: batches, large ones, descriptors, a peer that does not read, garbage.
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "shepherd/packet.h"

static struct cw_packets *a, *b;
static struct {
    unsigned n;
    size_t bytes;
    enum cw_packet_type last_type;
    int fd;
    unsigned char sum;
} seen;

static int setup(void **state)
{
    int sv[2];
    (void)state;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return -1;
    a = cw_packets_create(sv[0]);
    b = cw_packets_create(sv[1]);
    memset(&seen, 0, sizeof seen);
    seen.fd = -1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cw_packets_destroy(a);
    cw_packets_destroy(b);
    if (seen.fd >= 0)
        close(seen.fd);
    return 0;
}

static void on_packet(enum cw_packet_type type, const void *body, size_t n, int fd, void *arg)
{
    (void)arg;
    seen.n++;
    seen.bytes += n;
    seen.last_type = type;
    for (size_t i = 0; i < n; i++)
        seen.sum = (unsigned char)(seen.sum + ((const unsigned char *)body)[i]);
    if (fd >= 0)
        seen.fd = fd;
}

static void many_small_records_share_one_datagram(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(cw_packets_add(a, CW_PACKET_KILL, "0123456789", 10), 0);
    assert_int_equal(cw_packets_flush(a), 0);
    assert_int_equal(cw_packets_backlog(a), 0);
    assert_int_equal(cw_packets_recv(b, on_packet, NULL), 0);
    assert_int_equal(seen.n, 100);
    assert_int_equal(seen.bytes, 1000);
    assert_int_equal(cw_packets_recv(b, on_packet, NULL), -EAGAIN);
}

static void a_large_record_travels_in_a_memfd_and_keeps_its_place(void **state)
{
    (void)state;
    size_t n = 800000;
    char *big = cw_xcalloc(1, n);
    big[n - 1] = 7;
    assert_int_equal(cw_packets_add(a, CW_PACKET_QUIT, NULL, 0), 0);
    assert_int_equal(cw_packets_add(a, CW_PACKET_START, big, n), 0);
    assert_int_equal(cw_packets_add(a, CW_PACKET_FORGET, "x", 1), 0);
    assert_int_equal(cw_packets_flush(a), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cw_packets_recv(b, on_packet, NULL), 0);
    assert_int_equal(seen.n, 3);
    assert_int_equal(seen.bytes, n + 1);
    assert_int_equal(seen.last_type, CW_PACKET_FORGET);
    assert_int_equal(seen.sum, (unsigned char)(7 + 'x'));
    free(big);
}

static void a_record_that_is_too_large_is_refused(void **state)
{
    (void)state;
    assert_int_equal(cw_packets_add(a, CW_PACKET_START, "", CW_PACKET_BODY_MAX + 1), -EMSGSIZE);
    assert_int_equal(cw_packets_backlog(a), 0);
}

static void a_descriptor_arrives_with_its_record_and_close_on_exec(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(cw_packets_add(a, CW_PACKET_END, "e", 1), 0);
    assert_int_equal(cw_packets_add_fd(a, CW_PACKET_OPENED, "o", 1, fd), 0);
    assert_int_equal(cw_packets_flush(a), 0);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* it was taken */
    assert_int_equal(cw_packets_recv(b, on_packet, NULL), 0);
    assert_int_equal(seen.fd, -1);
    assert_int_equal(cw_packets_recv(b, on_packet, NULL), 0);
    assert_true(seen.fd >= 0);
    assert_int_equal(fcntl(seen.fd, F_GETFD), FD_CLOEXEC);
}

static void a_peer_that_does_not_read_stops_nobody_and_loses_nothing(void **state)
{
    (void)state;
    char body[1000] = { 0 };
    enum { N = 5000 };
    for (int i = 0; i < N; i++)
        assert_int_equal(cw_packets_add(a, CW_PACKET_END, body, sizeof body), 0);
    assert_int_equal(cw_packets_flush(a), -EAGAIN);
    assert_true(cw_packets_backlog(a) > 0);
    while (seen.n < N) {
        int rc = cw_packets_recv(b, on_packet, NULL);
        assert_true(rc == 0 || rc == -EAGAIN);
        cw_packets_flush(a);
    }
    assert_int_equal(cw_packets_backlog(a), 0);
}

static void what_was_sent_before_the_peer_died_is_still_read(void **state)
{
    (void)state;
    assert_int_equal(cw_packets_add(a, CW_PACKET_START, "s", 1), 0);
    assert_int_equal(cw_packets_flush(a), 0);
    cw_packets_destroy(a);
    a = NULL;
    assert_int_equal(cw_packets_recv(b, on_packet, NULL), 0);
    assert_int_equal(seen.n, 1);
    assert_int_equal(cw_packets_recv(b, on_packet, NULL), -EPIPE);
    assert_int_equal(cw_packets_add(b, CW_PACKET_END, "e", 1), 0);
    assert_int_equal(cw_packets_flush(b), -EPIPE);
}

static void garbage_is_told_apart_from_records(void **state)
{
    (void)state;
    static const char *const bad[] = { "x", "CWSLxxxxxxxxxxxxxxxxxxxxxxxx",
                                       "\x43\x57\x53\x4c\x01\0\0\0\xff\xff\xff\xff\0\0\0\0" };
    static const size_t len[] = { 1, 28, 16 };
    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++) {
        assert_int_equal(send(cw_packets_fd(a), bad[i], len[i], MSG_NOSIGNAL), (ssize_t)len[i]);
        assert_int_equal(cw_packets_recv(b, on_packet, NULL), -EBADMSG);
    }
    assert_int_equal(seen.n, 0);
}

static void a_socket_may_lie_under_a_path_longer_than_sun_path(void **state)
{
    (void)state;
    char dir[512] = "", *p = dir;
    const char *tmp = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    int fd, client;
    p += snprintf(p, 256, "%s/crun-packet-test.XXXXXX", tmp);
    assert_non_null(mkdtemp(dir));
    size_t base = (size_t)(p - dir);
    memset(p, 'd', 150);
    p[0] = '/';
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(cw_packet_listen(dir, "x.sock", &fd, NULL), 0);
    assert_int_equal(cw_packet_connect(dir, "x.sock", &client, NULL), 0);
    close(client);
    close(fd);
    struct cw_error err;
    assert_int_equal(cw_packet_connect(dir, "x.sock", &client, &err), -ECONNREFUSED);
    assert_non_null(strstr(err.text, "x.sock: Connection refused"));
    cw_autofree char *sock = cw_xasprintf("%s/x.sock", dir);
    unlink(sock);
    rmdir(dir);
    dir[base] = '\0';
    rmdir(dir);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(many_small_records_share_one_datagram),
        T(a_large_record_travels_in_a_memfd_and_keeps_its_place),
        T(a_record_that_is_too_large_is_refused),
        T(a_descriptor_arrives_with_its_record_and_close_on_exec),
        T(a_peer_that_does_not_read_stops_nobody_and_loses_nothing),
        T(what_was_sent_before_the_peer_died_is_still_read),
        T(garbage_is_told_apart_from_records),
        T(a_socket_may_lie_under_a_path_longer_than_sun_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
