/* req_submit.c: accepts jobs. The items of one request are independent: each gets an id or a
 * refusal, and a refusal keeps nothing. Order of the checks: what needs no state, the request key
 * (a retry gets the id of the first time, whatever has changed since), the site's rules, the
 * partition and its nodes, the dependencies; then payload, job and request key go into one batch
 * and are answered after its commit. Identity comes from the credential, never from the message.
 * Tested by ctld_component_test.c. */
#include "ctld/requests.h"

#include <string.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "ctld/answer.h"
#include "ctld/diskguard.h"
#include "ctld/jobview.h"
#include "ctld/lease.h"
#include "ctld/payload.h"
#include "ctld/reqkey.h"
#include "ctld/row.h"
#include "ctld/turn.h"
#include "ctld/users.h"
#include "model/node.h"
#include "plug/plug.h"
#include "spec/check.h"
#include "spec/outcome.h"

#define TEST_BUDGET_MS 50u /* of planning the queue, on the loop */
#define OPEN_BYTES_MAX (128u * 1024u * 1024u) /* of a batch that waits for the disk */

struct submit {
    struct cw_ctld *c;
    struct cw_arena *arena;
    const struct cw_identity *who;
    const char *user;
    bool test_only;
    int64_t now_ns;
    /* the last item that passed the feasibility check: items of a request tend to ask for the same
     */
    const struct cw_partition *last_partition;
    uint64_t last_want; /* its number; 0: none yet */
};

/* ---- the site's rules ----------------------------------------------------------------------- */

static int check_user(const struct submit *x, struct cw_error *err)
{
    const struct cw_conf *conf = x->c->conf;
    if (x->who->uid == 0 && !conf->allow_root_jobs)
        return cw_fail(err, -EACCES, "jobs of root are not allowed here (allow_root_jobs = false)");
    if (conf->allow_users != NULL && conf->allow_users[0] != '\0' &&
        !cw_users_in_list(conf->allow_users, x->user))
        return cw_fail(err, -EACCES, "user %s may not submit here, allowed are: %s", x->user,
                       conf->allow_users);
    return 0;
}

static int check_room(const struct submit *x, struct cw_error *err)
{
    struct cw_turn_stats st;
    if (cw_model_n_jobs(x->c->model) >= x->c->conf->max_jobs)
        return cw_fail(err, -EAGAIN, "the queue is full: %llu jobs (max_jobs)",
                       (unsigned long long)x->c->conf->max_jobs);
    cw_turn_get_stats(x->c->turn, &st);
    if (st.open_bytes > OPEN_BYTES_MAX)
        return cw_fail(err, -EAGAIN, "the disk is behind: %zu bytes wait to be stored",
                       st.open_bytes);
    return 0;
}

static int no_partition(const struct submit *x, const char *name, struct cw_error *err)
{
    cw_autobuf struct cw_buf names = {0};
    const struct cw_partition *p;
    for (uint16_t i = 0; (p = cw_model_partition(x->c->model, i)) != NULL; i++)
        cw_buf_addf(&names, "%s%s", i == 0 ? "" : ", ", p->name);
    return cw_fail(err, -EINVAL, "partition '%s' does not exist, there are: %s", name,
                   cw_buf_str(&names));
}

static int check_time(const Cw__JobSpec *s, const struct cw_partition *p, struct cw_error *err)
{
    char asked[32], most[32];
    if (!s->has_time_limit_s || p->max_time_s == 0 || p->max_time_s == CW_DURATION_UNLIMITED ||
        s->time_limit_s <= p->max_time_s)
        return 0;
    return cw_fail(err, -EINVAL, "time limit: partition %s allows at most %s, %s was asked",
                   p->name, cw_duration_format(p->max_time_s, most, sizeof most),
                   cw_duration_format(s->time_limit_s, asked, sizeof asked));
}

