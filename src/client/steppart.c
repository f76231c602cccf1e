/* steppart.c: the two threads of a node. Both keep asking until the session stops, the node has told
 * everything, or says that there is nothing to tell; what that means is for the controller to say
 * (stepsession.c). See steppart.h. */
#include "config.h"

#include "client/steppart.h"

#include "base/clock.h"
#include "proto/walk.h"

#include <string.h>

#define READ_WAIT_MS 20000u
#define WRITE_WAIT_MS 200u
#define WRITE_MAX 61440u
#define ANSWER_MS 5000u /* beyond the wait */
#define AGAIN_MS 100u
#define CTL_MS 3000u

static void lock(struct cw_steppart *p)
{
    pthread_mutex_lock(&p->session->lock);
}

static void unlock(struct cw_steppart *p)
{
    pthread_mutex_unlock(&p->session->lock);
}

/* Everybody looks again. */
static void tell(struct cw_steppart *p)
{
    pthread_cond_broadcast(&p->session->changed);
    cw_stepsession_wake(p->session);
}

static ProtobufCBinaryData ticket_of(struct cw_steppart *p, struct cw_arena *a)
{
    ProtobufCBinaryData t;
    lock(p);
    t.len = p->ticket.len;
    t.data = memcpy(cw_arena_alloc(a, t.len + 1), p->ticket.data, t.len);
    unlock(p);
    return t;
}

static void set_over(struct cw_steppart *p, bool gone, const struct cw_error *why)
{
    lock(p);
    p->over = true;
    p->gone = gone;
    if (why != NULL)
        p->why = *why;
    tell(p);
    unlock(p);
}

/* The node did not take the ticket: the minder gets a new one. */
static void wait_ticket(struct cw_steppart *p)
{
    lock(p);
    p->want_ticket = true;
    tell(p);
    while (p->want_ticket && p->session->stop == 0 && !p->over)
        pthread_cond_wait(&p->session->changed, &p->session->lock);
    unlock(p);
}

/* missing: the node is there and knows no such step. */
static void set_silent(struct cw_steppart *p, bool missing)
{
    lock(p);
    if (!p->silent || p->missing != missing) {
        p->silent = true;
        p->missing = missing;
        tell(p);
    }
    unlock(p);
}

/* Whether it makes sense to ask again; sets the state that goes with it. */
static bool again(struct cw_steppart *p, struct cw_rpc_client *rpc, const struct cw_error *err)
{
    if (p->session->stop != 0)
        return false;
    switch (err->code) {
    case -EKEYEXPIRED:
    case -EACCES:
    case -EBADMSG: wait_ticket(p); return p->session->stop == 0;
    case -ESRCH: /* also while a restarted daemon takes its jobs over: the controller knows */
    case -ENOENT:
    case -EHOSTUNREACH: set_silent(p, err->code == -ENOENT); break;
    case -EAGAIN: break;
    default: set_over(p, true, err); return false;
    }
    cw_rpc_client_pause(rpc, AGAIN_MS);
    lock(p);
    bool on = p->session->stop == 0 && !p->over;
    unlock(p);
    return on;
}

/* ---- output --------------------------------------------------------------------------------- */

static int ask_start(struct cw_steppart *p, struct cw_rpc_client *rpc, const Cw__StepSpec *spec,
                     struct cw_error *err)
{
    struct cw_arena *a = cw_arena_create();
    Cw__StepStartRequest q = CW__STEP_START_REQUEST__INIT;
    ProtobufCMessage *m;
    q.ticket = ticket_of(p, a);
    q.spec = (Cw__StepSpec *)spec;
    int rc = cw_rpc_client_call(rpc, CW_KIND_STEP_START, &q.base, ANSWER_MS, a, &m, err);
    cw_arena_destroy(a);
    return rc;
}

