/* The event loop over libuv.
 *
 * Rules: every heap object begins with its uv handle and is freed only in that handle's close
 * callback, so closing inside any callback is safe. The handle's `data` names its kind, which is
 * how destroy can close what callers left open. The turn ends in the prepare phase: libuv runs
 * descriptors, posts and timers before it and computes how long to sleep after it. Test:
 * loop_test.c. */
#include "config.h"

#include "loop/loop.h"

#include "base/mem.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

struct handle_kind {
    uv_close_cb closed; /* NULL: part of struct cw_loop */
};

struct post {
    struct post *next;
    void (*fn)(void *arg);
    void *arg;
};

struct turn_end {
    void (*fn)(void *arg);
    void *arg;
};

struct cw_loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_async_t async;
    atomic_bool stopping;
    struct turn_end *ends;
    size_t n_ends;
    pthread_mutex_t post_lock;
    struct post *posts, **posts_tail;
    bool closing; /* under post_lock: the async handle is going, posts are fetched by hand */
};

struct cw_loop_io {
    uv_poll_t poll; /* first: freed through it */
    int fd, events;
    cw_loop_io_fn fn;
    void *arg;
};

struct cw_loop_timer {
    uv_timer_t timer; /* first */
    cw_loop_timer_fn fn;
    void *arg;
};

struct signal_watch {
    uv_signal_t signal; /* first */
    void (*fn)(int signo, void *arg);
    void *arg;
};

struct cw_loop_child {
    uv_poll_t poll; /* first */
    int pidfd;
    pid_t pid;
    void (*fn)(pid_t pid, void *arg);
    void *arg;
};