static int check_volumes(struct cw_ctld *c, const Cw__JobSpec *s, struct cw_error *err)
{
    struct cw_plug *p;
    for (size_t i = 0; s->settings != NULL && i < s->settings->n_volumes; i++) {
        const Cw__VolumeUse *v = s->settings->volumes[i];
        struct cw_plugin_err perr = {{0}};
        if (cw_plug_load(c->plugins, "volume", "local", &p, err) < 0)
            return cw_wrap(err, -ENOTSUP, "volume %s", v->source);
        if (!CW_PLUG_HAS(volume, p, check))
            continue;
        int rc = CW_PLUG_OPS(volume, p)->check(cw_plug_ctx(p), v->source, v->target,
                                               v->has_read_only && v->read_only, &perr);
        if (rc < 0)
            return cw_fail(err, rc, "volume %s: %s", v->source, perr.text);
    }
    return 0;
}

struct isolation_seen {
    const char *name;
    bool found, any;
};

static void isolation_scan(struct cw_ctld *c, struct isolation_seen *w)
{
    for (uint32_t i = 0; i < cw_model_n_nodes(c->model) && !w->found; i++) {
        const Cw__NodeRecord *rec = cw_model_node_at(c->model, i)->rec;
        if (rec == NULL || rec->inventory == NULL)
            continue;
        w->any = true;
        for (size_t k = 0; k < rec->inventory->n_isolations && !w->found; k++)
            w->found = strcmp(rec->inventory->isolations[k], w->name) == 0;
    }
}

/* Known to some node; before any has registered, known to us. */
static int check_isolation(struct cw_ctld *c, const Cw__JobSpec *s, struct cw_error *err)
{
    const char *name = s->settings != NULL ? s->settings->isolation : NULL;
    if (name == NULL || name[0] == '\0')
        return 0;
    struct isolation_seen w = {.name = name};
    isolation_scan(c, &w);
    if (w.found)
        return 0;
    if (w.any)
        return cw_fail(err, -EINVAL, "isolation '%s' is offered by no node", name);
    struct cw_plug *p;
    int rc = cw_plug_load(c->plugins, "isolation", name, &p, err);
    return rc < 0 ? cw_wrap(err, rc, "isolation '%s'", name) : 0;
}

static int check_feasible(struct submit *x, const Cw__JobSpec *s, const struct cw_partition *p,
                          struct cw_error *err)
{
    struct cw_want *w = cw_want_get(x->c->model, s);
    uint64_t number = w->number;
    cw_want_put(x->c->model, w);
    if (x->last_partition == p && x->last_want == number)
        return 0;
    int rc = cw_pass_feasible(x->c->model, s, p, err);
    if (rc < 0)
        return rc;
    x->last_partition = p;
    x->last_want = number;
    return 0;
}

static int check_array(const struct submit *x, const Cw__JobSpec *s, struct cw_error *err)
{
    if (s->array == NULL)
        return 0;
    struct cw_idset set = {0};
    int rc = cw_idset_parse(s->array->indices, strlen(s->array->indices), CW_CHECK_MAX_ARRAY_INDEX,
                            &set, err);
    if (rc < 0)
        return rc;
    uint64_t n = cw_idset_count(&set);
    cw_idset_fini(&set);
    if (n > x->c->conf->max_array)
        return cw_fail(err, -EINVAL, "array of %llu elements, at most %llu are allowed (max_array)",
                       (unsigned long long)n, (unsigned long long)x->c->conf->max_array);
    return 0;
}

/* ---- dependencies --------------------------------------------------------------------------- */

