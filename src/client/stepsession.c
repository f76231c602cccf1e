/* stepsession.c: the caller's side of a session and its minder, the thread that asks the controller:
 * for tickets before they run out, and, while a node is silent, how the step stands. A node that
 * will never answer is over when the controller says that the step or its job has ended. See
 * stepsession.h. */
#include "config.h"

#include "client/stepsession.h"

#include "client/steppart.h"

#include "base/clock.h"
#include "proto/walk.h"
#include "spec/outcome.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RENEW_NS (60 * CW_NS_PER_S) /* before a ticket expires */
#define LOOK_NS (2 * CW_NS_PER_S)   /* how often the controller is asked about a silent node */
#define SETTLE_LOOKS 3 /* so often nothing new, once the controller says that it is over */
#define TICKET_MAC 32u

void cw_stepsession_wake(struct cw_stepsession *s)
{
    uint64_t one = 1;
    ssize_t n = write(s->event_fd, &one, sizeof one);
    (void)n; /* full: it is readable already */
}

static int64_t expiry_of(const void *p, size_t n)
{
    struct cw_arena *a = cw_arena_create();
    ProtobufCMessage *m;
    int64_t t = 0;
    if (n > TICKET_MAC && cw_walk_unpack(&cw__ticket_body__descriptor, p, n - TICKET_MAC, a, &m, NULL) == 0)
        t = ((const Cw__TicketBody *)m)->expires_ns;
    cw_arena_destroy(a);
    return t;
}

/* ---- the minder ----------------------------------------------------------------------------- */

static int fetch_ticket(struct cw_client *c, const struct cw_stepsession *s, uint32_t number,
                        struct cw_arena *a, const Cw__TicketReply **ret, struct cw_error *err)
{
    Cw__TicketRequest q = CW__TICKET_REQUEST__INIT;
    ProtobufCMessage *m;
    q.id = s->job;
    q.has_attempt = q.has_node = q.has_step = true;
    q.attempt = s->attempt;
    q.node = number;
    q.step = s->step;
    q.right = "step";
    int rc = cw_client_call(c, CW_KIND_TICKET, &q.base, 0, a, &m, err);
    if (rc == 0)
        *ret = (const Cw__TicketReply *)m;
    return rc;
}

static void set_ticket(struct cw_steppart *p, const ProtobufCBinaryData *t)
{
    cw_buf_clear(&p->ticket);
    cw_buf_add(&p->ticket, t->data, t->len);
    p->expires_ns = expiry_of(t->data, t->len);
    p->want_ticket = false;
}

static void renew(struct cw_stepsession *s, struct cw_client *c, struct cw_steppart *p)
{
    struct cw_arena *a = cw_arena_create();
    const Cw__TicketReply *t;
    struct cw_error err = {0};
    int rc = fetch_ticket(c, s, p->number, a, &t, &err);
    pthread_mutex_lock(&s->lock);
    if (rc == 0)
        set_ticket(p, &t->ticket);
    else if (rc == -ENOENT || rc == -ESRCH)
        p->silent = true; /* it is over: the next look tells how */
    else
        p->expires_ns = cw_clock_real_ns() + RENEW_NS + LOOK_NS; /* not again at once */
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    cw_arena_destroy(a);
}

static const Cw__StepRecord *step_of(const Cw__JobInfo *j, const struct cw_stepsession *s)
{
    for (size_t i = 0; i < j->n_steps; i++)
        if (j->steps[i]->step == s->step && j->steps[i]->attempt == s->attempt)
            return j->steps[i];
    return NULL;
}

/* Notes what the controller says of the step; true: it has ended there. */
static bool take_state(struct cw_stepsession *s, const Cw__JobsReply *r)
{
    bool over = r->n_jobs == 0;
    for (size_t i = 0; i < r->n_jobs; i++) {
        const Cw__AttemptRecord *at = r->jobs[i]->attempt;
        const Cw__StepRecord *step = step_of(r->jobs[i], s);
        if (at != NULL && at->attempt == s->attempt && cw_state_terminal(at->state)) {
            over = s->job_over = true;
            s->job_cause = at->has_cause ? at->cause : CW__CAUSE__CAUSE_EXIT;
        }
        if (step == NULL || !cw_state_terminal(step->state))
            continue;
        over = true;
        if (s->record == NULL) {
            cw_autobuf struct cw_buf b = {0};
            cw_walk_pack(&step->base, &b);
            s->record = cw__step_record__unpack(NULL, b.len, (const uint8_t *)b.data);
        }
    }
    return over;
}

