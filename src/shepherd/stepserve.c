/* Requests to steps; see stepserve.h. */
#include "shepherd/stepserve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "proto/walk.h"
#include "shepherd/ending.h"
#include "shepherd/stepcall.h"
#include "shepherd/stepio.h"
#include "shepherd/steppty.h"
#include "shepherd/stepreport.h"
#include "shepherd/stepset.h"
#include "shepherd/steptask.h"

#define WAIT_MAX_MS   60000u
#define READ_MAX      61440u /* with its heads below what travels without a memfd */
#define CHUNKS_MAX    256u
#define CALLS_MAX     64u /* waiting at one step */

/* A READ or WRITE that waits. */
struct waiting {
    struct cw_list link;
    uint64_t token;
    bool write;
    uint64_t seq; /* READ */
    size_t max;
    uint64_t offset; /* WRITE: behind what is there to take; its data comes again */
    int64_t until;
};

/* ---- answers -------------------------------------------------------------------------------- */

static void answer(struct cw_herd *h, uint64_t token, int code, bool retry, const void *body,
                   size_t n)
{
    struct cw_stepanswer a = { token, code, retry, body, n };
    cw_autobuf struct cw_buf b = { 0 };
    cw_stepanswer_pack(&a, &b);
    cw_herd_tell(h, CW_PACKET_STEP_ANSWER, b.data, b.len);
}

static void answer_message(struct cw_herd *h, uint64_t token, const ProtobufCMessage *m)
{
    cw_autobuf struct cw_buf b = { 0 };
    cw_walk_pack(m, &b);
    answer(h, token, 0, false, b.data, b.len);
}

static void refuse(struct cw_herd *h, uint64_t token, int code, const char *text)
{
    answer(h, token, code, code == -EAGAIN, text, strlen(text));
}

/* ---- READ ----------------------------------------------------------------------------------- */

static bool at_eof(const struct cw_step *s, uint64_t seq)
{
    return cw_step_over(s) && cw_stepio_at_end(s) && seq >= cw_stepring_next(s->ring);
}

static size_t take_chunks(struct cw_step *s, uint64_t seq, size_t max, Cw__StepChunk *chunks)
{
    size_t n = 0, bytes = 0;
    while (n < CHUNKS_MAX) {
        struct cw_stepchunk *c = NULL;
        if (seq < cw_stepring_next(s->ring))
            c = cw_stepring_take(s->ring, seq);
        if (c == NULL || (n > 0 && bytes + c->data.len > max))
            break;
        Cw__StepChunk *m = &chunks[n++];
        cw__step_chunk__init(m);
        m->seq = c->seq;
        m->rank = c->rank;
        m->err = c->err;
        m->data = (ProtobufCBinaryData){ c->data.len, (uint8_t *)c->data.data };
        bytes += c->data.len;
        seq = c->seq + 1;
    }
    return n;
}

static void answer_read(struct cw_step *s, uint64_t token, uint64_t seq, size_t max)
{
    Cw__StepReadReply m = CW__STEP_READ_REPLY__INIT;
    static Cw__StepChunk chunks[CHUNKS_MAX];
    Cw__StepChunk *list[CHUNKS_MAX];
    uint64_t first = cw_stepring_first(s->ring);
    cw_autofree Cw__StepTaskEnd *ends = cw_xcalloc(s->n, sizeof *ends);
    cw_autofree Cw__StepTaskEnd **end_list = cw_xcalloc(s->n, sizeof *end_list);
    m.n_chunks = take_chunks(s, seq, max, chunks);
    m.chunks = list;
    for (size_t i = 0; i < m.n_chunks; i++)
        list[i] = &chunks[i];
    m.next_seq = m.n_chunks > 0 ? chunks[m.n_chunks - 1].seq + 1 : seq > first ? seq : first;
    m.has_lost = seq > 0 && first > seq;
    m.lost = first;
    m.ends = end_list;
    for (size_t i = 0; i < s->n; i++)
        if (s->tasks[i].ended) {
            cw_stepreport_rank(&s->tasks[i], &ends[m.n_ends]);
            end_list[m.n_ends] = &ends[m.n_ends];
            m.n_ends++;
        }
    m.eof = at_eof(s, m.next_seq);
    m.has_cause = m.eof;
    m.cause = (Cw__Cause)s->cause;
    s->n_told = s->n_ended;
    s->eof_told |= m.eof;
    answer_message(s->herd, token, &m.base);
    cw_stepset_heard(s);
}

