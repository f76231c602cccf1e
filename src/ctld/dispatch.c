/* dispatch.c: from a verified call to its handler. Tested by dispatch_test.c. */
#include "ctld/dispatch.h"

#include "base/clock.h"
#include "ctld/answer.h"
#include "ctld/requests.h"
#include "ctld/statistics.h"
#include "ctld/users.h"
#include "proto/walk.h"

typedef void (*handler_fn)(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *m);

/* LOG is served by nodes: no row. */
static const struct {
    enum cw_kind kind;
    handler_fn fn;
} handlers[] = {
    {CW_KIND_PING, cw_req_ping},     {CW_KIND_SUBMIT, cw_req_submit},
    {CW_KIND_JOBS, cw_req_jobs},     {CW_KIND_WHY, cw_req_why},
    {CW_KIND_CANCEL, cw_req_cancel}, {CW_KIND_WAIT, cw_req_wait},
    {CW_KIND_NODES, cw_req_nodes},   {CW_KIND_NODE_SET, cw_req_node_set},
    {CW_KIND_TICKET, cw_req_ticket}, {CW_KIND_CTL, cw_req_ctl},
    {CW_KIND_UPDATE, cw_req_update},
    {CW_KIND_PRIO, cw_req_prio},
    {CW_KIND_EVENTS, cw_req_events},
    {CW_KIND_STEP_CREATE, cw_req_step_create},
    {CW_KIND_KEEP, cw_req_keep},
    {CW_KIND_RELEASE, cw_req_release},
};

static handler_fn handler_find(enum cw_kind kind)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(handlers); i++)
        if (handlers[i].kind == kind)
            return handlers[i].fn;
    return NULL;
}

int cw_dispatch_check(const struct cw_ctld *c, enum cw_kind kind, const struct cw_identity *who,
                      struct cw_error *err)
{
    const struct cw_kind_row *row = cw_kind_find(kind);
    if (row == NULL || handler_find(kind) == NULL)
        return cw_fail(err, -ENOTSUP, "request kind %d is not served by the controller", (int)kind);
    switch (row->role) {
    case CW_ROLE_USER:
        if (who->node[0] != '\0')
            return cw_fail(err, -EACCES, "request %s: node %s is no user", row->name, who->node);
        return 0;
    case CW_ROLE_ADMIN:
        if (!cw_users_is_admin(c, who))
            return cw_fail(err, -EACCES, "request %s: only administrators may do this", row->name);
        return 0;
    case CW_ROLE_NONE:
    case CW_ROLE_NODE:
    case CW_ROLE_TICKET: break;
    }
    return cw_fail(err, -EACCES, "request %s: not allowed", row->name);
}

struct waiting_call {
    struct cw_ctld *c;
    struct cw_rpc_call *call;
};

static void dispatch_decoded(struct cw_ctld *c, struct cw_rpc_call *call)
{
    struct cw_error err = {0};
    const struct cw_kind_row *row = cw_kind_find(cw_rpc_call_kind(call));
    const struct cw_buf *body = cw_rpc_call_body(call);
    ProtobufCMessage *m;
    int rc = cw_walk_unpack(row->request, body->data, body->len, cw_rpc_call_arena(call), &m, &err);
    if (rc < 0) {
        cw_rpc_reply_failure(call, rc, err.text, false);
        return;
    }
    handler_find(row->kind)(c, call, m);
}

static void dispatch_named(void *arg)
{
    struct waiting_call *w = arg;
    w->c->busy--;
    if (w->c->stopping)
        cw_rpc_reply_failure(w->call, -EAGAIN, "the controller is stopping", true);
    else
        dispatch_decoded(w->c, w->call);
    free(w);
}

void cw_dispatch(struct cw_rpc_call *call, void *ctld)
{
    struct cw_ctld *c = ctld;
    struct cw_error err = {0};
    const struct cw_identity *who = cw_rpc_call_identity(call);
    cw_statistics_request(c->statistics, cw_rpc_call_kind(call), who->uid, cw_clock_mono_ns());
    int rc = cw_dispatch_check(c, cw_rpc_call_kind(call), who, &err);
    if (rc == 0 && c->stopping)
        rc = cw_fail(&err, -EAGAIN, "the controller is stopping");
    if (rc < 0) {
        cw_rpc_reply_failure(call, rc, err.text, rc == -EAGAIN);
        return;
    }
    if (cw_users_name(c->users, who->uid) != NULL) {
        dispatch_decoded(c, call);
        return;
    }
    struct waiting_call *w = cw_xcalloc(1, sizeof *w);
    *w = (struct waiting_call){c, call};
    c->busy++;
    cw_users_lookup(c->users, who->uid, dispatch_named, w);
}