static bool look(struct cw_stepsession *s, struct cw_client *c)
{
    struct cw_arena *a = cw_arena_create();
    Cw__JobsRequest q = CW__JOBS_REQUEST__INIT;
    Cw__JobFilter f = CW__JOB_FILTER__INIT;
    ProtobufCMessage *m;
    struct cw_error err;
    bool over = false;
    f.n_ids = 1;
    f.ids = &s->job;
    q.filter = &f;
    q.has_attempts = q.has_steps = q.attempts = q.steps = true;
    if (cw_client_call(c, CW_KIND_JOBS, &q.base, 0, a, &m, &err) == 0) {
        pthread_mutex_lock(&s->lock);
        over = take_state(s, (const Cw__JobsReply *)m);
        pthread_mutex_unlock(&s->lock);
    }
    cw_arena_destroy(a);
    return over;
}

/* The controller says that it is over: what a node has yet to tell comes soon, or never. */
static void give_up(struct cw_stepsession *s)
{
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n; i++) {
        struct cw_steppart *p = &s->parts[i];
        bool still = p->n_inbox == 0 && p->n_heard == p->n_heard_then;
        p->n_heard_then = p->n_heard;
        p->n_still = still ? p->n_still + 1 : 0;
        if (!p->over && (p->missing || p->n_still >= SETTLE_LOOKS))
            p->over = p->gone = true;
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    cw_stepsession_wake(s);
}

struct due {
    bool all_over, silent; /* silent: the controller has to be asked */
    struct cw_steppart *ticket; /* one that needs a new one */
    int64_t next_ns;
};

static bool by_itself(Cw__Cause c)
{
    return c == CW__CAUSE__CAUSE_EXIT || c == CW__CAUSE__CAUSE_SIGNAL;
}

static struct due find_due(struct cw_stepsession *s)
{
    struct due d = {.all_over = true, .next_ns = INT64_MAX};
    bool odd = false; /* one was ended: the others may be cut off without a word */
    int64_t now = cw_clock_real_ns();
    for (uint32_t i = 0; i < s->n; i++) {
        struct cw_steppart *p = &s->parts[i];
        if (p->over) {
            odd = odd || p->gone || !by_itself(p->cause);
            continue;
        }
        d.all_over = false;
        d.silent = d.silent || p->silent;
        if (d.ticket == NULL && (p->want_ticket || p->expires_ns - RENEW_NS <= now) && !p->silent)
            d.ticket = p;
        if (p->expires_ns - RENEW_NS < d.next_ns)
            d.next_ns = p->expires_ns - RENEW_NS;
    }
    d.silent = d.silent || odd;
    if (d.silent && now + LOOK_NS < d.next_ns)
        d.next_ns = now + LOOK_NS;
    return d;
}