/* On something that has ended: satisfied, or never to be. */
static int dependency_of_ended(const Cw__Dependency *d, Cw__State state, struct cw_error *err)
{
    bool ok = state == CW__STATE__COMPLETED;
    unsigned long long id = d->job_id;
    if (d->kind == CW__DEPENDENCY_KIND__AFTEROK && !ok)
        return cw_fail(err, -EINVAL,
                       "dependency afterok:%llu can never be satisfied: job %llu ended %s", id, id,
                       cw_state_name(state));
    if (d->kind == CW__DEPENDENCY_KIND__AFTERNOTOK && ok)
        return cw_fail(err, -EINVAL,
                       "dependency afternotok:%llu can never be satisfied: job %llu ended %s", id,
                       id, cw_state_name(state));
    return 0;
}

/* after:ID+MIN of something that ended sooner than that. */
static void delay_after_ended(struct submit *x, Cw__JobSpec *spec, const Cw__Dependency *d)
{
    Cw__AttemptRecord *a;
    if (d->kind != CW__DEPENDENCY_KIND__AFTER || d->delay_s == 0 ||
        cw_jobview_attempt(x->c, d->job_id, 0, x->arena, &a, NULL) < 0 || !a->has_start_ns)
        return;
    int64_t t = a->start_ns + (int64_t)d->delay_s * CW_NS_PER_S;
    if (!spec->has_begin_ns || spec->begin_ns < t) {
        spec->has_begin_ns = true;
        spec->begin_ns = t;
    }
}

/* "12_3": from here on it is a dependency on that element's own id. */
static int name_element(Cw__Dependency *d, const struct cw_jobsrc *s, bool *is_element,
                        uint64_t *ordinal, struct cw_error *err)
{
    if (!d->has_index)
        return 0;
    if (!s->is_array || *is_element || !cw_idset_has(&s->indices, d->index))
        return cw_fail(err, -EINVAL, "dependency on job %llu_%llu: it does not exist",
                       (unsigned long long)d->job_id, (unsigned long long)d->index);
    *ordinal = cw_idset_rank(&s->indices, d->index);
    *is_element = true;
    d->job_id = cw_jobsrc_element_id(s, *ordinal);
    d->has_index = false;
    return 0;
}

static int resolve_dependency(struct submit *x, Cw__JobSpec *spec, Cw__Dependency *d,
                              struct cw_error *err)
{
    struct cw_jobsrc s;
    bool is_element, known = true;
    uint64_t ordinal;
    if (!d->has_job_id) /* singleton */
        return 0;
    d->has_satisfied = true;
    d->satisfied = false; /* what the client says does not count */
    int rc = cw_jobview_find(x->c, d->job_id, x->arena, &s, &is_element, &ordinal, NULL);
    if (rc < 0)
        return cw_fail(err, rc == -ENOENT ? -EINVAL : rc,
                       "dependency on job %llu: it does not exist", (unsigned long long)d->job_id);
    rc = name_element(d, &s, &is_element, &ordinal, err);
    if (rc < 0) {
        cw_jobsrc_fini(&s);
        return rc;
    }
    Cw__State state =
        is_element ? cw_jobview_element_state(x->c, &s, ordinal, &known) : s.rec->state;
    if (!known) { /* an element of which only the store knows how it ended */
        Cw__JobInfo *i = cw_jobview_element(x->c, &s, ordinal, x->arena);
        state = i->state;
    }
    cw_jobsrc_fini(&s);
    if (!cw_state_terminal(state))
        return 0;
    delay_after_ended(x, spec, d);
    rc = dependency_of_ended(d, state, err);
    d->satisfied = rc == 0;
    d->has_never = d->never = rc < 0;
    return spec->dependency_rule != NULL || spec->keep_on_invalid_dep ? 0 : rc;
}

/* ---- one item ------------------------------------------------------------------------------- */

/* Users may step back, not forward. */
static int check_rank(const struct submit *x, const Cw__JobSpec *s, struct cw_error *err)
{
    if ((!s->has_priority && (!s->has_nice || s->nice >= 0)) || cw_users_is_admin(x->c, x->who))
        return 0;
    return cw_fail(err, -EACCES, s->has_priority ? "priority: only administrators may set it"
                                                 : "nice: only administrators may go below 0");
}

