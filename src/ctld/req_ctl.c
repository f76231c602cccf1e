/* req_ctl.c: the controller about itself: one row per verb. hold and release act on jobs that the
 * caller owns; the rest is for administrators, but for what tells nothing of others. */
#include "config.h"

#include "ctld/requests.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "ctld/answer.h"
#include "ctld/core.h"
#include "ctld/cycle.h"
#include "ctld/diskguard.h"
#include "ctld/effect.h"
#include "ctld/jobview.h"
#include "ctld/nodelink.h"
#include "ctld/retention.h"
#include "ctld/turn.h"
#include "ctld/users.h"
#include "ctld/waiter.h"
#include "spec/outcome.h"
#include "spec/selector.h"

struct ctl {
    struct cw_ctld *c;
    struct cw_rpc_call *call;
    const Cw__CtlRequest *m;
    struct cw_arena *arena;
    Cw__CtlReply *reply;
};

static void done(struct ctl *x, const char *text)
{
    x->reply->text = cw_arena_strdup(x->arena, text);
    cw_answer(x->c, x->call, &x->reply->base);
}

/* ---- hold, release -------------------------------------------------------------------------- */

static int hold_one(struct ctl *x, const char *text, bool hold, struct cw_error *err)
{
    struct cw_selector sel = {0};
    const struct cw_identity *who = cw_rpc_call_identity(x->call);
    int rc = cw_selector_parse(text, &sel, err);
    if (rc < 0)
        return rc;
    if (sel.has_indices)
        rc = cw_fail(err, -EINVAL, "'%s': an array is held and released as a whole", text);
    for (uint64_t id = sel.first; rc == 0 && id <= sel.last; id++) {
        struct cw_job *j = cw_model_job(x->c->model, id);
        bool single = sel.first == sel.last;
        if (j != NULL && j->id == id && cw_users_may(x->c, who, j->uid)) {
            cw_model_hold(x->c->model, j, hold, who->uid, cw_clock_real_ns());
        } else if (single && j != NULL && j->id != id && cw_users_may(x->c, who, j->uid)) {
            rc = cw_fail(err, -EINVAL, "job %llu is an element: hold its array %llu",
                         (unsigned long long)id, (unsigned long long)j->id);
        } else if (single) {
            struct cw_jobsrc s;
            rc = cw_jobview_find(x->c, id, x->arena, &s, NULL, NULL, err);
            if (rc == 0) {
                bool mine = cw_users_may(x->c, who, s.rec->owner->uid);
                rc = mine
                         ? cw_fail(err, -ESRCH, "job %llu has ended already (%s)",
                                   (unsigned long long)id, cw_state_name(s.rec->state))
                         : cw_fail(err, -ENOENT, "job %llu does not exist", (unsigned long long)id);
                cw_jobsrc_fini(&s);
            }
        }
        if (id - sel.first >= 100000)
            rc = cw_fail(err, -E2BIG, "'%s' names too many jobs", text);
    }
    cw_selector_fini(&sel);
    return rc;
}

static void hold_or_release(struct ctl *x, bool hold)
{
    struct cw_error err = {0};
    if (cw_answer_if_failing(x->c, x->call))
        return;
    int rc = x->m->n_args == 0 ? cw_fail(&err, -EINVAL, "%s: no job was named", x->m->verb) : 0;
    for (size_t i = 0; rc == 0 && i < x->m->n_args; i++)
        rc = hold_one(x, x->m->args[i], hold, &err);
    if (rc < 0)
        cw_answer_failure(x->c, x->call, &err);
    else
        done(x, "");
}

static void verb_hold(struct ctl *x)
{
    hold_or_release(x, true);
}

static void verb_release(struct ctl *x)
{
    hold_or_release(x, false);
}

/* ---- diag ----------------------------------------------------------------------------------- */

static json_int_t n(uint64_t v)
{
    return v > INT64_MAX ? INT64_MAX : (json_int_t)v;
}

static void set(json_t *o, const char *key, uint64_t v)
{
    json_object_set_new(o, key, json_integer(n(v)));
}

struct counts {
    uint64_t pending, starting, running, other, waiting_elements;
};

