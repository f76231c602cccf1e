/* Datagrams of records between a node daemon and a shepherd; see packet.h. */
#include "shepherd/packet.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/list.h"
#include "base/mem.h"

#define MAGIC      0x4c535743u /* "CWSL" */
#define VERSION    1
#define FLAG_MEMFD 1u /* the records are in the first descriptor */

struct head {
    uint32_t magic;
    uint16_t version, flags;
    uint32_t bytes; /* of the records */
    uint32_t reserved;
};
struct record {
    uint16_t type, reserved;
    uint32_t bytes;
};

/* One datagram to be. */
struct parcel {
    struct cw_list link;
    struct cw_buf records;
    int fd; /* travels with it, -1 none */
};

struct cw_packets {
    int fd;
    struct cw_list out; /* parcels */
    size_t backlog;
    char *in; /* one datagram */
};

struct cw_packets *cw_packets_create(int fd)
{
    struct cw_packets *p = cw_xcalloc(1, sizeof *p);
    p->fd = fd;
    p->in = cw_xmalloc(sizeof(struct head) + CW_PACKET_INLINE_MAX);
    cw_list_init(&p->out);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    int size = 1 << 20; /* a busy peer must not stop us at the default of some 200 KiB */
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return p;
}

static void parcel_destroy(struct cw_packets *p, struct parcel *c)
{
    cw_list_remove(&c->link);
    p->backlog -= c->records.len;
    cw_buf_fini(&c->records);
    if (c->fd >= 0)
        close(c->fd);
    free(c);
}

void cw_packets_destroy(struct cw_packets *p)
{
    if (p == NULL)
        return;
    cw_list_each_safe(l, &p->out)
        parcel_destroy(p, cw_list_entry(l, struct parcel, link));
    close(p->fd);
    free(p->in);
    free(p);
}

int cw_packets_fd(const struct cw_packets *p)
{
    return p->fd;
}

size_t cw_packets_backlog(const struct cw_packets *p)
{
    return p->backlog;
}

/* The last parcel when n more bytes fit into it, else a new one. */
static struct parcel *parcel_for(struct cw_packets *p, size_t n, bool alone)
{
    if (!alone && !cw_list_empty(&p->out)) {
        struct parcel *last = cw_list_entry(p->out.prev, struct parcel, link);
        if (last->fd < 0 && last->records.len + n <= CW_PACKET_INLINE_MAX)
            return last;
    }
    struct parcel *c = cw_xcalloc(1, sizeof *c);
    c->fd = -1;
    cw_list_add_tail(&p->out, &c->link);
    return c;
}

static int add(struct cw_packets *p, enum cw_packet_type type, const void *body, size_t n, int fd)
{
    if (n > CW_PACKET_BODY_MAX)
        return -EMSGSIZE;
    struct record r = { .type = (uint16_t)type, .bytes = (uint32_t)n };
    if (p->backlog + n + sizeof r > CW_PACKET_BACKLOG_MAX)
        return -ENOBUFS;
    struct parcel *c = parcel_for(p, n + sizeof r, fd >= 0);
    cw_buf_add(&c->records, &r, sizeof r);
    if (n > 0)
        cw_buf_add(&c->records, body, n);
    c->fd = fd;
    p->backlog += n + sizeof r;
    return 0;
}

int cw_packets_add(struct cw_packets *p, enum cw_packet_type type, const void *body, size_t n)
{
    return add(p, type, body, n, -1);
}

int cw_packets_add_fd(struct cw_packets *p, enum cw_packet_type type, const void *body, size_t n,
                      int fd)
{
    int rc = add(p, type, body, n, fd);
    if (rc < 0)
        close(fd);
    return rc;
}

