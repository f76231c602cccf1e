/* Bodies of the packets of steps; see stepcall.h. */
#include "shepherd/stepcall.h"

#include <errno.h>
#include <string.h>

struct call_head {
    uint64_t token;
    uint32_t kind, n_facts;
};
struct answer_head {
    uint64_t token;
    int32_t code;
    uint32_t retry;
};
struct ack_body {
    uint64_t id;
    uint32_t attempt, step, end, reserved;
};

static void add(struct cw_buf *out, const void *p, size_t n)
{
    if (n > 0)
        cw_buf_add(out, p, n);
}

void cw_stepcall_pack(const struct cw_stepcall *c, struct cw_buf *out)
{
    struct call_head h = { c->token, c->kind, (uint32_t)c->n_facts };
    add(out, &h, sizeof h);
    add(out, c->facts, c->n_facts);
    add(out, c->request, c->n_request);
}

int cw_stepcall_unpack(const void *p, size_t n, struct cw_stepcall *ret)
{
    struct call_head h;
    if (n < sizeof h)
        return -EBADMSG;
    memcpy(&h, p, sizeof h);
    if (h.n_facts > n - sizeof h)
        return -EBADMSG;
    const char *rest = (const char *)p + sizeof h;
    *ret = (struct cw_stepcall){ .token = h.token,
                                 .kind = h.kind,
                                 .facts = rest,
                                 .n_facts = h.n_facts,
                                 .request = rest + h.n_facts,
                                 .n_request = n - sizeof h - h.n_facts };
    return 0;
}

void cw_stepanswer_pack(const struct cw_stepanswer *a, struct cw_buf *out)
{
    struct answer_head h = { a->token, a->code, a->retry };
    add(out, &h, sizeof h);
    add(out, a->body, a->n);
}

int cw_stepanswer_unpack(const void *p, size_t n, struct cw_stepanswer *ret)
{
    struct answer_head h;
    if (n < sizeof h)
        return -EBADMSG;
    memcpy(&h, p, sizeof h);
    if (h.code > 0)
        return -EBADMSG;
    *ret = (struct cw_stepanswer){ .token = h.token,
                                   .code = h.code,
                                   .retry = h.retry != 0,
                                   .body = (const char *)p + sizeof h,
                                   .n = n - sizeof h };
    return 0;
}

void cw_stepack_pack(const struct cw_stepack *a, struct cw_buf *out)
{
    struct ack_body b = { a->id, a->attempt, a->step, a->end, 0 };
    add(out, &b, sizeof b);
}

int cw_stepack_unpack(const void *p, size_t n, struct cw_stepack *ret)
{
    struct ack_body b;
    if (n != sizeof b)
        return -EBADMSG;
    memcpy(&b, p, sizeof b);
    *ret = (struct cw_stepack){ b.id, b.attempt, b.step, b.end != 0 };
    return 0;
}