static void mind(struct cw_stepsession *s, struct cw_client *c)
{
    int64_t looked_ns = 0;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        struct due d = find_due(s);
        if (s->stop != 0 || d.all_over)
            break;
        int64_t now = cw_clock_real_ns();
        bool do_look = d.silent && now - looked_ns >= LOOK_NS;
        if (d.ticket == NULL && !do_look) {
            struct timespec at = {d.next_ns / CW_NS_PER_S, d.next_ns % CW_NS_PER_S};
            pthread_cond_timedwait(&s->changed, &s->lock, &at);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        if (d.ticket != NULL)
            renew(s, c, d.ticket);
        if (do_look) {
            looked_ns = now;
            if (look(s, c))
                give_up(s);
        }
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Opens its connection when there is something to ask. */
static void *run_minder(void *arg)
{
    struct cw_stepsession *s = arg;
    struct cw_client *c = NULL;
    struct cw_error err;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        struct due d = find_due(s);
        if (s->stop != 0 || d.all_over || d.silent || d.ticket != NULL)
            break;
        struct timespec at = {d.next_ns / CW_NS_PER_S, d.next_ns % CW_NS_PER_S};
        pthread_cond_timedwait(&s->changed, &s->lock, &at);
    }
    bool needed = s->stop == 0 && !find_due(s).all_over;
    pthread_mutex_unlock(&s->lock);
    if (!needed || cw_client_open(s->conf, &c, &err) < 0)
        return NULL;
    cw_client_set_interrupt(c, &s->stop);
    mind(s, c);
    cw_client_close(c);
    return NULL;
}

/* ---- making --------------------------------------------------------------------------------- */

static struct cw_stepsession *make(const char *conf, uint64_t id, uint32_t attempt, uint32_t step,
                                   size_t n, const struct cw_stepsession_ops *ops, void *arg)
{
    struct cw_stepsession *s = cw_xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->ops = *ops;
    s->arg = arg;
    s->conf = cw_xstrdup(conf);
    s->job = cw_xasprintf("%llu", (unsigned long long)id);
    s->id = id;
    s->attempt = attempt;
    s->step = step;
    s->n = (uint32_t)n;
    s->parts = cw_xcalloc(n, sizeof *s->parts);
    for (uint32_t i = 0; i < s->n; i++) {
        s->parts[i].session = s;
        s->parts[i].number = i;
    }
    return s;
}

static int set_part(struct cw_steppart *p, const char *name, const char *address,
                    const ProtobufCBinaryData *key, const ProtobufCBinaryData *ticket,
                    struct cw_error *err)
{
    if (key->len != 32)
        return cw_fail(err, -EPROTO, "node %s: the controller names no key for it", name);
    p->name = cw_xstrdup(name);
    p->address = cw_xstrdup(address);
    memcpy(p->public_key, key->data, 32);
    set_ticket(p, ticket);
    return 0;
}

static int begin(struct cw_stepsession *s, uint32_t ntasks, struct cw_error *err)
{
    int rc = s->event_fd < 0 ? cw_fail_errno(err, -errno, "eventfd") : 0;
    s->n_ended_max = ntasks;
    s->ended = cw_xcalloc(ntasks + 1, 1);
    for (uint32_t i = 0; rc == 0 && i < s->n; i++)
        rc = cw_steppart_begin(&s->parts[i], err);
    if (rc < 0)
        return rc;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&s->minder, NULL, run_minder, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    s->has_minder = rc == 0;
    return rc == 0 ? 0 : cw_fail(err, -rc, "thread: %s", strerror(rc));
}

static int check_size(size_t n, struct cw_error *err)
{
    return n > 0 && n <= CW_STEPSESSION_NODES_MAX
               ? 0
               : cw_fail(err, -E2BIG, "a step on %zu nodes, one command talks to at most %d", n,
                         CW_STEPSESSION_NODES_MAX);
}

int cw_stepsession_start(const char *conf, const Cw__StepCreateReply *r, const Cw__StepSpec *spec,
                         const struct cw_stepsession_ops *ops, void *arg,
                         struct cw_stepsession **ret, struct cw_error *err)
{
    int rc = check_size(r->n_parts, err);
    if (rc < 0)
        return rc;
    struct cw_stepsession *s = make(conf, r->id, r->attempt, r->step, r->n_parts, ops, arg);
    cw_walk_pack(&spec->base, &s->spec);
    for (uint32_t i = 0; rc == 0 && i < s->n; i++) {
        const Cw__StepPart *p = r->parts[i];
        rc = set_part(&s->parts[i], p->layout->grant->node, p->address, &p->public_key, &p->ticket,
                      err);
    }
    if (rc == 0)
        rc = begin(s, r->parts[0]->layout->ntasks, err);
    if (rc < 0)
        cw_stepsession_close(s);
    else
        *ret = s;
    return rc;
}

int cw_stepsession_attach(const char *conf, struct cw_client *c, const Cw__StepRecord *step,
                          const struct cw_stepsession_ops *ops, void *arg,
                          struct cw_stepsession **ret, struct cw_error *err)
{
    int rc = check_size(step->n_nodes, err);
    if (rc < 0)
        return rc;
    struct cw_stepsession *s =
        make(conf, step->id, step->attempt, step->step, step->n_nodes, ops, arg);
    struct cw_arena *a = cw_arena_create();
    for (uint32_t i = 0; rc == 0 && i < s->n; i++) {
        const Cw__TicketReply *t;
        rc = fetch_ticket(c, s, i, a, &t, err);
        if (rc == 0)
            rc = set_part(&s->parts[i], t->node, t->address, &t->public_key, &t->ticket, err);
    }
    cw_arena_destroy(a);
    if (rc == 0)
        rc = begin(s, step->ntasks, err);
    if (rc < 0)
        cw_stepsession_close(s);
    else
        *ret = s;
    return rc;
}

/* ---- the caller's thread -------------------------------------------------------------------- */

int cw_stepsession_fd(const struct cw_stepsession *s)
{
    return s->event_fd;
}

static void deliver_ends(struct cw_stepsession *s, const Cw__StepReadReply *r)
{
    for (size_t i = 0; i < r->n_ends; i++) {
        const Cw__StepTaskEnd *e = r->ends[i];
        if (e->rank >= s->n_ended_max || s->ended[e->rank])
            continue;
        s->ended[e->rank] = 1;
        s->ops.ended(e, s->arg);
    }
}

/* Output first: what a task wrote comes before how it ended. */
static void deliver(struct cw_stepsession *s, struct cw_steppart *p, const Cw__StepReadReply *r)
{
    if (r->has_lost && r->lost > p->delivered_seq + 1) {
        char text[96];
        snprintf(text, sizeof text, "output up to number %llu is gone",
                 (unsigned long long)r->lost - 1);
        s->ops.notice(p->name, text, s->arg);
    }
    for (size_t i = 0; i < r->n_chunks; i++) {
        const Cw__StepChunk *k = r->chunks[i];
        if (k->seq <= p->delivered_seq)
            continue;
        p->delivered_seq = k->seq;
        s->ops.output(k->rank, k->err, k->data.data, k->data.len, s->arg);
    }
    deliver_ends(s, r);
}

bool cw_stepsession_run(struct cw_stepsession *s)
{
    uint64_t n;
    ssize_t got = read(s->event_fd, &n, sizeof n);
    bool all = true, any = false;
    (void)got;
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n; i++) {
        struct cw_steppart *p = &s->parts[i];
        while (p->n_inbox > 0) {
            struct cw_stepdelivery d = p->inbox[0];
            memmove(p->inbox, p->inbox + 1, --p->n_inbox * sizeof d);
            any = true;
            pthread_mutex_unlock(&s->lock);
            deliver(s, p, d.reply);
            cw_arena_destroy(d.arena);
            pthread_mutex_lock(&s->lock);
        }
        all = all && p->over;
    }
    if (any)
        pthread_cond_broadcast(&s->changed);
    /* Replies that came while others were delivered. */
    for (uint32_t i = 0; i < s->n && all; i++)
        all = s->parts[i].n_inbox == 0;
    pthread_mutex_unlock(&s->lock);
    if (any)
        cw_stepsession_wake(s);
    return all && !any;
}