static bool count_job(struct cw_job *j, void *arg)
{
    struct counts *k = arg;
    if (j->state == CW__STATE__PENDING)
        k->pending++;
    else if (j->state == CW__STATE__STARTING)
        k->starting++;
    else if (j->state == CW__STATE__RUNNING)
        k->running++;
    else
        k->other++;
    k->waiting_elements += cw_job_n_waiting(j);
    return true;
}

static uint64_t rows(struct cw_ctld *c, enum cw_table t)
{
    uint64_t v = 0;
    return cw_store_count(c->store, t, &v, NULL) < 0 ? 0 : v;
}

static json_t *diag_jobs(struct cw_ctld *c)
{
    json_t *o = json_object();
    struct counts k = {0};
    cw_model_each_job(c->model, count_job, &k);
    set(o, "live_jobs", cw_model_n_jobs(c->model));
    set(o, "jobs_pending", k.pending);
    set(o, "jobs_starting", k.starting);
    set(o, "jobs_running", k.running);
    set(o, "jobs_other", k.other);
    set(o, "waiting_elements", k.waiting_elements);
    set(o, "next_id", cw_model_next_id(c->model));
    set(o, "nodes", cw_model_n_nodes(c->model));
    set(o, "node_sessions", cw_nodelinks_count(c->links));
    set(o, "waiting_clients", cw_waits_count(c->waits));
    return o;
}

static void diag_times(struct cw_ctld *c, json_t *o)
{
    struct cw_turn_stats t;
    struct cw_cycle_stats y;
    struct cw_error why;
    cw_turn_get_stats(c->turn, &t);
    cw_cycle_get_stats(c->cycle, &y);
    set(o, "commits", t.commits);
    set(o, "commit_failures", t.failures);
    set(o, "commit_last_us", (uint64_t)t.last_ns / 1000);
    set(o, "commit_max_us", (uint64_t)t.max_ns / 1000);
    set(o, "commit_mean_us", t.commits == 0 ? 0 : (uint64_t)t.total_ns / 1000 / t.commits);
    set(o, "batch_open_bytes", t.open_bytes);
    set(o, "batch_flying_bytes", t.flying_bytes);
    set(o, "passes", y.passes);
    set(o, "pass_started", y.started);
    set(o, "pass_last_us", (uint64_t)y.last_ns / 1000);
    set(o, "pass_max_us", (uint64_t)y.max_ns / 1000);
    if (cw_turn_failing(c->turn, &why))
        json_object_set_new(o, "store_error", json_string(why.text));
}

static void diag_store(struct cw_ctld *c, json_t *o)
{
    uint64_t bytes = 0;
    cw_store_free_bytes(c->store, &bytes);
    set(o, "store_free_bytes", bytes);
    set(o, "rows_job", rows(c, CW_TABLE_JOB));
    set(o, "rows_attempt", rows(c, CW_TABLE_ATTEMPT));
    set(o, "rows_payload", rows(c, CW_TABLE_PAYLOAD));
    set(o, "rows_event", rows(c, CW_TABLE_EVENT));
    set(o, "rows_quarantine", rows(c, CW_TABLE_QUARANTINE));
    set(o, "events_written", cw_effects_event_seq(c->effects));
    set(o, "jobs_expired", cw_retention_expired(c->retention));
    set(o, "quarantined_at_start", c->n_quarantined);
    set(o, "uptime_s", (uint64_t)((cw_clock_real_ns() - c->start_ns) / CW_NS_PER_S));
    set(o, "pid", (uint64_t)getpid());
}

/* Answered at once: it has to work while the disk does not. */
static void verb_diag(struct ctl *x)
{
    json_t *o = diag_jobs(x->c), *v;
    const char *key;
    cw_autobuf struct cw_buf text = {0};
    diag_times(x->c, o);
    diag_store(x->c, o);
    json_object_foreach (o, key, v) {
        if (json_is_integer(v))
            cw_buf_addf(&text, "%-22s %lld\n", key, (long long)json_integer_value(v));
        else
            cw_buf_addf(&text, "%-22s %s\n", key, json_string_value(v));
    }
    cw_autofree char *json = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    x->reply->text = cw_arena_strdup(x->arena, cw_buf_str(&text));
    x->reply->json = cw_arena_strdup(x->arena, json);
    cw_answer_now(x->call, &x->reply->base);
}

/* ---- the others ----------------------------------------------------------------------------- */

