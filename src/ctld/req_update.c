/* req_update.c: changes jobs that wait, and of those that run what may still change. A changed spec
 * passes the same checks as a submitted one; nothing of a job changes when any of it is refused. */
#include "ctld/requests.h"

#include <string.h>

#include "base/clock.h"
#include "ctld/answer.h"
#include "ctld/jobfilter.h"
#include "ctld/users.h"
#include "proto/walk.h"
#include "spec/check.h"
#include "spec/outcome.h"
#include "spec/specfield.h"

struct update {
    struct cw_ctld *c;
    const Cw__UpdateRequest *m;
    const struct cw_identity *who;
    struct cw_arena *arena;
    Cw__UpdateReply *reply;
    struct cw_buf text; /* the fields, for the history */
};

static bool names(const struct update *x, const char *field)
{
    for (size_t i = 0; i < x->m->n_fields; i++)
        if (strcmp(x->m->fields[i], field) == 0)
            return true;
    return false;
}

static bool runs(const struct cw_job *j)
{
    cw_list_each(pos, (struct cw_list *)&j->attempts)
        if (!cw_state_terminal(cw_list_entry(pos, struct cw_attempt, on_job)->state))
            return true;
    return false;
}

static int check_fields(const struct update *x, const struct cw_job *j, const Cw__JobSpec *s,
                        struct cw_error *err)
{
    bool running = runs(j), admin = cw_users_is_admin(x->c, x->who);
    for (size_t i = 0; i < x->m->n_fields; i++) {
        const struct cw_specfield *f = cw_specfield_find(x->m->fields[i]);
        if (f == NULL)
            return cw_fail(err, -EINVAL, "%s cannot be changed", x->m->fields[i]);
        if (running && !f->while_running)
            return cw_fail(err, -EBUSY, "%s cannot be changed while something of it runs", f->name);
    }
    if (names(x, "dependency_rule") != names(x, "dependencies"))
        return cw_fail(err, -EINVAL, "dependencies and their rule change together");
    if (names(x, "priority") && !admin)
        return cw_fail(err, -EACCES, "priority: only administrators may set it");
    if (names(x, "nice") && s->nice < j->nice && s->nice < 0 && !admin)
        return cw_fail(err, -EACCES, "nice: only administrators may go below 0");
    return 0;
}

/* Old dependencies carry the controller's marks, which a submit may not. */
static int check_spec(struct update *x, Cw__JobSpec *s, struct cw_error *err)
{
    size_t n = s->n_dependencies;
    bool fresh = names(x, "dependencies");
    if (!fresh)
        s->n_dependencies = 0;
    int rc = cw_check_spec(s, NULL, err);
    if (rc == 0)
        rc = cw_submit_recheck(x->c, x->who, x->arena, s, err);
    s->n_dependencies = n;
    return rc;
}

static int update_job(struct update *x, struct cw_job *j, struct cw_error *err)
{
    struct cw_jobsrc src;
    static Cw__JobSpec none = CW__JOB_SPEC__INIT;
    const Cw__JobSpec *from = x->m->spec != NULL ? x->m->spec : &none;
    cw_jobview_from_live(j, x->arena, &src);
    Cw__JobSpec *s = src.rec->spec;
    int rc = check_fields(x, j, from, err);
    for (size_t i = 0; rc == 0 && i < x->m->n_fields; i++)
        rc = cw_specfield_copy(x->m->fields[i], from, s, x->arena, err);
    if (rc == 0)
        rc = check_spec(x, s, err);
    if (rc == 0 && runs(j) && s->time_limit_s > j->time_limit_s && !cw_users_is_admin(x->c, x->who))
        rc = cw_fail(err, -EACCES,
                     "only administrators may raise the time limit of a running job");
    if (rc == 0)
        rc = cw_model_update(x->c->model, j, s, names(x, "dependencies"), x->who->uid,
                             cw_buf_str(&x->text), cw_clock_real_ns(), err);
    cw_jobsrc_fini(&src);
    return rc;
}

static int update_id(struct update *x, uint64_t id, bool single, struct cw_error *err)
{
    struct cw_jobsrc s;
    unsigned long long n = id;
    struct cw_job *j = cw_model_job(x->c->model, id);
    if (j != NULL && cw_users_may(x->c, x->who, j->uid)) {
        if (j->id != id)
            return cw_fail(err, -EINVAL, "job %llu is an element: change its array %llu", n,
                           (unsigned long long)j->id);
        int rc = update_job(x, j, err);
        x->reply->matched += rc == 0;
        return rc < 0 ? cw_wrap(err, rc, "job %llu", n) : 0;
    }
    if (!single)
        return 0;
    int rc = cw_jobview_find(x->c, id, x->arena, &s, NULL, NULL, err);
    if (rc < 0)
        return rc;
    bool mine = cw_users_may(x->c, x->who, s.rec->owner->uid);
    rc = mine ? cw_fail(err, -ESRCH, "job %llu has ended already (%s)", n,
                        cw_state_name(s.rec->state))
              : cw_fail(err, -ENOENT, "job %llu does not exist", n);
    cw_jobsrc_fini(&s);
    return rc;
}

static int update_selector(struct update *x, const struct cw_selector *sel, struct cw_error *err)
{
    bool single = sel->first == sel->last;
    if (sel->has_indices || sel->attempt != 0)
        return cw_fail(err, -EINVAL, "an array is changed as a whole");
    if (sel->last - sel->first >= CW_JOBFILTER_IDS_MAX)
        return cw_fail(err, -E2BIG, "too many jobs at once");
    int rc = 0;
    for (uint64_t id = sel->first; rc == 0 && id <= sel->last; id++)
        rc = update_id(x, id, single, err);
    return rc;
}

void cw_req_update(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    struct update x = {.c = c,
                       .m = (const Cw__UpdateRequest *)msg,
                       .who = cw_rpc_call_identity(call),
                       .arena = cw_rpc_call_arena(call)};
    struct cw_error err = {0};
    struct cw_jobfilter f;
    if (cw_answer_if_failing(c, call))
        return;
    int rc = cw_jobfilter_init(&f, x.m->filter, &err);
    if (rc < 0) {
        cw_answer_failure(c, call, &err);
        return;
    }
    if (f.n_sel == 0 || x.m->n_fields == 0)
        rc = cw_fail(&err, -EINVAL, "update: name jobs, and what to change");
    for (size_t i = 0; i < x.m->n_fields; i++)
        cw_buf_addf(&x.text, "%s%s", i > 0 ? " " : "", x.m->fields[i]);
    x.reply = cw_arena_alloc(x.arena, sizeof *x.reply);
    cw__update_reply__init(x.reply);
    for (size_t i = 0; rc == 0 && i < f.n_sel; i++)
        rc = update_selector(&x, &f.sel[i], &err);
    cw_jobfilter_fini(&f);
    cw_buf_fini(&x.text);
    if (rc < 0)
        cw_answer_failure(c, call, &err);
    else
        cw_answer(c, call, &x.reply->base);
}