bool cw_stepsession_started(struct cw_stepsession *s)
{
    bool all = true;
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n; i++)
        all = all && s->parts[i].started;
    pthread_mutex_unlock(&s->lock);
    return all;
}

size_t cw_stepsession_room(struct cw_stepsession *s)
{
    pthread_mutex_lock(&s->lock);
    size_t room = s->in_eof || s->input.len >= CW_STEPSESSION_INPUT_MAX
                      ? 0
                      : CW_STEPSESSION_INPUT_MAX - s->input.len;
    pthread_mutex_unlock(&s->lock);
    return cw_stepsession_input_closed(s) ? 0 : room;
}

bool cw_stepsession_input_closed(struct cw_stepsession *s)
{
    bool closed = true;
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n; i++)
        closed = closed && (s->parts[i].in_closed || s->parts[i].over);
    pthread_mutex_unlock(&s->lock);
    return closed;
}

void cw_stepsession_write(struct cw_stepsession *s, const void *p, size_t n, bool eof)
{
    pthread_mutex_lock(&s->lock);
    if (!s->in_eof)
        cw_buf_add(&s->input, p, n);
    s->in_eof = s->in_eof || eof;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void cw_stepsession_ctl(struct cw_stepsession *s, Cw__StepVerb verb, uint32_t signal, uint32_t rows,
                        uint32_t cols)
{
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n; i++) {
        struct cw_steppart *p = &s->parts[i];
        if (p->n_ctl == CW_STEPPART_CTL_MAX) /* the newest counts: a kill, the present window */
            memmove(p->ctl, p->ctl + 1, --p->n_ctl * sizeof p->ctl[0]);
        p->ctl[p->n_ctl++] = (struct cw_stepctl){verb, signal, rows, cols};
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void cw_stepsession_result(struct cw_stepsession *s, struct cw_stepresult *ret)
{
    *ret = (struct cw_stepresult){.cause = CW__CAUSE__CAUSE_EXIT};
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct cw_steppart *p = &s->parts[i];
        if (p->gone) {
            ret->incomplete = true;
            if (p->why.code != 0 && ret->message[0] == '\0')
                snprintf(ret->message, sizeof ret->message, "%.60s: %.180s", p->name, p->why.text);
        } else if (ret->cause == CW__CAUSE__CAUSE_EXIT) {
            ret->cause = p->cause;
        }
    }
    if (s->job_over && ret->incomplete &&
        (by_itself(ret->cause) || ret->cause == CW__CAUSE__CAUSE_PEER))
        ret->cause = s->job_cause;
    else if (s->record != NULL && s->record->has_cause && ret->cause == CW__CAUSE__CAUSE_EXIT)
        ret->cause = s->record->cause;
    pthread_mutex_unlock(&s->lock);
}

static void part_fini(struct cw_steppart *p)
{
    if (p->threads) {
        pthread_join(p->reader, NULL);
        pthread_join(p->talker, NULL);
    }
    for (unsigned i = 0; i < p->n_inbox; i++)
        cw_arena_destroy(p->inbox[i].arena);
    cw_buf_fini(&p->ticket);
    free(p->name);
    free(p->address);
}

void cw_stepsession_close(struct cw_stepsession *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = 1;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->n; i++)
        part_fini(&s->parts[i]);
    if (s->has_minder)
        pthread_join(s->minder, NULL);
    if (s->record != NULL)
        cw__step_record__free_unpacked(s->record, NULL);
    if (s->event_fd >= 0)
        close(s->event_fd);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    cw_buf_fini(&s->spec);
    cw_buf_fini(&s->input);
    free(s->parts);
    free(s->ended);
    free(s->job);
    free(s->conf);
    free(s);
}
