/* req_alloc.c: an allocation is kept (KEEP) or given back with the exit code of its command
 * (RELEASE) by its owner. Both may come twice; giving back what has ended is no error. Tested by
 * stepbook_test.c and t2400-run.t. */
#include "ctld/requests.h"

#include "base/clock.h"
#include "ctld/answer.h"
#include "ctld/jobview.h"
#include "ctld/lease.h"
#include "ctld/users.h"

/* The caller's allocation of this id; fini ret->src. */
static int find(struct cw_ctld *c, struct cw_rpc_call *call, uint64_t id, struct cw_jobsrc *ret,
                struct cw_error *err)
{
    bool is_element;
    unsigned long long n = id;
    int rc = cw_jobview_find(c, id, cw_rpc_call_arena(call), ret, &is_element, NULL, err);
    if (rc < 0)
        return rc;
    if (!cw_users_may(c, cw_rpc_call_identity(call), ret->rec->owner->uid))
        rc = cw_fail(err, -ENOENT, "job %llu does not exist", n);
    else if (is_element || !ret->rec->spec->has_allocation || !ret->rec->spec->allocation)
        rc = cw_fail(err, -EINVAL, "job %llu is no allocation", n);
    if (rc < 0)
        cw_jobsrc_fini(ret);
    return rc;
}

void cw_req_keep(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    const Cw__KeepRequest *m = (const Cw__KeepRequest *)msg;
    struct cw_error err = {0};
    struct cw_jobsrc s;
    if (find(c, call, m->id, &s, &err) < 0) {
        cw_answer_failure(c, call, &err);
        return;
    }
    if (s.live != NULL)
        cw_leases_renew(c->leases, m->id, s.rec->spec);
    Cw__KeepReply *r = cw_arena_alloc(cw_rpc_call_arena(call), sizeof *r);
    cw__keep_reply__init(r);
    r->job = cw_jobview_info(c, &s, cw_rpc_call_arena(call));
    cw_jobsrc_fini(&s);
    cw_answer(c, call, &r->base);
}

void cw_req_release(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    const Cw__ReleaseRequest *m = (const Cw__ReleaseRequest *)msg;
    struct cw_error err = {0};
    struct cw_jobsrc s;
    if (cw_answer_if_failing(c, call))
        return;
    if (find(c, call, m->id, &s, &err) < 0) {
        cw_answer_failure(c, call, &err);
        return;
    }
    if (s.live != NULL)
        cw_model_release(c->model, s.live, m->has_exit_code ? (int)(m->exit_code & 0xff) : -1,
                         m->has_signal ? m->signal & 0x7f : 0, cw_rpc_call_identity(call)->uid,
                         cw_clock_real_ns());
    cw_jobsrc_fini(&s);
    Cw__ReleaseReply *r = cw_arena_alloc(cw_rpc_call_arena(call), sizeof *r);
    cw__release_reply__init(r);
    cw_answer(c, call, &r->base);
}