static bool worth_reading(const struct cw_step *s, uint64_t seq)
{
    return seq < cw_stepring_next(s->ring) || s->n_told < s->n_ended || at_eof(s, seq);
}

static void enqueue(struct cw_step *s, const struct waiting *w)
{
    size_t n = 0;
    cw_list_each(l, &s->calls)
        n++;
    if (n >= CALLS_MAX) {
        refuse(s->herd, w->token, -EAGAIN, "too many requests wait at this step");
        return;
    }
    struct waiting *copy = cw_xmemdup(w, sizeof *w);
    copy->link = (struct cw_list){ NULL, NULL };
    cw_list_add_tail(&s->calls, &copy->link);
    cw_herd_wake(s->herd, w->until);
}

static int64_t patience(bool has, uint32_t ms)
{
    return cw_herd_now_ms() + (!has ? 0 : ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS);
}

static void on_read(struct cw_step *s, uint64_t token, const Cw__StepReadRequest *r)
{
    uint64_t seq = r->seq > 0 ? r->seq : 1;
    struct waiting w = { .token = token,
                         .seq = seq,
                         .max = r->has_max && r->max < READ_MAX ? r->max : READ_MAX,
                         .until = patience(r->has_wait_ms, r->wait_ms) };
    if (!s->detached)
        cw_stepring_ack(s->ring, seq);
    cw_stepio_resume(s);
    if (cw_step_over(s))
        cw_stepio_drain(s, false); /* what had no room before */
    cw_stepset_heard(s);
    if (worth_reading(s, seq) || w.until <= cw_herd_now_ms())
        answer_read(s, token, seq, w.max);
    else
        enqueue(s, &w);
}

/* ---- WRITE ---------------------------------------------------------------------------------- */

static void answer_write(struct cw_step *s, uint64_t token)
{
    Cw__StepWriteReply m = CW__STEP_WRITE_REPLY__INIT;
    m.taken = s->in_base + s->in.len;
    m.has_closed = 1;
    m.closed = cw_stepio_input_closed(s);
    answer_message(s->herd, token, &m.base);
}

static void on_write(struct cw_step *s, uint64_t token, const Cw__StepWriteRequest *r)
{
    uint64_t before = s->in_base + s->in.len;
    cw_stepset_heard(s);
    if (r->offset > before) {
        refuse(s->herd, token, -EINVAL, "input that follows on what has not come yet");
        return;
    }
    uint64_t behind = r->offset + (r->has_data ? r->data.len : 0);
    uint64_t now = cw_stepio_write(s, r->offset, r->data.data, r->has_data ? r->data.len : 0,
                                   r->has_eof && r->eof);
    struct waiting w = { .token = token,
                         .write = true,
                         .offset = now,
                         .until = patience(r->has_wait_ms, r->wait_ms) };
    if (now > before || now >= behind || cw_stepio_input_closed(s) ||
        w.until <= cw_herd_now_ms())
        answer_write(s, token);
    else
        enqueue(s, &w);
}

/* ---- who waits ------------------------------------------------------------------------------ */

static bool can_answer(const struct cw_step *s, const struct waiting *w)
{
    if (w->write) /* there is room again; the reader sends the rest once more */
        return s->in.len < CW_STEP_IN_BYTES || cw_stepio_input_closed(s);
    return worth_reading(s, w->seq);
}