static bool start_tasks(struct cw_steppart *p, struct cw_rpc_client *rpc)
{
    struct cw_error err = {0};
    ProtobufCMessage *m = NULL;
    struct cw_arena *a = cw_arena_create();
    const struct cw_buf *packed = &p->session->spec;
    bool ok = packed->len == 0;
    if (!ok && cw_walk_unpack(&cw__step_spec__descriptor, packed->data, packed->len, a, &m, &err) < 0)
        set_over(p, true, &err);
    else
        while (!ok) {
            ok = ask_start(p, rpc, (const Cw__StepSpec *)m, &err) == 0;
            if (!ok && !again(p, rpc, &err))
                break;
        }
    cw_arena_destroy(a);
    lock(p);
    p->started = ok;
    p->silent = ok ? false : p->silent;
    tell(p);
    unlock(p);
    return ok;
}

static int ask_read(struct cw_steppart *p, struct cw_rpc_client *rpc, uint64_t seq,
                    struct cw_arena *a, const Cw__StepReadReply **ret, struct cw_error *err)
{
    Cw__StepReadRequest q = CW__STEP_READ_REQUEST__INIT;
    ProtobufCMessage *m;
    q.ticket = ticket_of(p, a);
    q.seq = seq;
    q.has_wait_ms = true;
    q.wait_ms = READ_WAIT_MS;
    int rc = cw_rpc_client_call(rpc, CW_KIND_STEP_READ, &q.base, READ_WAIT_MS + ANSWER_MS, a, &m,
                                err);
    if (rc == 0)
        *ret = (const Cw__StepReadReply *)m;
    return rc;
}

/* Waits for room; then the next question says that all of this has arrived. */
static bool deliver(struct cw_steppart *p, struct cw_arena *a, const Cw__StepReadReply *r)
{
    lock(p);
    while (p->n_inbox == CW_STEPPART_REPLIES_MAX && p->session->stop == 0)
        pthread_cond_wait(&p->session->changed, &p->session->lock);
    bool taken = p->session->stop == 0;
    if (taken) {
        p->inbox[p->n_inbox++] = (struct cw_stepdelivery){a, r};
        p->silent = p->missing = false;
        p->n_heard++;
        if (r->eof) {
            p->over = true;
            p->cause = r->has_cause ? r->cause : CW__CAUSE__CAUSE_EXIT;
        }
        tell(p);
    }
    unlock(p);
    return taken;
}

static void read_output(struct cw_steppart *p, struct cw_rpc_client *rpc)
{
    uint64_t seq = 1;
    for (bool eof = false; !eof;) {
        struct cw_arena *a = cw_arena_create();
        const Cw__StepReadReply *r = NULL;
        struct cw_error err = {0};
        if (ask_read(p, rpc, seq, a, &r, &err) < 0) {
            cw_arena_destroy(a);
            if (!again(p, rpc, &err))
                return;
            continue;
        }
        seq = r->next_seq > seq ? r->next_seq : seq;
        eof = r->eof;
        if (!deliver(p, a, r)) {
            cw_arena_destroy(a);
            return;
        }
    }
}

static int open_rpc(struct cw_steppart *p, struct cw_rpc_client **ret, struct cw_error *err)
{
    int rc = cw_rpc_client_open(p->address, p->public_key, NULL, NULL, ret, err);
    if (rc == 0)
        cw_rpc_client_set_interrupt(*ret, &p->session->stop);
    return rc;
}

static void *run_reader(void *arg)
{
    struct cw_steppart *p = arg;
    struct cw_rpc_client *rpc;
    struct cw_error err = {0};
    if (open_rpc(p, &rpc, &err) < 0) {
        set_over(p, true, &err);
        return NULL;
    }
    if (start_tasks(p, rpc))
        read_output(p, rpc);
    cw_rpc_client_close(rpc);
    return NULL;
}

/* ---- input and signals ---------------------------------------------------------------------- */

static bool has_input(const struct cw_steppart *p)
{
    const struct cw_stepsession *s = p->session;
    bool more = p->taken < s->in_base + s->input.len || (s->in_eof && !p->eof_sent);
    return p->started && !p->in_closed && more;
}

static void send_ctl(struct cw_steppart *p, struct cw_rpc_client *rpc, const struct cw_stepctl *k)
{
    struct cw_arena *a = cw_arena_create();
    Cw__StepCtlRequest q = CW__STEP_CTL_REQUEST__INIT;
    ProtobufCMessage *m;
    struct cw_error err;
    q.ticket = ticket_of(p, a);
    q.verb = k->verb;
    q.has_signal = k->signal != 0;
    q.signal = k->signal;
    q.has_rows = q.has_cols = k->rows != 0;
    q.rows = k->rows;
    q.cols = k->cols;
    /* One that does not arrive: the node is away, and the user asks again. */
    (void)cw_rpc_client_call(rpc, CW_KIND_STEP_CTL, &q.base, CTL_MS, a, &m, &err);
    cw_arena_destroy(a);
}