static int send_one(int sock, const struct head *h, const void *body, size_t n, int fd)
{
    struct iovec iov[2] = { { (void *)(uintptr_t)h, sizeof *h }, { (void *)(uintptr_t)body, n } };
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl;
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = n > 0 ? 2 : 1 };
    if (fd >= 0) {
        memset(&ctl, 0, sizeof ctl);
        m.msg_control = &ctl;
        m.msg_controllen = sizeof ctl.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t k;
    do
        k = sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (k < 0 && errno == EINTR);
    if (k < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    return 0;
}

/* Moves large records into a memfd, which then travels in their place. */
static int parcel_send(int sock, struct parcel *c)
{
    struct head h = { .magic = MAGIC, .version = VERSION, .bytes = (uint32_t)c->records.len };
    if (c->records.len <= CW_PACKET_INLINE_MAX)
        return send_one(sock, &h, c->records.data, c->records.len, c->fd);
    if (c->fd >= 0)
        return -EMSGSIZE; /* records with a descriptor are small by contract */
    cw_autoclose int fd = memfd_create("crun-packet", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = cw_file_write_all(fd, c->records.data, c->records.len);
    if (rc < 0)
        return rc;
    h.flags = FLAG_MEMFD;
    return send_one(sock, &h, NULL, 0, fd);
}

int cw_packets_flush(struct cw_packets *p)
{
    while (!cw_list_empty(&p->out)) {
        struct parcel *c = cw_list_entry(p->out.next, struct parcel, link);
        int rc = parcel_send(p->fd, c);
        if (rc < 0)
            return rc;
        parcel_destroy(p, c);
    }
    return 0;
}

/* Records of one datagram, in order; a descriptor goes to the first. */
static int deliver(const char *s, size_t n, int fd, cw_packet_fn fn, void *arg)
{
    int rc = 0;
    while (n > 0) {
        struct record r;
        if (n < sizeof r) {
            rc = -EBADMSG;
            break;
        }
        memcpy(&r, s, sizeof r);
        s += sizeof r;
        n -= sizeof r;
        if (r.bytes > n || r.bytes > CW_PACKET_BODY_MAX) {
            rc = -EBADMSG;
            break;
        }
        fn((enum cw_packet_type)r.type, s, r.bytes, cw_steal_fd(fd), arg);
        s += r.bytes;
        n -= r.bytes;
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

static int deliver_memfd(int fd, size_t n, cw_packet_fn fn, void *arg)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < (off_t)n || n == 0)
        return -EBADMSG;
    void *m = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (m == MAP_FAILED)
        return -errno;
    int rc = deliver(m, n, -1, fn, arg);
    munmap(m, n);
    return rc;
}

static int first_fd(struct msghdr *m)
{
    int fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

int cw_packets_recv(struct cw_packets *p, cw_packet_fn fn, void *arg)
{
    struct iovec iov = { p->in, sizeof(struct head) + CW_PACKET_INLINE_MAX };
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl;
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = sizeof ctl.bytes
    };
    ssize_t k;
    do
        k = recvmsg(p->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (k < 0 && errno == EINTR);
    if (k < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? -EAGAIN : -EPIPE;
    cw_autoclose int fd = first_fd(&m);
    if (k == 0)
        return -EPIPE;
    struct head h;
    if ((size_t)k < sizeof h || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
        return -EBADMSG;
    memcpy(&h, p->in, sizeof h);
    if (h.magic != MAGIC || h.version != VERSION)
        return -EBADMSG;
    if ((h.flags & FLAG_MEMFD) != 0)
        return deliver_memfd(fd, h.bytes, fn, arg);
    if (h.bytes != (size_t)k - sizeof h)
        return -EBADMSG;
    return deliver(p->in + sizeof h, h.bytes, cw_steal_fd(fd), fn, arg);
}

/* sun_path holds 107 bytes; through a directory descriptor any directory will do. */
static int address(const char *dir, const char *name, struct sockaddr_un *ret, int *ret_dirfd,
                   struct cw_error *err)
{
    cw_autoclose int d = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (d < 0)
        return cw_fail_errno(err, -errno, "%s", dir);
    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    int n = snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", d, name);
    if (n < 0 || (size_t)n >= sizeof ret->sun_path)
        return cw_fail(err, -ENAMETOOLONG, "%s/%s: the name is too long for a socket", dir, name);
    *ret_dirfd = cw_steal_fd(d);
    return 0;
}

static int seqpacket(int *ret, struct cw_error *err)
{
    *ret = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*ret < 0)
        return cw_fail_errno(err, -errno, "socket");
    return 0;
}

int cw_packet_listen(const char *dir, const char *name, int *ret_fd, struct cw_error *err)
{
    struct sockaddr_un a;
    cw_autoclose int d = -1, fd = -1;
    int rc = address(dir, name, &a, &d, err);
    if (rc < 0 || (rc = seqpacket(&fd, err)) < 0)
        return rc;
    unlinkat(d, name, 0);
    mode_t old = umask(0077);
    rc = bind(fd, (const struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 8) < 0 ? -errno : 0;
    umask(old);
    if (rc < 0)
        return cw_fail_errno(err, rc, "listen on %s/%s", dir, name);
    *ret_fd = cw_steal_fd(fd);
    return 0;
}

int cw_packet_connect(const char *dir, const char *name, int *ret_fd, struct cw_error *err)
{
    struct sockaddr_un a;
    cw_autoclose int d = -1, fd = -1;
    int rc = address(dir, name, &a, &d, err);
    if (rc < 0 || (rc = seqpacket(&fd, err)) < 0)
        return rc;
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) < 0)
        return cw_fail_errno(err, -errno, "connect to %s/%s", dir, name);
    *ret_fd = cw_steal_fd(fd);
    return 0;
}