static void settle(struct cw_step *s, int64_t now)
{
    cw_list_each_safe(l, &s->calls) {
        struct waiting *w = cw_list_entry(l, struct waiting, link);
        if (!can_answer(s, w) && w->until > now) {
            cw_herd_wake(s->herd, w->until);
            continue;
        }
        cw_list_remove(l);
        if (w->write)
            answer_write(s, w->token);
        else
            answer_read(s, w->token, w->seq, w->max);
        free(w);
    }
}

void cw_stepserve_news(struct cw_step *s)
{
    settle(s, INT64_MIN);
}

void cw_stepserve_due(struct cw_step *s, int64_t now_ms)
{
    settle(s, now_ms);
}

bool cw_stepserve_waiting(const struct cw_step *s)
{
    for (const struct cw_list *l = s->calls.next; l != &s->calls; l = l->next)
        if (!cw_list_entry(l, struct waiting, link)->write)
            return true;
    return false;
}

void cw_stepserve_drop(struct cw_step *s)
{
    cw_list_each_safe(l, &s->calls) {
        cw_list_remove(l);
        free(cw_list_entry(l, struct waiting, link));
    }
}

/* ---- CTL, STAT ------------------------------------------------------------------------------ */

static int control(struct cw_step *s, const Cw__StepCtlRequest *r)
{
    switch (r->verb) {
    case CW__STEP_VERB__STEP_SIGNAL:
        if (!r->has_signal || r->signal == 0 || r->signal > 64)
            return -EINVAL;
        cw_steptask_signal(s, (int)r->signal);
        return 0;
    case CW__STEP_VERB__STEP_WINDOW:
        return s->pty < 0 ? -ENOTTY : cw_steppty_window(s->pty, r->rows, r->cols);
    case CW__STEP_VERB__STEP_DETACH:
        s->detached = true;
        cw_stepio_resume(s);
        return 0;
    case CW__STEP_VERB__STEP_KILL:
        cw_stepset_kill(s, CW__CAUSE__CAUSE_CANCEL,
                        r->has_signal && r->signal == SIGKILL ? 0 : s->task->kill_grace_ms);
        return 0;
    case _CW__STEP_VERB_IS_INT_SIZE:
        break;
    }
    return -EINVAL;
}

static void on_ctl(struct cw_step *s, uint64_t token, const Cw__StepCtlRequest *r)
{
    Cw__StepCtlReply m = CW__STEP_CTL_REPLY__INIT;
    int rc = control(s, r);
    cw_stepset_heard(s);
    if (rc < 0)
        refuse(s->herd, token, rc, rc == -ENOTTY ? "this step has no terminal" : strerror(-rc));
    else
        answer_message(s->herd, token, &m.base);
}