static void verb_ping(struct ctl *x)
{
    x->reply->text = cw_arena_printf(x->arena, "controller of %s, version %s, pid %d",
                                     x->c->conf->cluster, PACKAGE_VERSION, (int)getpid());
    cw_answer_now(x->call, &x->reply->base);
}

static void verb_selfcheck(struct ctl *x)
{
    cw_autobuf struct cw_buf text = {0};
    int bad = cw_model_selfcheck(x->c->model, &text);
    if (bad == 0) {
        done(x, "the ledger agrees with the attempts");
        return;
    }
    cw_log_error("selfcheck: %d differences: %s", bad, cw_buf_str(&text));
    cw_answer_failuref(x->c, x->call, -EUCLEAN,
                       "the ledger does not agree with the attempts: %.400s", cw_buf_str(&text));
}

static void verb_show_config(struct ctl *x)
{
    cw_autobuf struct cw_buf text = {0};
    cw_conf_dump(x->c->conf, &text);
    done(x, cw_buf_str(&text));
}

/* nanomsg throws away what the peer has not read when a socket closes, so the answer needs a moment
 * of life. Who asked takes our absence for the answer when it is lost all the same. */
#define SHUTDOWN_LINGER_MS 300u

static void linger_over(void *arg)
{
    cw_core_stop(arg);
}

static void stop_after_answer(void *arg, bool committed)
{
    struct cw_ctld *c = arg;
    if (committed) /* the loop frees the timer */
        cw_loop_timer_start(cw_loop_timer_open(c->loop, linger_over, c), SHUTDOWN_LINGER_MS, 0);
}

static void verb_shutdown(struct ctl *x)
{
    cw_log_info("shutdown asked by uid %u", cw_rpc_call_identity(x->call)->uid);
    done(x, "the controller stops; jobs go on");
    cw_turn_after(x->c->turn, CW_TURN_REPLY, stop_after_answer, x->c);
}

struct backup {
    struct ctl x;
    int rc;
    struct cw_error err;
};

static void backup_work(void *arg)
{
    struct backup *b = arg;
    b->rc = cw_store_backup(b->x.c->store, b->x.m->args[0], &b->err);
}

static void backup_done(void *arg)
{
    struct backup *b = arg;
    b->x.c->busy--;
    if (b->rc < 0)
        cw_answer_failure(b->x.c, b->x.call, &b->err);
    else
        done(&b->x, cw_arena_printf(b->x.arena, "the state is copied to %s", b->x.m->args[0]));
    free(b);
}

static void verb_backup(struct ctl *x)
{
    if (x->m->n_args != 1 || x->m->args[0][0] != '/') {
        cw_answer_failuref(
            x->c, x->call, -EINVAL,
            "backup: name one directory by its absolute path (on the controller's host)");
        return;
    }
    struct backup *b = cw_xcalloc(1, sizeof *b);
    b->x = *x;
    x->c->busy++;
    cw_loop_work(x->c->loop, backup_work, backup_done, b);
}

static const struct {
    const char *verb;
    bool admin;
    void (*fn)(struct ctl *x);
} verbs[] = {
    {"ping", false, verb_ping},          {"hold", false, verb_hold},
    {"release", false, verb_release},    {"diag", false, verb_diag},
    {"selfcheck", true, verb_selfcheck}, {"show-config", true, verb_show_config},
    {"shutdown", true, verb_shutdown},   {"backup", true, verb_backup},
};

void cw_req_ctl(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    struct ctl x = {
        .c = c, .call = call, .m = (const Cw__CtlRequest *)msg, .arena = cw_rpc_call_arena(call)};
    x.reply = cw_arena_alloc(x.arena, sizeof *x.reply);
    cw__ctl_reply__init(x.reply);
    for (size_t i = 0; i < CW_ARRAY_LEN(verbs); i++) {
        if (strcmp(verbs[i].verb, x.m->verb) != 0)
            continue;
        if (verbs[i].admin && !cw_users_is_admin(c, cw_rpc_call_identity(call)))
            cw_answer_failuref(c, call, -EACCES, "%s: only administrators may do this", x.m->verb);
        else
            verbs[i].fn(&x);
        return;
    }
    cw_answer_failuref(c, call, -EINVAL, "the controller does not know the verb '%s'", x.m->verb);
}