/* Defaults of this moment become part of the job: a later change of the configuration does not
 * touch it. */
static void fill_defaults(const struct submit *x, Cw__JobSpec *s)
{
    const struct cw_partition *p = cw_model_partition_find(x->c->model, s->partition);
    if (s->partition == NULL)
        s->partition = (char *)p->name;
    if (!s->has_time_limit_s) {
        s->has_time_limit_s = true;
        s->time_limit_s = p->default_time_s != 0 ? p->default_time_s : CW_DURATION_UNLIMITED;
        if (p->max_time_s != 0 && s->time_limit_s > p->max_time_s)
            s->time_limit_s = p->max_time_s;
    }
    if (s->has_allocation && s->allocation) /* whoever holds it sees it end */
        s->has_no_requeue = s->no_requeue = true;
    if (!s->has_kill_grace_s) {
        s->has_kill_grace_s = true;
        s->kill_grace_s = x->c->conf->kill_grace_s;
    }
}

/* What a spec asks of the site, apart from who asks and how full it is. */
static int check_wishes(struct submit *x, Cw__JobSpec *s, struct cw_error *err)
{
    struct cw_ctld *c = x->c;
    const struct cw_partition *p = cw_model_partition_find(c->model, s->partition);
    if (p == NULL)
        return no_partition(x, s->partition != NULL ? s->partition : "", err);
    int rc = check_time(s, p, err);
    if (rc == 0)
        rc = check_array(x, s, err);
    if (rc == 0)
        rc = check_feasible(x, s, p, err);
    if (rc == 0)
        rc = check_isolation(c, s, err);
    if (rc == 0)
        rc = check_volumes(c, s, err);
    for (size_t i = 0; rc == 0 && i < s->n_dependencies; i++)
        rc = resolve_dependency(x, s, s->dependencies[i], err);
    return rc;
}

static int check_item(struct submit *x, Cw__JobSpec *s, struct cw_error *err)
{
    int rc = check_user(x, err);
    if (rc == 0)
        rc = check_room(x, err);
    if (rc == 0)
        rc = check_rank(x, s, err);
    return rc < 0 ? rc : check_wishes(x, s, err);
}

int cw_submit_recheck(struct cw_ctld *c, const struct cw_identity *who, struct cw_arena *a,
                      Cw__JobSpec *s, struct cw_error *err)
{
    struct submit x = {.c = c, .arena = a, .who = who, .now_ns = cw_clock_real_ns()};
    int rc = check_wishes(&x, s, err);
    if (rc == 0)
        fill_defaults(&x, s); /* of what was cleared */
    return rc;
}

static int keep_item(struct submit *x, const Cw__SubmitItem *item, Cw__SubmitResult *r,
                     struct cw_error *err)
{
    struct cw_ctld *c = x->c;
    uint8_t hash[32];
    int rc = cw_payloads_put(c->payloads, cw_turn_batch(c->turn), item->payload, hash, err);
    if (rc < 0)
        return rc;
    Cw__JobRecord rec = CW__JOB_RECORD__INIT;
    Cw__Owner owner = CW__OWNER__INIT;
    owner.uid = x->who->uid;
    owner.gid = x->who->gid;
    owner.name = (char *)x->user;
    rec.spec = item->spec;
    rec.owner = &owner;
    rec.payload_hash = (ProtobufCBinaryData){sizeof hash, hash};
    rec.request_key = item->request_key;
    rec.submit_ns = x->now_ns;
    rec.state = CW__STATE__PENDING;
    rec.has_held = item->spec->hold;
    rec.held = item->spec->hold;
    struct cw_job *j;
    rc = cw_model_submit(c->model, &rec, &j, err);
    if (rc < 0)
        return rc;
    r->has_job_id = r->has_count = r->has_existing = true;
    r->job_id = j->id;
    r->count = j->count;
    r->existing = false;
    cw_leases_renew(c->leases, j->id, item->spec);
    cw_reqkeys_put(c->reqkeys, x->who->uid, item->request_key.data, j->id, j->count);
    return 0;
}