static void on_stat(struct cw_herd *h, struct cw_task *t, uint64_t token)
{
    Cw__StatReply m = CW__STAT_REPLY__INIT;
    Cw__Usage usage = CW__USAGE__INIT;
    int n = cw_ending_usage(t, &usage, &m.mem_bytes);
    m.has_mem_bytes = m.mem_bytes > 0;
    m.usage = &usage;
    m.has_processes = n >= 0;
    m.processes = n >= 0 ? (uint32_t)n : 0;
    m.has_now_ns = 1;
    m.now_ns = cw_clock_real_ns();
    answer_message(h, token, &m.base);
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* STAT only looks; the others are for steps of running tasks. NULL: refused. */
static struct cw_task *task_of(struct cw_herd *h, const struct cw_stepcall *c,
                               const Cw__TicketBody *f)
{
    char key[36];
    snprintf(key, sizeof key, "%llu.%u", (unsigned long long)f->id, f->attempt);
    struct cw_task *t = cw_strtable_find(h->by_key, key);
    if (t == NULL)
        refuse(h, c->token, -ESRCH, "the job is not on this node any more");
    else if (f->owner == NULL || f->owner->uid != t->uid)
        refuse(h, c->token, -EACCES, "this ticket is for another user's job");
    else
        return t;
    return NULL;
}

static void on_start(struct cw_herd *h, struct cw_task *t, uint64_t token, const Cw__TicketBody *f,
                     const Cw__StepStartRequest *r)
{
    Cw__StepStartReply m = CW__STEP_START_REPLY__INIT;
    struct cw_error err = { 0 };
    int rc = 0;
    if (cw_stepset_find(t, f->step) == NULL) {
        if (cw_idset_has(&t->past_steps, f->step))
            rc = cw_fail(&err, -ENOENT, "step %u of job %s is over", f->step, t->key);
        else if (t->phase != CW_TASK_RUNNING || t->kill_cause != 0)
            rc = cw_fail(&err, -ESRCH, "job %s is ending", t->key);
        else if (f->layout == NULL || f->layout->grant == NULL)
            rc = cw_fail(&err, -EINVAL, "this ticket starts no step");
        else
            rc = cw_stepset_begin(h, t, f->step, f->layout, r->spec, &err);
    }
    if (rc < 0)
        refuse(h, token, rc, err.text);
    else
        answer_message(h, token, &m.base);
}

static const ProtobufCMessageDescriptor *request_of(uint32_t kind)
{
    switch (kind) {
    case CW_STEPCALL_START:
        return &cw__step_start_request__descriptor;
    case CW_STEPCALL_READ:
        return &cw__step_read_request__descriptor;
    case CW_STEPCALL_WRITE:
        return &cw__step_write_request__descriptor;
    case CW_STEPCALL_CTL:
        return &cw__step_ctl_request__descriptor;
    case CW_STEPCALL_STAT:
        return &cw__stat_request__descriptor;
    default:
        return NULL;
    }
}

static void dispatch(struct cw_herd *h, struct cw_task *t, const struct cw_stepcall *c,
                     const Cw__TicketBody *f, const ProtobufCMessage *m)
{
    if (c->kind == CW_STEPCALL_STAT) {
        on_stat(h, t, c->token);
        return;
    }
    if (c->kind == CW_STEPCALL_START) {
        on_start(h, t, c->token, f, (const Cw__StepStartRequest *)m);
        return;
    }
    struct cw_step *s = f->has_step ? cw_stepset_find(t, f->step) : NULL;
    if (s == NULL)
        refuse(h, c->token, -ENOENT, "there is no such step here, or it is over");
    else if (c->kind == CW_STEPCALL_READ)
        on_read(s, c->token, (const Cw__StepReadRequest *)m);
    else if (c->kind == CW_STEPCALL_WRITE)
        on_write(s, c->token, (const Cw__StepWriteRequest *)m);
    else
        on_ctl(s, c->token, (const Cw__StepCtlRequest *)m);
}

void cw_stepserve_call(struct cw_herd *h, const void *body, size_t n)
{
    struct cw_stepcall c;
    struct cw_error err = { 0 };
    ProtobufCMessage *facts, *m;
    if (cw_stepcall_unpack(body, n, &c) < 0)
        return;
    struct cw_arena *a = cw_arena_create();
    const ProtobufCMessageDescriptor *d = request_of(c.kind);
    int rc = d == NULL ? cw_fail(&err, -ENOTSUP, "this shepherd does not know such a request")
                       : cw_walk_unpack(&cw__ticket_body__descriptor, c.facts, c.n_facts, a,
                                        &facts, &err);
    if (rc == 0)
        rc = cw_walk_unpack(d, c.request, c.n_request, a, &m, &err);
    if (rc < 0) {
        refuse(h, c.token, rc, err.text);
    } else {
        const Cw__TicketBody *f = (const Cw__TicketBody *)facts;
        struct cw_task *t = task_of(h, &c, f);
        if (t != NULL)
            dispatch(h, t, &c, f, m);
    }
    cw_arena_destroy(a);
}