struct work {
    uv_work_t req;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

static void on_plain_closed(uv_handle_t *h)
{
    free(h);
}

static void on_child_closed(uv_handle_t *h)
{
    struct cw_loop_child *c = (struct cw_loop_child *)h;
    close(c->pidfd);
    free(c);
}

static const struct handle_kind own_kind = { NULL };
static const struct handle_kind plain_kind = { on_plain_closed };
static const struct handle_kind child_kind = { on_child_closed };

static void set_kind(void *handle, const struct handle_kind *kind)
{
    uv_handle_set_data(handle, (void *)(uintptr_t)kind);
}

static void close_handle(void *handle)
{
    const struct handle_kind *kind = uv_handle_get_data(handle);
    uv_close(handle, kind->closed);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void run_turn_ends(struct cw_loop *l)
{
    for (size_t i = 0; i < l->n_ends; i++)
        l->ends[i].fn(l->ends[i].arg);
}

static void on_prepare(uv_prepare_t *p)
{
    struct cw_loop *l = (struct cw_loop *)((char *)p - offsetof(struct cw_loop, prepare));
    run_turn_ends(l);
    if (atomic_load(&l->stopping))
        uv_stop(&l->uv);
}

static struct post *take_posts(struct cw_loop *l)
{
    pthread_mutex_lock(&l->post_lock);
    struct post *p = l->posts;
    l->posts = NULL;
    l->posts_tail = &l->posts;
    pthread_mutex_unlock(&l->post_lock);
    return p;
}

/* What a posted function posts waits for the next turn: a chain cannot starve descriptors. */
static void run_posts(struct cw_loop *l)
{
    struct post *p = take_posts(l);
    while (p != NULL) {
        struct post *next = p->next;
        p->fn(p->arg);
        free(p);
        p = next;
    }
}

static void on_async(uv_async_t *a)
{
    run_posts((struct cw_loop *)((char *)a - offsetof(struct cw_loop, async)));
}

struct cw_loop *cw_loop_create(void)
{
    struct cw_loop *l = cw_xcalloc(1, sizeof(*l));
    int rc = uv_loop_init(&l->uv);
    if (rc != 0) {
        free(l);
        errno = -rc;
        return NULL;
    }
    pthread_mutex_init(&l->post_lock, NULL);
    l->posts_tail = &l->posts;
    uv_prepare_init(&l->uv, &l->prepare);
    set_kind(&l->prepare, &own_kind);
    uv_prepare_start(&l->prepare, on_prepare);
    rc = uv_async_init(&l->uv, &l->async, on_async);
    if (rc == 0) {
        set_kind(&l->async, &own_kind);
        return l;
    }
    uv_close((uv_handle_t *)&l->prepare, NULL);
    uv_run(&l->uv, UV_RUN_DEFAULT);
    uv_loop_close(&l->uv);
    pthread_mutex_destroy(&l->post_lock);
    free(l);
    errno = -rc;
    return NULL;
}

static void close_leftover(uv_handle_t *h, void *arg)
{
    (void)arg;
    if (!uv_is_closing(h))
        close_handle(h);
}

void cw_loop_destroy(struct cw_loop *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->post_lock);
    l->closing = true;
    pthread_mutex_unlock(&l->post_lock);
    /* A done or post that runs here may open or post again, so repeat until nothing is left. */
    do {
        uv_walk(&l->uv, close_leftover, NULL);
        uv_run(&l->uv, UV_RUN_DEFAULT);
        run_posts(l);
    } while (l->posts != NULL || uv_loop_close(&l->uv) == UV_EBUSY);
    pthread_mutex_destroy(&l->post_lock);
    free(l->ends);
    free(l);
}

int cw_loop_run(struct cw_loop *l)
{
    uv_run(&l->uv, UV_RUN_DEFAULT);
    atomic_store(&l->stopping, false);
    /* The poll after the last prepare may have run callbacks. */
    run_turn_ends(l);
    return 0;
}

void cw_loop_stop(struct cw_loop *l)
{
    atomic_store(&l->stopping, true);
    uv_async_send(&l->async);
}

int64_t cw_loop_now_ms(struct cw_loop *l)
{
    return (int64_t)uv_now(&l->uv);
}

void cw_loop_on_turn_end(struct cw_loop *l, void (*fn)(void *arg), void *arg)
{
    l->ends = cw_xrealloc(l->ends, l->n_ends + 1, sizeof(*l->ends));
    l->ends[l->n_ends++] = (struct turn_end){ fn, arg };
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void on_poll(uv_poll_t *h, int status, int uv_events)
{
    struct cw_loop_io *io = (struct cw_loop_io *)h;
    if (status == 0) {
        int events = ((uv_events & UV_READABLE) ? CW_LOOP_READ : 0) |
                     ((uv_events & UV_WRITABLE) ? CW_LOOP_WRITE : 0);
        io->fn(io->fd, events, io->arg);
        return;
    }
    /* libuv stops the handle and says EBADF for every POLLERR. Unread bytes may lie before the
     * error, so the caller reads on as usual and meets the true errno there. */
    if (fcntl(io->fd, F_GETFD) == -1) {
        io->fn(io->fd, -EBADF, io->arg);
        return;
    }
    int events = io->events;
    cw_loop_io_set(io, events);
    io->fn(io->fd, events, io->arg);
}

struct cw_loop_io *cw_loop_io_open(struct cw_loop *l, int fd, int events, cw_loop_io_fn fn,
                                   void *arg)
{
    struct cw_loop_io *io = cw_xcalloc(1, sizeof(*io));
    int rc = uv_poll_init(&l->uv, &io->poll, fd);
    if (rc != 0) {
        free(io);
        errno = -rc;
        return NULL;
    }
    set_kind(&io->poll, &plain_kind);
    io->fd = fd;
    io->fn = fn;
    io->arg = arg;
    cw_loop_io_set(io, events);
    return io;
}

void cw_loop_io_set(struct cw_loop_io *io, int events)
{
    io->events = events;
    int uv_events =
        ((events & CW_LOOP_READ) ? UV_READABLE : 0) | ((events & CW_LOOP_WRITE) ? UV_WRITABLE : 0);
    if (uv_events == 0)
        uv_poll_stop(&io->poll);
    else
        uv_poll_start(&io->poll, uv_events, on_poll);
}

void cw_loop_io_close(struct cw_loop_io *io)
{
    if (io != NULL)
        close_handle(&io->poll);
}

/* ---- timers ---------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *h)
{
    struct cw_loop_timer *t = (struct cw_loop_timer *)h;
    t->fn(t->arg);
}

struct cw_loop_timer *cw_loop_timer_open(struct cw_loop *l, cw_loop_timer_fn fn, void *arg)
{
    struct cw_loop_timer *t = cw_xcalloc(1, sizeof(*t));
    uv_timer_init(&l->uv, &t->timer);
    set_kind(&t->timer, &plain_kind);
    t->fn = fn;
    t->arg = arg;
    return t;
}

void cw_loop_timer_start(struct cw_loop_timer *t, uint64_t delay_ms, uint64_t repeat_ms)
{
    /* libuv counts from the start of the turn; add what it has used so that no delay is cut. */
    if (delay_ms > 0) {
        uint64_t now_ms = uv_hrtime() / 1000000, turn_ms = uv_now(t->timer.loop);
        if (now_ms > turn_ms)
            delay_ms += now_ms - turn_ms;
    }
    uv_timer_start(&t->timer, on_timer, delay_ms, repeat_ms);
}

void cw_loop_timer_stop(struct cw_loop_timer *t)
{
    uv_timer_stop(&t->timer);
}

void cw_loop_timer_close(struct cw_loop_timer *t)
{
    if (t != NULL)
        close_handle(&t->timer);
}

/* ---- signals, posts, workers ----------------------------------------------------------------- */

static void on_signal(uv_signal_t *h, int signo)
{
    struct signal_watch *w = (struct signal_watch *)h;
    w->fn(signo, w->arg);
}

void cw_loop_signal(struct cw_loop *l, int signo, void (*fn)(int signo, void *arg), void *arg)
{
    struct signal_watch *w = cw_xcalloc(1, sizeof(*w));
    int rc = uv_signal_init(&l->uv, &w->signal);
    assert(rc == 0);
    set_kind(&w->signal, &plain_kind);
    w->fn = fn;
    w->arg = arg;
    rc = uv_signal_start(&w->signal, on_signal, signo);
    assert(rc == 0);
    (void)rc;
}

void cw_loop_post(struct cw_loop *l, void (*fn)(void *arg), void *arg)
{
    struct post *p = cw_xcalloc(1, sizeof(*p));
    p->fn = fn;
    p->arg = arg;
    pthread_mutex_lock(&l->post_lock);
    *l->posts_tail = p;
    l->posts_tail = &p->next;
    /* Inside the lock: a poster must not touch l after its function could have run. */
    if (!l->closing)
        uv_async_send(&l->async);
    pthread_mutex_unlock(&l->post_lock);
}

static void on_work(uv_work_t *req)
{
    struct work *w = (struct work *)req;
    w->work(w->arg);
}

static void on_work_done(uv_work_t *req, int status)
{
    (void)status; /* we never cancel */
    struct work *w = (struct work *)req;
    void (*done)(void *) = w->done;
    void *arg = w->arg;
    free(w);
    if (done != NULL)
        done(arg);
}

void cw_loop_work(struct cw_loop *l, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    struct work *w = cw_xcalloc(1, sizeof(*w));
    w->work = work;
    w->done = done;
    w->arg = arg;
    uv_queue_work(&l->uv, &w->req, on_work, on_work_done);
}

/* ---- children -------------------------------------------------------------------------------- */

static void on_child_end(uv_poll_t *h, int status, int events)
{
    (void)status;
    (void)events;
    struct cw_loop_child *c = (struct cw_loop_child *)h;
    uv_poll_stop(h); /* a dead process stays readable: once only */
    c->fn(c->pid, c->arg);
}

struct cw_loop_child *cw_loop_child_open(struct cw_loop *l, pid_t pid,
                                         void (*fn)(pid_t pid, void *arg), void *arg,
                                         struct cw_error *err)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    if (fd < 0) {
        cw_fail_errno(err, -errno, "process %ld: open a pidfd", (long)pid);
        return NULL;
    }
    struct cw_loop_child *c = cw_xcalloc(1, sizeof(*c));
    int rc = uv_poll_init(&l->uv, &c->poll, fd);
    if (rc != 0) {
        close(fd);
        free(c);
        cw_fail_errno(err, rc, "process %ld: watch its pidfd", (long)pid);
        return NULL;
    }
    set_kind(&c->poll, &child_kind);
    c->pidfd = fd;
    c->pid = pid;
    c->fn = fn;
    c->arg = arg;
    uv_poll_start(&c->poll, UV_READABLE, on_child_end);
    return c;
}

void cw_loop_child_close(struct cw_loop_child *c)
{
    if (c != NULL)
        close_handle(&c->poll);
}