/* What a job like this would get if it were submitted now. */
static void tell_start(struct submit *x, Cw__JobSpec *spec, Cw__SubmitResult *r)
{
    const struct cw_partition *p = cw_model_partition_find(x->c->model, spec->partition);
    r->spec = spec;
    if (p != NULL)
        r->has_start_ns = cw_pass_estimate_spec(x->c->model, &x->c->policy, spec, p, x->now_ns,
                                                TEST_BUDGET_MS, &r->start_ns);
}

static int submit_item(struct submit *x, const Cw__SubmitItem *item, Cw__SubmitResult *r,
                       struct cw_error *err)
{
    struct cw_ctld *c = x->c;
    if (item->request_key.len != 16)
        return cw_fail(err, -EINVAL, "request key has %zu bytes, 16 are wanted",
                       item->request_key.len);
    int rc = cw_check_spec(item->spec, item->payload, err);
    if (rc < 0)
        return rc;
    uint64_t id, count;
    rc = cw_reqkeys_find(c->reqkeys, x->who->uid, item->request_key.data, &id, &count, err);
    if (rc < 0)
        return rc;
    if (rc == 1) {
        r->has_job_id = r->has_count = r->has_existing = true;
        r->job_id = id;
        r->count = count;
        r->existing = true;
        return 0;
    }
    rc = cw_diskguard_check(c->disk, err);
    if (rc == 0)
        rc = check_item(x, item->spec, err);
    if (rc < 0)
        return rc;
    fill_defaults(x, item->spec);
    if (x->test_only) {
        tell_start(x, item->spec, r);
        return 0;
    }
    return keep_item(x, item, r, err);
}

static Cw__Failure *failure(struct cw_arena *a, const struct cw_error *err)
{
    Cw__Failure *f = cw_arena_alloc(a, sizeof *f);
    cw__failure__init(f);
    f->code = err->code < 0 ? -err->code : EIO;
    f->text = cw_arena_strdup(a, err->text);
    f->has_retry = true;
    f->retry = err->code == -EAGAIN;
    return f;
}

void cw_req_submit(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    const Cw__SubmitRequest *m = (const Cw__SubmitRequest *)msg;
    struct submit x = {.c = c,
                       .arena = cw_rpc_call_arena(call),
                       .who = cw_rpc_call_identity(call),
                       .test_only = m->has_test_only && m->test_only};
    x.user = cw_users_name(c->users, x.who->uid);
    x.now_ns = cw_clock_real_ns();
    if (x.user == NULL) /* its ten minutes ended between two lines */
        x.user = cw_arena_printf(x.arena, "%u", x.who->uid);
    Cw__SubmitReply *r = cw_arena_alloc(x.arena, sizeof *r);
    cw__submit_reply__init(r);
    r->results = cw_arena_alloc(x.arena, (m->n_items + 1) * sizeof *r->results);
    uint64_t before = cw_model_next_id(c->model);
    for (size_t i = 0; i < m->n_items; i++) {
        struct cw_error err = {0};
        Cw__SubmitResult *res = cw_arena_alloc(x.arena, sizeof *res);
        cw__submit_result__init(res);
        if (submit_item(&x, m->items[i], res, &err) < 0)
            res->failure = failure(x.arena, &err);
        r->results[r->n_results++] = res;
    }
    if (cw_model_next_id(c->model) != before) {
        uint8_t next[8];
        cw_store_key_u64(next, cw_model_next_id(c->model));
        cw_batch_put(cw_turn_batch(c->turn), CW_TABLE_META, CW_META_NEXT_ID,
                     strlen(CW_META_NEXT_ID), next, sizeof next);
    }
    cw_answer(c, call, &r->base);
}
