/* allockeeper.c: see allockeeper.h. */
#include "config.h"

#include "client/allockeeper.h"

#include "base/clock.h"
#include "spec/outcome.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVERY_S 20
#define AGAIN_S 1 /* the controller did not answer */

struct cw_allockeeper {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    volatile sig_atomic_t stop;
    int event_fd;
    char *conf;
    uint64_t id;
    unsigned every_s;
    bool ended;
    int exit_status;
    char text[256];
};

static void note_end(struct cw_allockeeper *k, const Cw__JobInfo *j)
{
    uint64_t one = 1;
    pthread_mutex_lock(&k->lock);
    k->ended = true;
    k->exit_status = j->has_exit_status ? j->exit_status : 1;
    snprintf(k->text, sizeof k->text, "%s%s%.180s", cw_state_name(j->state),
             j->attempt != NULL && j->attempt->message != NULL ? ": " : "",
             j->attempt != NULL && j->attempt->message != NULL ? j->attempt->message : "");
    pthread_mutex_unlock(&k->lock);
    ssize_t n = write(k->event_fd, &one, sizeof one);
    (void)n;
}

/* Seconds to the next time; 0: it has ended. */
static unsigned keep(struct cw_allockeeper *k, struct cw_client *c)
{
    struct cw_arena *a = cw_arena_create();
    Cw__KeepRequest q = CW__KEEP_REQUEST__INIT;
    ProtobufCMessage *m;
    struct cw_error err;
    unsigned next = AGAIN_S;
    q.id = k->id;
    if (cw_client_call(c, CW_KIND_KEEP, &q.base, 0, a, &m, &err) == 0) {
        const Cw__JobInfo *j = ((const Cw__KeepReply *)m)->job;
        next = k->every_s;
        if (cw_state_terminal(j->state)) {
            note_end(k, j);
            next = 0;
        }
    }
    cw_arena_destroy(a);
    return next;
}

/* False: it is over. */
static bool wait_s(struct cw_allockeeper *k, unsigned s)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += s;
    pthread_mutex_lock(&k->lock);
    while (k->stop == 0 && pthread_cond_timedwait(&k->changed, &k->lock, &at) == 0)
        ;
    pthread_mutex_unlock(&k->lock);
    return k->stop == 0;
}

static void *run(void *arg)
{
    struct cw_allockeeper *k = arg;
    struct cw_client *c = NULL;
    struct cw_error err;
    for (unsigned s = k->every_s; s > 0 && wait_s(k, s);) {
        s = AGAIN_S;
        if (c == NULL && cw_client_open(k->conf, &c, &err) < 0)
            continue;
        cw_client_set_interrupt(c, &k->stop);
        s = keep(k, c);
    }
    cw_client_close(c);
    return NULL;
}

int cw_allockeeper_start(const char *conf, uint64_t id, uint32_t lease_s,
                         struct cw_allockeeper **ret, struct cw_error *err)
{
    struct cw_allockeeper *k = cw_xcalloc(1, sizeof *k);
    k->every_s = lease_s < 3 * EVERY_S ? (lease_s + 2) / 3 : EVERY_S;
    sigset_t all, old;
    k->conf = cw_xstrdup(conf);
    k->id = id;
    k->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = k->event_fd < 0 ? errno : pthread_create(&k->thread, NULL, run, k);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        if (k->event_fd >= 0)
            close(k->event_fd);
        free(k->conf);
        free(k);
        return cw_fail(err, -rc, "thread that keeps the allocation: %s", strerror(rc));
    }
    *ret = k;
    return 0;
}

int cw_allockeeper_fd(const struct cw_allockeeper *k)
{
    return k->event_fd;
}

bool cw_allockeeper_ended(struct cw_allockeeper *k, int *ret_exit_status, char *text, size_t cap)
{
    pthread_mutex_lock(&k->lock);
    bool ended = k->ended;
    if (ended) {
        *ret_exit_status = k->exit_status;
        snprintf(text, cap, "%s", k->text);
    }
    pthread_mutex_unlock(&k->lock);
    return ended;
}

void cw_allockeeper_stop(struct cw_allockeeper *k)
{
    if (k == NULL)
        return;
    pthread_mutex_lock(&k->lock);
    k->stop = 1;
    pthread_cond_broadcast(&k->changed);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
    close(k->event_fd);
    free(k->conf);
    free(k);
}
