/* Pipes and terminals of steps; see stepio.h. */
#include "shepherd/stepio.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"

#define EVENTS_A_TURN 64
#define END_OF_INPUT  "\x04" /* on a terminal in its usual mode */

static void arm(struct cw_stepfd *f, bool on)
{
    struct epoll_event e = { .events = f->kind == CW_STEPFD_IN ? EPOLLOUT : EPOLLIN,
                             .data.ptr = f };
    if (f->fd < 0 || f->armed == on)
        return;
    /* Not by an empty set of events: a hang-up would still be told, again and again. */
    if (epoll_ctl(f->task->step->herd->io_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, f->fd, &e) < 0)
        cw_log_error("task %s step %u: watch a descriptor: %s", f->task->step->task->key,
                     f->task->step->number, strerror(errno));
    else
        f->armed = on;
}

void cw_stepio_open(struct cw_stepfd *f, struct cw_steptask *t, enum cw_stepfd_kind kind, int fd)
{
    *f = (struct cw_stepfd){ .task = t, .kind = kind, .fd = fd };
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    arm(f, kind != CW_STEPFD_IN);
}

void cw_stepio_close(struct cw_stepfd *f)
{
    if (f->fd < 0)
        return;
    arm(f, false);
    close(f->fd);
    f->fd = -1;
}

/* ---- output --------------------------------------------------------------------------------- */

static void pause_outputs(struct cw_step *s, bool pause)
{
    s->paused = pause;
    for (size_t i = 0; i < s->n; i++) {
        arm(&s->tasks[i].out, !pause);
        arm(&s->tasks[i].err, !pause);
    }
}

static bool must_wait(const struct cw_step *s)
{
    return !s->detached && cw_stepring_room(s->ring) == 0;
}

/* Reads once. True: there may be more. */
static bool read_output(struct cw_step *s, struct cw_stepfd *f)
{
    char buf[CW_STEPRING_CHUNK_MAX];
    size_t room = s->detached ? sizeof buf : cw_stepring_room(s->ring);
    ssize_t n = read(f->fd, buf, room < sizeof buf ? room : sizeof buf);
    if (n > 0) {
        cw_stepring_add(s->ring, f->task->rank, f->kind == CW_STEPFD_ERR, buf, (size_t)n);
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    cw_stepio_close(f); /* 0, or EIO: nobody holds the terminal any more */
    return false;
}

static void on_output(struct cw_step *s, struct cw_stepfd *f)
{
    if (!must_wait(s))
        read_output(s, f);
    if (must_wait(s))
        pause_outputs(s, true);
}

void cw_stepio_resume(struct cw_step *s)
{
    if (s->paused && !must_wait(s))
        pause_outputs(s, false);
}

static void drain_one(struct cw_step *s, struct cw_stepfd *f, bool force)
{
    bool more = f->fd >= 0;
    while (more && f->fd >= 0 && !must_wait(s))
        more = read_output(s, f);
    if (force && f->fd >= 0 && !more)
        cw_stepio_close(f);
}

void cw_stepio_drain(struct cw_step *s, bool force)
{
    for (size_t i = 0; i < s->n; i++) {
        drain_one(s, &s->tasks[i].out, force);
        drain_one(s, &s->tasks[i].err, force);
    }
    if (must_wait(s))
        pause_outputs(s, true);
}

bool cw_stepio_at_end(const struct cw_step *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->tasks[i].out.fd >= 0 || s->tasks[i].err.fd >= 0)
            return false;
    return true;
}

/* ---- input ---------------------------------------------------------------------------------- */

bool cw_stepio_input_closed(const struct cw_step *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->tasks[i].in.fd >= 0)
            return false;
    return true;
}

static uint64_t taken(const struct cw_step *s)
{
    return s->in_base + s->in.len;
}

/* A terminal stays open behind its end of input; a pipe is closed. */
static void end_input(struct cw_step *s, struct cw_steptask *t)
{
    if (s->pty >= 0 && t->in.fd >= 0 && t == &s->tasks[0] &&
        write(t->in.fd, END_OF_INPUT, 1) < 0 && errno == EAGAIN) {
        arm(&t->in, true);
        return;
    }
    cw_stepio_close(&t->in);
}

static void pump_one(struct cw_step *s, struct cw_steptask *t)
{
    while (t->in.fd >= 0 && t->in_pos < taken(s)) {
        size_t at = (size_t)(t->in_pos - s->in_base);
        ssize_t n = write(t->in.fd, s->in.data + at, s->in.len - at);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            arm(&t->in, true);
            return;
        }
        if (n < 0) { /* EPIPE: it reads no more */
            cw_stepio_close(&t->in);
            return;
        }
        t->in_pos += (uint64_t)n;
    }
    arm(&t->in, false);
    if (t->in.fd >= 0 && s->in_eof)
        end_input(s, t);
}

/* Drops what every reading rank has. */
static void trim(struct cw_step *s)
{
    uint64_t least = taken(s);
    for (size_t i = 0; i < s->n; i++)
        if (s->tasks[i].in.fd >= 0 && s->tasks[i].in_pos < least)
            least = s->tasks[i].in_pos;
    size_t gone = (size_t)(least - s->in_base);
    if (gone == 0)
        return;
    memmove(s->in.data, s->in.data + gone, s->in.len - gone);
    s->in.len -= gone;
    s->in_base = least;
}

static void pump(struct cw_step *s)
{
    for (size_t i = 0; i < s->n; i++)
        pump_one(s, &s->tasks[i]);
    trim(s);
}

uint64_t cw_stepio_write(struct cw_step *s, uint64_t offset, const void *p, size_t n, bool eof)
{
    uint64_t have = taken(s);
    if (offset > have || s->in_eof)
        return have;
    size_t skip = have - offset < n ? (size_t)(have - offset) : n;
    size_t room = CW_STEP_IN_BYTES - s->in.len, rest = n - skip;
    size_t take = rest < room ? rest : room;
    if (take > 0)
        cw_buf_add(&s->in, (const char *)p + skip, take);
    s->in_eof = eof && take == rest && offset + n == taken(s);
    pump(s);
    return taken(s);
}

/* ---- events --------------------------------------------------------------------------------- */

void cw_stepio_run(struct cw_herd *h, void (*fn)(struct cw_step *s))
{
    struct epoll_event e[EVENTS_A_TURN];
    int n = epoll_wait(h->io_fd, e, EVENTS_A_TURN, 0);
    for (int i = 0; i < n; i++) {
        struct cw_stepfd *f = e[i].data.ptr;
        struct cw_step *s = f->task->step; /* steps go in cw_herd_due only, never here */
        if (f->fd < 0 || !f->armed)
            continue; /* closed or paused by an earlier event of this batch */
        if (f->kind == CW_STEPFD_IN) {
            pump_one(s, f->task);
            trim(s);
        } else {
            on_output(s, f);
        }
        fn(s);
    }
}
