/* Reading a task's log through its node. The controller's ticket names node, address and key; the
 * reader then asks the node directly, one chunk at a time, and its own offset is all the state
 * there is: a lost answer, a restarted node daemon or a new ticket cost nothing but the next
 * question. Test: client_test.c. */
#include "config.h"

#include "client/client.h"

#include "base/clock.h"
#include "proto/walk.h"
#include "wire/rpc_client.h"

#include <string.h>

#define CHUNK_BYTES      65536u
#define NODE_TIMEOUT_MS  5000u              /* beyond the wait that was asked for */
#define RENEW_NS         (30 * CW_NS_PER_S) /* before a ticket expires */
#define TICKET_MAC       32u
#define ASK_AGAIN_MS     50u /* a job that has not started; doubling */
#define ASK_AGAIN_MAX_MS 1000u

struct cw_logreader {
    struct cw_client *client;
    char *id;
    uint32_t attempt; /* 0: the newest; pinned by the first ticket */
    bool stderr_stream;
    uint64_t offset;
    bool from_end;
    struct cw_arena *arena; /* of the ticket */
    const Cw__TicketReply *ticket;
    int64_t expires_ns;
    struct cw_rpc_client *node;
};

/* The node checks the ticket; here only its expiry is of interest. */
static int64_t expiry_of(const ProtobufCBinaryData *ticket, struct cw_arena *a)
{
    ProtobufCMessage *m = NULL;

    if (ticket->len <= TICKET_MAC || cw_walk_unpack(&cw__ticket_body__descriptor, ticket->data,
                                                    ticket->len - TICKET_MAC, a, &m, NULL) < 0)
        return 0;
    return ((const Cw__TicketBody *)(const void *)m)->expires_ns;
}

static void drop_ticket(struct cw_logreader *r)
{
    cw_rpc_client_close(r->node);
    cw_arena_destroy(r->arena);
    r->node = NULL;
    r->arena = NULL;
    r->ticket = NULL;
}

static int open_node(struct cw_logreader *r, struct cw_error *err)
{
    int e;

    if (r->ticket->public_key.len != 32)
        return cw_fail(err, -EPROTO, "node %s: the controller names no key for it",
                       r->ticket->node);
    e = cw_rpc_client_open(r->ticket->address, r->ticket->public_key.data, NULL, NULL, &r->node,
                           err);
    if (e == 0)
        cw_rpc_client_set_interrupt(r->node, cw_client_interrupt(r->client));
    return e;
}

static int get_ticket(struct cw_logreader *r, struct cw_error *err)
{
    Cw__TicketRequest q = CW__TICKET_REQUEST__INIT;
    ProtobufCMessage *m = NULL;
    int e;

    drop_ticket(r);
    r->arena = cw_arena_create();
    q.id = r->id;
    q.has_attempt = r->attempt != 0;
    q.attempt = r->attempt;
    q.right = "logs";
    e = cw_client_call(r->client, CW_KIND_TICKET, &q.base, 0, r->arena, &m, err);
    if (e < 0)
        return e;
    r->ticket = (const Cw__TicketReply *)(const void *)m;
    r->attempt = r->ticket->attempt->attempt;
    r->expires_ns = expiry_of(&r->ticket->ticket, r->arena);
    return open_node(r, err);
}

int cw_logreader_open(struct cw_client *c, const char *id, uint32_t attempt, bool stderr_stream,
                      struct cw_logreader **ret, struct cw_error *err)
{
    struct cw_logreader *r = cw_xcalloc(1, sizeof(*r));
    int e;

    r->client = c;
    r->id = cw_xstrdup(id);
    r->attempt = attempt;
    r->stderr_stream = stderr_stream;
    e = get_ticket(r, err);
    if (e < 0 && e != -EAGAIN) {
        cw_logreader_close(r);
        return e;
    }
    *ret = r;
    return 0;
}

void cw_logreader_close(struct cw_logreader *r)
{
    if (r == NULL)
        return;
    drop_ticket(r);
    free(r->id);
    free(r);
}

void cw_logreader_seek_end(struct cw_logreader *r, uint64_t back_bytes)
{
    r->offset = back_bytes;
    r->from_end = true;
}

