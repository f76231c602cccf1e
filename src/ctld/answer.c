/* answer.c: replies wait for the turn. A failure carries state too ("job 12 does not exist"), so it
 * waits like a success. Tested through the component tests. */
#include "ctld/answer.h"

#include <stdio.h>

#include "ctld/turn.h"

struct answer {
    struct cw_rpc_call *call;
    const ProtobufCMessage *m; /* NULL: a failure */
    int code;
    char text[CW_ERROR_MAX];
};

static void answer_success(void *arg, bool committed)
{
    struct answer *a = arg;
    if (committed)
        cw_rpc_reply(a->call, a->m);
    else
        cw_rpc_drop(a->call);
}

static void answer_refusal(void *arg, bool committed)
{
    struct answer *a = arg;
    if (committed)
        cw_rpc_reply_failure(a->call, a->code, a->text, a->code == -EAGAIN);
    else
        cw_rpc_drop(a->call);
    free(a);
}

void cw_answer(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m)
{
    if (cw_turn_failing(c->turn, NULL))
        cw_rpc_reply(call, m);
    else
        cw_answer_after_commit(c, call, m);
}

bool cw_answer_if_failing(struct cw_ctld *c, struct cw_rpc_call *call)
{
    struct cw_error err;
    char text[CW_ERROR_MAX];
    if (!cw_turn_failing(c->turn, &err))
        return false;
    snprintf(text, sizeof text, "nothing can be changed now, the state cannot be stored: %.400s",
             err.text);
    cw_rpc_reply_failure(call, -EAGAIN, text, true);
    return true;
}

void cw_answer_after_commit(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m)
{
    struct answer *a = cw_arena_alloc(cw_rpc_call_arena(call), offsetof(struct answer, text));
    a->call = call;
    a->m = m;
    cw_turn_after(c->turn, CW_TURN_REPLY, answer_success, a);
}

void cw_answer_failure(struct cw_ctld *c, struct cw_rpc_call *call, const struct cw_error *err)
{
    int code = err->code < 0 ? err->code : -EIO;
    if (cw_turn_failing(c->turn, NULL)) {
        cw_rpc_reply_failure(call, code, err->text, code == -EAGAIN);
        return;
    }
    struct answer *a = cw_xcalloc(1, sizeof *a);
    a->call = call;
    a->code = code;
    snprintf(a->text, sizeof a->text, "%s", err->text);
    cw_turn_after(c->turn, CW_TURN_REPLY, answer_refusal, a);
}

void cw_answer_failuref(struct cw_ctld *c, struct cw_rpc_call *call, int code, const char *fmt, ...)
{
    struct cw_error err = {0};
    char text[CW_ERROR_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cw_fail(&err, code, "%s", text);
    cw_answer_failure(c, call, &err);
}

void cw_answer_now(struct cw_rpc_call *call, const ProtobufCMessage *m)
{
    cw_rpc_reply(call, m);
}
