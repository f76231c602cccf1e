/* One raw nanomsg socket. Owns every workaround for the library (LIBRARIES facts are in the
 * comments); nothing else in the tree includes <nanomsg/...>. nn_term is never called: it would
 * close the sockets of the whole process. Test: nnsock_test.c. */
#include "config.h"

#include "wire/nnsock.h"

#include "base/mem.h"
#include "wire/frame.h"

#include <arpa/inet.h>
#include <nanomsg/ipc.h>
#include <nanomsg/nn.h>
#include <nanomsg/reqrep.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define IPC          "ipc://"
#define BUFFER_BYTES (256 * 1024)
#define RECONNECT_MAX_TCP_MS                                                                       \
    8000 /* without a back-off 2,000 nodes burn a core while the controller is down */
#define RECONNECT_MAX_IPC_MS 500

struct cw_nnsock {
    int sock, endpoint;
    int recv_fd;
    bool listening;
    char url[NN_SOCKADDR_MAX + 1];
};

/* nanomsg invents errno values of its own for what should not happen to us. */
static int nn_code(void)
{
    int e = nn_errno();

    return e > 0 && e < NN_HAUSNUMERO ? -e : -EIO;
}

const char *cw_nnsock_ipc_path(const char *url)
{
    return strncmp(url, IPC, strlen(IPC)) == 0 ? url + strlen(IPC) : NULL;
}

/* nanomsg asserts on an ipc path that does not fit sun_path, whatever the length of the URL. */
static int check_url(const char *url, struct cw_error *err)
{
    const char *path = cw_nnsock_ipc_path(url);

    if (path == NULL && strncmp(url, "tcp://", 6) != 0)
        return cw_fail(err, -EINVAL, "socket %s: only ipc:// and tcp:// are known", url);
    if (strlen(url) >= NN_SOCKADDR_MAX)
        return cw_fail(err, -ENAMETOOLONG, "socket %s: longer than %d bytes", url,
                       NN_SOCKADDR_MAX - 1);
    if (path == NULL && strchr(url, ';') != NULL)
        return cw_fail(err, -EINVAL, "socket %s: a local address is not taken here", url);
    if (path == NULL)
        return 0;
    if (path[0] != '/')
        return cw_fail(err, -EINVAL, "socket %s: the path must begin with /", url);
    if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return cw_fail(err, -ENAMETOOLONG,
                       "socket %s: a path longer than %zu bytes does not fit a unix socket", url,
                       sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
    return 0;
}

/* The connecting end binds to the wildcard address of the family that NN_IPV4ONLY names. When that
 * is not the family of the peer the bind fails, and the next try runs into an assert of the
 * library; so an IPv4 literal needs 1, all else 0 (names then resolve to mapped addresses), and a
 * kernel without IPv6 1. */
static int ipv4only(const char *url, bool listening)
{
    struct in_addr v4;
    char host[NN_SOCKADDR_MAX];
    const char *start = url + strlen("tcp://"), *end = strrchr(url, ':');
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return 1;
    (void)close(fd);
    if (listening || end <= start)
        return 0;
    (void)snprintf(host, sizeof(host), "%.*s", (int)(end - start), start);
    return inet_pton(AF_INET, host, &v4) == 1;
}

static int set_option(int sock, int level, int option, int value)
{
    return nn_setsockopt(sock, level, option, &value, sizeof(value)) < 0 ? nn_code() : 0;
}

static int jitter_ms(void)
{
    uint8_t b = 0;

    (void)getrandom(&b, 1, GRND_NONBLOCK);
    return b * 100 / 255;
}

/* nanomsg's worker thread inherits the signal mask of whoever opens the first socket; it must never
 * run a handler or swallow a signal that a daemon waits for. */
static int open_raw(int protocol)
{
    sigset_t all, old;
    int sock;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    sock = nn_socket(AF_SP_RAW, protocol);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return sock < 0 ? nn_code() : sock;
}

static int configure(int sock, const char *url, bool listening)
{
    bool ipc = cw_nnsock_ipc_path(url) != NULL;
    int ivl = ipc ? 20 + jitter_ms() / 5 : 100 + jitter_ms();
    int ivl_max = ipc ? RECONNECT_MAX_IPC_MS : RECONNECT_MAX_TCP_MS;
    int r = 0;

    r = r < 0 ? r : set_option(sock, NN_SOL_SOCKET, NN_SNDBUF, BUFFER_BYTES);
    r = r < 0 ? r : set_option(sock, NN_SOL_SOCKET, NN_RCVBUF, BUFFER_BYTES);
    /* Never -1: a header announcing 2^63 bytes would abort the process. */
    r = r < 0 ? r : set_option(sock, NN_SOL_SOCKET, NN_RCVMAXSIZE, (int)CW_FRAME_MAX);
    if (!ipc)
        r = r < 0 ? r : set_option(sock, NN_SOL_SOCKET, NN_IPV4ONLY, ipv4only(url, listening));
    if (listening)
        return r < 0 ? r : set_option(sock, NN_SOL_SOCKET, NN_MAXTTL, 1);
    r = r < 0 ? r : set_option(sock, NN_SOL_SOCKET, NN_RECONNECT_IVL, ivl);
    return r < 0 ? r : set_option(sock, NN_SOL_SOCKET, NN_RECONNECT_IVL_MAX, ivl_max);
}

static int get_fd(int sock, int option)
{
    int fd = -1;
    size_t n = sizeof(fd);

    return nn_getsockopt(sock, NN_SOL_SOCKET, option, &fd, &n) < 0 ? nn_code() : fd;
}

static int create(const char *url, bool listening, struct cw_nnsock **ret, struct cw_error *err)
{
    struct cw_nnsock *s;
    int sock, r = check_url(url, err);

    if (r < 0)
        return r;
    sock = open_raw(listening ? NN_REP : NN_REQ);
    if (sock < 0)
        return cw_fail_errno(err, sock, "socket %s: open", url);
    r = configure(sock, url, listening);
    if (r == 0)
        r = get_fd(sock, NN_RCVFD);
    if (r < 0) {
        (void)nn_close(sock);
        return cw_fail_errno(err, r, "socket %s: set up", url);
    }
    s = cw_xcalloc(1, sizeof(*s));
    s->sock = sock;
    s->endpoint = -1;
    s->recv_fd = r;
    s->listening = listening;
    (void)snprintf(s->url, sizeof(s->url), "%s", url);
    *ret = s;
    return 0;
}

int cw_nnsock_probe(const char *ipc_path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    cw_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    if (strlen(ipc_path) >= sizeof(sa.sun_path))
        return -ENAMETOOLONG;
    memcpy(sa.sun_path, ipc_path, strlen(ipc_path) + 1);
    if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 ||
        errno == EAGAIN) /* its backlog is full */
        return 0;
    return -errno;
}

