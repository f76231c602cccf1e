/* doorkeeper.c: one packet in, one packet out, never blocking. A guest that says nothing is shown
 * out after GUEST_MS. Tested by the component test and testsuite/t6000-users.t. */
#include "ctld/doorkeeper.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "plug/plug.h"
#include "wire/door.h"

#define GUEST_MS 5000u

struct guest {
    struct cw_list item;
    struct cw_door *door;
    struct cw_loop_io *io;
    struct cw_loop_timer *timer;
    int fd;
    uid_t uid;
};
struct cw_door {
    struct cw_ctld *c;
    int fd;
    struct cw_loop_io *io;
    struct cw_list guests;
    size_t n_guests;
};

static void guest_leave(struct guest *g)
{
    struct cw_door *d = g->door;
    cw_list_remove(&g->item);
    cw_loop_io_close(g->io);
    cw_loop_timer_close(g->timer);
    close(g->fd);
    free(g);
    if (d->n_guests-- == CW_DOOR_GUESTS_MAX)
        cw_loop_io_set(d->io, CW_LOOP_READ);
}

static void answer(struct guest *g, const uint8_t bind_key[CW_DOOR_REQUEST])
{
    struct cw_ctld *c = g->door->c;
    struct ucred peer;
    socklen_t len = sizeof peer;
    uint8_t out[CW_DOOR_REPLY_MAX];
    struct cw_plugin_err perr = {{0}};
    size_t n = 0;
    int rc = getsockopt(g->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ? -errno : 0;
    if (rc == 0)
        rc = CW_PLUG_OPS(auth, c->auth)
                 ->issue(cw_plug_ctx(c->auth), peer.uid, peer.gid, bind_key, out + 1,
                         CW_AUTH_CRED_MAX, &n, &perr);
    out[0] = rc == 0 ? CW_DOOR_OK : CW_DOOR_REFUSED;
    if (rc != 0) {
        const char *text = perr.text[0] != '\0' ? perr.text : strerror(-rc);
        n = strnlen(text, CW_AUTH_CRED_MAX);
        memcpy(out + 1, text, n);
        cw_log_warn("door: uid %u refused: %s", peer.uid, text);
    }
    if (send(g->fd, out, n + 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        cw_log_debug("door: uid %u left before the answer", peer.uid);
}

static void on_guest(int fd, int events, void *arg)
{
    struct guest *g = arg;
    uint8_t in[CW_DOOR_REQUEST + 1];
    ssize_t n = events < 0 ? 0 : recv(fd, in, sizeof in, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == CW_DOOR_REQUEST)
        answer(g, in);
    guest_leave(g);
}

static void on_guest_late(void *arg)
{
    guest_leave(arg);
}

/* One user must not keep the others out. */
static bool too_many_of(const struct cw_door *d, int fd, uid_t *ret_uid)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    unsigned n = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return true;
    *ret_uid = peer.uid;
    cw_list_each (p, &d->guests)
        n += cw_list_entry(p, struct guest, item)->uid == peer.uid;
    return n >= CW_DOOR_GUESTS_PER_UID;
}

static void on_knock(int fd, int events, void *arg)
{
    struct cw_door *d = arg;
    (void)events;
    while (d->n_guests < CW_DOOR_GUESTS_MAX) {
        int guest = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        uid_t uid = 0;
        if (guest < 0)
            return;
        if (too_many_of(d, guest, &uid)) {
            close(guest);
            continue;
        }
        struct guest *g = cw_xcalloc(1, sizeof *g);
        g->door = d;
        g->fd = guest;
        g->uid = uid;
        g->io = cw_loop_io_open(d->c->loop, guest, CW_LOOP_READ, on_guest, g);
        if (g->io == NULL) {
            close(guest);
            free(g);
            continue;
        }
        g->timer = cw_loop_timer_open(d->c->loop, on_guest_late, g);
        cw_loop_timer_start(g->timer, GUEST_MS, 0);
        cw_list_add_tail(&d->guests, &g->item);
        d->n_guests++;
    }
    cw_loop_io_set(d->io, 0); /* full: guest_leave opens again */
}

static int listen_at(const char *path, struct cw_error *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct stat st;
    if (strlen(path) >= sizeof sa.sun_path)
        return cw_fail(err, -ENAMETOOLONG, "door %s: longer than %zu bytes", path,
                       sizeof sa.sun_path - 1);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    if (lstat(path, &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return cw_fail(err, -EEXIST, "door %s: there is a file that is no socket", path);
        unlink(path); /* ours from before: the state directory's lock is held */
    }
    cw_autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return cw_fail_errno(err, -errno, "door %s", path);
    if (bind(fd, (struct sockaddr *)&sa, sizeof sa) != 0 || chmod(path, 0666) != 0 ||
        listen(fd, 512) != 0)
        return cw_fail_errno(err, -errno, "door %s", path);
    return cw_steal_fd(fd);
}

int cw_door_open(struct cw_ctld *c, struct cw_door **ret, struct cw_error *err)
{
    *ret = NULL;
    if (!CW_PLUG_HAS(auth, c->auth, issue) || c->conf->door == NULL || c->conf->door[0] == '\0')
        return 0;
    int fd = listen_at(c->conf->door, err);
    if (fd < 0)
        return fd;
    struct cw_door *d = cw_xcalloc(1, sizeof *d);
    d->c = c;
    d->fd = fd;
    cw_list_init(&d->guests);
    d->io = cw_loop_io_open(c->loop, fd, CW_LOOP_READ, on_knock, d);
    if (d->io == NULL) {
        int rc = cw_fail_errno(err, -errno, "door %s", c->conf->door);
        close(fd);
        free(d);
        return rc;
    }
    *ret = d;
    return 0;
}

void cw_door_close(struct cw_door *d)
{
    if (d == NULL)
        return;
    cw_list_each_safe (p, &d->guests)
        guest_leave(cw_list_entry(p, struct guest, item));
    cw_loop_io_close(d->io);
    close(d->fd);
    unlink(d->c->conf->door);
    free(d);
}