static void took(struct cw_steppart *p, const Cw__StepWriteReply *r, bool eof, uint64_t behind)
{
    struct cw_stepsession *s = p->session;
    lock(p);
    if (r->taken > p->taken)
        p->taken = r->taken;
    p->eof_sent = p->eof_sent || (eof && r->taken >= behind);
    p->in_closed = r->has_closed && r->closed;
    uint64_t least = s->in_base + s->input.len;
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->parts[i].in_closed && !s->parts[i].over && s->parts[i].taken < least)
            least = s->parts[i].taken;
    size_t n = (size_t)(least - s->in_base);
    if (n > 0) {
        memmove(s->input.data, s->input.data + n, s->input.len - n);
        s->input.len -= n;
        s->in_base = least;
    }
    tell(p);
    unlock(p);
}

static void send_input(struct cw_steppart *p, struct cw_rpc_client *rpc)
{
    struct cw_arena *a = cw_arena_create();
    const struct cw_stepsession *s = p->session;
    Cw__StepWriteRequest q = CW__STEP_WRITE_REQUEST__INIT;
    ProtobufCMessage *m;
    struct cw_error err = {0};
    q.ticket = ticket_of(p, a);
    lock(p);
    q.offset = p->taken > s->in_base ? p->taken : s->in_base;
    size_t at = (size_t)(q.offset - s->in_base), n = s->input.len - at;
    n = n > WRITE_MAX ? WRITE_MAX : n;
    q.has_data = n > 0;
    q.data.len = n;
    q.data.data = cw_arena_alloc(a, n + 1);
    if (n > 0)
        memcpy(q.data.data, s->input.data + at, n);
    q.has_eof = q.eof = s->in_eof && at + n == s->input.len;
    unlock(p);
    q.has_wait_ms = true;
    q.wait_ms = WRITE_WAIT_MS;
    if (cw_rpc_client_call(rpc, CW_KIND_STEP_WRITE, &q.base, WRITE_WAIT_MS + ANSWER_MS, a, &m,
                           &err) == 0)
        took(p, (const Cw__StepWriteReply *)m, q.eof, q.offset + n);
    else if (err.code == -ENOENT) /* it is over there; the reader finds out how */
        took(p, &(Cw__StepWriteReply){.taken = q.offset, .has_closed = true, .closed = true}, false,
             0);
    else
        cw_rpc_client_pause(rpc, AGAIN_MS);
    cw_arena_destroy(a);
}

static void *run_talker(void *arg)
{
    struct cw_steppart *p = arg;
    struct cw_stepsession *s = p->session;
    struct cw_rpc_client *rpc = NULL;
    struct cw_error err;
    lock(p);
    while (s->stop == 0 && !p->over) {
        struct cw_stepctl k;
        bool ctl = p->started && p->n_ctl > 0, input = has_input(p);
        if (!ctl && !input) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        if (ctl) {
            k = p->ctl[0];
            memmove(p->ctl, p->ctl + 1, --p->n_ctl * sizeof k);
        }
        unlock(p);
        if (rpc == NULL && open_rpc(p, &rpc, &err) < 0)
            return NULL;
        if (ctl)
            send_ctl(p, rpc, &k);
        else
            send_input(p, rpc);
        lock(p);
    }
    unlock(p);
    cw_rpc_client_close(rpc);
    return NULL;
}

int cw_steppart_begin(struct cw_steppart *p, struct cw_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the caller's */
    int rc = pthread_create(&p->reader, NULL, run_reader, p);
    if (rc == 0 && (rc = pthread_create(&p->talker, NULL, run_talker, p)) != 0) {
        p->session->stop = 1;
        pthread_join(p->reader, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return cw_fail(err, -rc, "thread for node %s: %s", p->name, strerror(rc));
    p->threads = true;
    return 0;
}