/* nanomsg removes whatever lies at the path of an ipc bind, so only a socket may lie there, and one
 * that nobody uses: its own check for that leaks memory. */
static int check_bind_path(const char *path, struct cw_error *err)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : cw_fail_errno(err, -errno, "socket %s: stat", path);
    if (!S_ISSOCK(st.st_mode))
        return cw_fail(err, -EEXIST,
                       "socket %s: something that is not a socket lies there; it is left alone",
                       path);
    if (cw_nnsock_probe(path) == 0)
        return cw_fail(err, -EADDRINUSE, "socket %s: somebody listens there already", path);
    return 0;
}

static int bind_ipc(struct cw_nnsock *s, const char *path, struct cw_error *err)
{
    mode_t old;
    int r = check_bind_path(path, err);

    if (r < 0)
        return r;
    old = umask(0177);
    s->endpoint = nn_bind(s->sock, s->url);
    r = s->endpoint < 0 ? nn_code() : 0;
    (void)umask(old);
    if (r < 0)
        return cw_fail_errno(err, r, "socket %s: bind", s->url);
    /* The owner's (and root's) only: nanomsg 1.1.5 asserts on the first byte of an ipc message, so that
     * whoever may connect could stop us. Over tcp it has no such byte. */
    return chmod(path, 0600) < 0 ? cw_fail_errno(err, -errno, "socket %s: chmod", path) : 0;
}