static int ask_node(struct cw_logreader *r, uint32_t wait_ms, struct cw_arena *a,
                    const Cw__LogReply **ret, struct cw_error *err)
{
    Cw__LogRequest q = CW__LOG_REQUEST__INIT;
    ProtobufCMessage *m = NULL;
    int e;

    q.ticket = r->ticket->ticket;
    q.offset = r->offset;
    q.has_stderr_stream = true;
    q.stderr_stream = r->stderr_stream;
    q.has_max = true;
    q.max = CHUNK_BYTES;
    q.has_wait_ms = wait_ms > 0;
    q.wait_ms = wait_ms;
    q.has_from_end = r->from_end;
    q.from_end = r->from_end;
    e = cw_rpc_client_call(r->node, CW_KIND_LOG, &q.base, wait_ms + NODE_TIMEOUT_MS, a, &m, err);
    if (e == 0)
        *ret = (const Cw__LogReply *)(const void *)m;
    return e;
}

static bool new_ticket_may_help(int e)
{
    return e == -EHOSTUNREACH || e == -EKEYEXPIRED || e == -EACCES || e == -EBADMSG;
}

static int ask_or_renew(struct cw_logreader *r, uint32_t wait_ms, struct cw_arena *a,
                        const Cw__LogReply **ret, struct cw_error *err)
{
    struct cw_error why = {.code = 0};
    int e = -EKEYEXPIRED;

    if (r->ticket != NULL && r->expires_ns - cw_clock_real_ns() > RENEW_NS)
        e = ask_node(r, wait_ms, a, ret, &why);
    if (e == 0)
        return 0;
    if (!new_ticket_may_help(e))
        return cw_fail(err, e, "%s", why.text);
    e = get_ticket(r, err);
    if (e == 0)
        e = ask_node(r, wait_ms, a, ret, err);
    return e == -EHOSTUNREACH && r->ticket != NULL
               ? cw_fail(err, -EIO, "log of job %s: node %s does not answer at %s", r->id,
                         r->ticket->node, r->ticket->address)
               : e;
}

/* -EAGAIN, from the controller or the node: nothing to read from yet. Asks again until there is, or
 * the wait is over. */
static int ask_until_started(struct cw_logreader *r, uint32_t wait_ms, struct cw_arena *a,
                             const Cw__LogReply **ret, struct cw_error *err)
{
    int64_t until_ms = cw_clock_mono_ns() / CW_NS_PER_MS + wait_ms;
    uint32_t pause_ms = ASK_AGAIN_MS;

    for (;;) {
        int e = ask_or_renew(r, wait_ms, a, ret, err);
        int64_t left_ms = until_ms - cw_clock_mono_ns() / CW_NS_PER_MS;

        if (e != -EAGAIN)
            return e;
        /* A ticket from before the start names no file: the node may have forgotten the task when
         * the controller knows it well. */
        if (r->ticket != NULL && r->ticket->attempt->stdout_path == NULL)
            drop_ticket(r);
        if (left_ms <= 0)
            return e;
        wait_ms = (uint32_t)left_ms;
        if (cw_client_pause(r->client, wait_ms < pause_ms ? wait_ms : pause_ms) < 0)
            return cw_fail(err, -EINTR, "interrupted");
        pause_ms = pause_ms * 2 > ASK_AGAIN_MAX_MS ? ASK_AGAIN_MAX_MS : pause_ms * 2;
    }
}

int cw_logreader_read(struct cw_logreader *r, uint32_t wait_ms, struct cw_buf *ret, bool *ret_eof,
                      struct cw_error *err)
{
    struct cw_arena *a = cw_arena_create();
    const Cw__LogReply *reply = NULL;
    int e = ask_until_started(r, wait_ms, a, &reply, err);

    if (e == -EAGAIN && wait_ms > 0) {
        *ret_eof = false;
        cw_arena_destroy(a);
        return 0;
    }
    /* Before our place: the job has cut its own file; go on where it ends now. */
    if (e == 0 && !r->from_end && reply->offset > r->offset)
        e = cw_fail(err, -EPROTO, "log of job %s: node %s answered for another place", r->id,
                    r->ticket->node);
    if (e == 0) {
        cw_buf_add(ret, reply->data.data, reply->data.len);
        r->offset = reply->offset + reply->data.len;
        r->from_end = false;
        *ret_eof = reply->eof;
    }
    cw_arena_destroy(a);
    return e;
}
