/* Calls in progress and how they end: a reply goes along the route of the newest frame with its
 * request id, because an older route may be a closed socket; what changes state leaves its answer
 * behind. Test: rpc_test.c, rpc_raw_test.c. */
#include "config.h"

#include "wire/rpc_call.h"

#include "proto/walk.h"
#include "proto/wire.pb-c.h"

#include <stdio.h>
#include <string.h>

void cw_rpc_call_pack_failure(int code, const char *text, bool retry, struct cw_buf *out)
{
    Cw__Failure m = CW__FAILURE__INIT;

    m.code = code < 0 ? -code : EIO;
    m.text = (char *)(text != NULL && text[0] != '\0' ? text : strerror(m.code));
    m.has_retry = retry;
    m.retry = retry;
    cw_walk_pack(&m.base, out);
}

void cw_rpc_call_send(struct cw_rpc_server *s, const struct cw_channel *ch,
                      const struct cw_route *route, struct cw_frame *f, const void *body,
                      size_t len)
{
    f->epoch = s->conf.epoch;
    cw_buf_clear(&s->out);
    cw_channel_seal(ch, f, body, len, &s->out);
    /* Loss is silent here; the client asks again with the same id. */
    (void)cw_nnsock_send(s->sock, route, s->out.data, s->out.len);
}

void cw_rpc_call_send_reply(struct cw_rpc_server *s, const struct cw_channel *ch,
                            const struct cw_route *route, unsigned kind, const uint8_t id[16],
                            bool failure, const void *body, size_t len)
{
    struct cw_frame f = {.type = CW_FRAME_REPLY, .kind = (uint16_t)kind, .seq = failure ? 1 : 0};

    memcpy(f.request_id, id, 16);
    cw_rpc_call_send(s, ch, route, &f, body, len);
}

size_t cw_rpc_call_count(struct cw_rpc_server *s, uint32_t uid, int add)
{
    size_t n;

    if (s->calls_of == NULL)
        return 0;
    n = (size_t)(uintptr_t)cw_idtable_find(s->calls_of, uid);
    n = add < 0 ? n - 1 : n + (size_t)add;
    if (add != 0 && n == 0)
        (void)cw_idtable_remove(s->calls_of, uid);
    else if (add != 0)
        (void)cw_idtable_set(s->calls_of, uid, (void *)(uintptr_t)n);
    return n;
}

void cw_rpc_call_detach(struct cw_rpc_call *c)
{
    struct cw_rpc_server *s = c->server;
    struct cw_rpc_seen *seen;

    if (s == NULL)
        return;
    seen = cw_rpc_peer_seen(c->peer, c->id);
    if (seen != NULL)
        seen->call = NULL;
    c->peer->calls--;
    c->peer = NULL;
    c->server = NULL;
    cw_list_remove(&c->item);
    s->n_calls--;
    (void)cw_rpc_call_count(s, c->identity.uid, -1);
    s->call_bytes -= c->body.len;
}

static void destroy_call(struct cw_rpc_call *c)
{
    cw_rpc_call_detach(c);
    cw_arena_destroy(c->arena);
    cw_buf_fini(&c->body);
    free(c);
}

static void end_call(struct cw_rpc_call *c, bool failure, const struct cw_buf *body)
{
    struct cw_rpc_server *s = c->server;

    if (s != NULL) {
        cw_rpc_call_send_reply(s, &c->peer->channel, &c->route, c->kind, c->id, failure, body->data,
                               body->len);
        if (c->answer != NULL)
            cw_rpc_answers_finish(s->answers, c->answer, failure, body->data, body->len,
                                  cw_loop_now_ms(s->loop));
    }
    destroy_call(c);
}

void cw_rpc_reply_failure(struct cw_rpc_call *c, int code, const char *text, bool retry)
{
    cw_autobuf struct cw_buf body = {0};

    cw_rpc_call_pack_failure(code, text, retry, &body);
    end_call(c, true, &body);
}

void cw_rpc_reply(struct cw_rpc_call *c, const ProtobufCMessage *m)
{
    cw_autobuf struct cw_buf body = {0};

    cw_walk_pack(m, &body);
    if (body.len > CW_FRAME_BODY_MAX) {
        char text[160];

        (void)snprintf(text, sizeof(text),
                       "the answer takes %zu bytes, one frame holds %u: ask for less at a time",
                       body.len, CW_FRAME_BODY_MAX);
        cw_rpc_reply_failure(c, -EMSGSIZE, text, false);
        return;
    }
    end_call(c, false, &body);
}

void cw_rpc_drop(struct cw_rpc_call *c)
{
    if (c->server != NULL && c->answer != NULL)
        cw_rpc_answers_forget(c->server->answers, c->answer);
    destroy_call(c);
}

enum cw_kind cw_rpc_call_kind(const struct cw_rpc_call *c)
{
    return c->kind;
}

const struct cw_identity *cw_rpc_call_identity(const struct cw_rpc_call *c)
{
    return &c->identity;
}

const struct cw_buf *cw_rpc_call_body(const struct cw_rpc_call *c)
{
    return &c->body;
}

struct cw_arena *cw_rpc_call_arena(struct cw_rpc_call *c)
{
    if (c->arena == NULL)
        c->arena = cw_arena_create();
    return c->arena;
}