int cw_nnsock_listen(const char *url, struct cw_nnsock **ret, struct cw_error *err)
{
    struct cw_nnsock *s = NULL;
    const char *path = cw_nnsock_ipc_path(url);
    int r = create(url, true, &s, err);

    if (r < 0)
        return r;
    if (path != NULL) {
        r = bind_ipc(s, path, err);
    } else {
        s->endpoint = nn_bind(s->sock, url);
        r = s->endpoint < 0 ? cw_fail_errno(err, nn_code(), "socket %s: bind", url) : 0;
    }
    if (r < 0) {
        cw_nnsock_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

int cw_nnsock_connect(const char *url, struct cw_nnsock **ret, struct cw_error *err)
{
    struct cw_nnsock *s = NULL;
    int r = create(url, false, &s, err);

    if (r < 0)
        return r;
    s->endpoint = nn_connect(s->sock, url);
    if (s->endpoint < 0) {
        r = cw_fail_errno(err, nn_code(), "socket %s: connect", url);
        cw_nnsock_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

void cw_nnsock_close(struct cw_nnsock *s)
{
    if (s == NULL)
        return;
    while (nn_close(s->sock) < 0 && nn_errno() == EINTR)
        ;
    free(s);
}

int cw_nnsock_fd(const struct cw_nnsock *s)
{
    return s->recv_fd;
}

int cw_nnsock_send_fd(const struct cw_nnsock *s)
{
    return get_fd(s->sock, NN_SNDFD);
}

uint64_t cw_nnsock_established(const struct cw_nnsock *s)
{
    return nn_get_statistic(s->sock, NN_STAT_ESTABLISHED_CONNECTIONS);
}

uint64_t cw_nnsock_connect_errors(const struct cw_nnsock *s)
{
    return nn_get_statistic(s->sock, NN_STAT_CONNECT_ERRORS);
}

bool cw_nnsock_connected(const struct cw_nnsock *s)
{
    return nn_get_statistic(s->sock, NN_STAT_CURRENT_CONNECTIONS) > 0;
}

/* Room for one SP header property: the header of the control message, a size_t, up to 8 bytes. */
struct sp_header {
    struct nn_cmsghdr h;
    size_t len;
    uint8_t bytes[8];
};

/* The route is the connection's key and the request word with its top bit set, nothing longer: we
 * are never behind a nanomsg device. */
static bool take_route(const struct sp_header *sp, struct cw_route *ret)
{
    if (sp->h.cmsg_level != PROTO_SP || sp->h.cmsg_type != SP_HDR || sp->len != sizeof(ret->bytes))
        return false;
    memcpy(ret->bytes, sp->bytes, sizeof(ret->bytes));
    return true;
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

int cw_nnsock_recv(struct cw_nnsock *s, struct cw_route *ret_route, struct cw_buf *ret)
{
    /* A malformed message shows as EAGAIN although more are queued: believe the descriptor. */
    for (int malformed = 0; malformed < 256; malformed++) {
        struct sp_header sp = {.len = 0};
        void *body = NULL;
        struct nn_iovec iov = {.iov_base = &body, .iov_len = NN_MSG};
        struct nn_msghdr h = {
            .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &sp, .msg_controllen = sizeof(sp)};
        int n = nn_recvmsg(s->sock, &h, NN_DONTWAIT);

        if (n < 0 && nn_errno() == EINTR)
            continue;
        if (n < 0 && nn_errno() != EAGAIN)
            return nn_code();
        if (n < 0 && !readable(s->recv_fd))
            return -EAGAIN;
        if (n < 0)
            continue;
        if (s->listening && (ret_route == NULL || !take_route(&sp, ret_route))) {
            (void)nn_freemsg(body);
            continue;
        }
        cw_buf_add(ret, body, (size_t)n);
        (void)nn_freemsg(body);
        return 0;
    }
    return -EAGAIN;
}

int cw_nnsock_send(struct cw_nnsock *s, const struct cw_route *route, const void *p, size_t n)
{
    static const uint8_t request_word[4] = {0x80, 0, 0, 1};
    struct sp_header sp = {.len = s->listening ? sizeof(route->bytes) : sizeof(request_word)};
    void *data = nn_allocmsg(n, 0);
    struct nn_iovec iov = {.iov_base = &data, .iov_len = NN_MSG};
    struct nn_msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &sp};
    int r;

    if (data == NULL)
        return -ENOMEM;
    memcpy(data, p, n);
    memcpy(sp.bytes, s->listening ? route->bytes : request_word, sp.len);
    sp.h.cmsg_level = PROTO_SP;
    sp.h.cmsg_type = SP_HDR;
    sp.h.cmsg_len = NN_CMSG_LEN(sizeof(size_t) + sp.len);
    h.msg_controllen = NN_CMSG_SPACE(sizeof(size_t) + sp.len);
    do {
        r = nn_sendmsg(s->sock, &h, NN_DONTWAIT);
    } while (r < 0 && nn_errno() == EINTR);
    if (r < 0) {
        r = nn_code();
        (void)nn_freemsg(data);
        return r;
    }
    return 0;
}

int cw_nnsock_reconnect(struct cw_nnsock *s)
{
    if (s->endpoint >= 0)
        (void)nn_shutdown(s->sock, s->endpoint);
    s->endpoint = nn_connect(s->sock, s->url);
    return s->endpoint < 0 ? nn_code() : 0;
}
