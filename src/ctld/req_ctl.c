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
#include "ctld/ctl_jobs.h"
#include "ctld/diagnosis.h"
#include "ctld/effect.h"
#include "ctld/jobview.h"
#include "ctld/reload.h"
#include "ctld/turn.h"
#include "ctld/users.h"
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
            bool admin = cw_users_is_admin(x->c, who) && j->uid != who->uid;
            if (hold && !j->held && cw_job_n_waiting(j) == 0)
                rc = cw_fail(err, -ESRCH,
                             "job %llu runs already: crun-ctl requeuehold ends and holds it",
                             (unsigned long long)id);
            else if (!hold && j->held_by_admin && !cw_users_is_admin(x->c, who))
                rc = cw_fail(err, -EACCES, "job %llu is held by an administrator",
                             (unsigned long long)id);
            else
                cw_model_hold(x->c->model, j, hold, who->uid, admin, cw_clock_real_ns());
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

/* Answered at once: it has to work while the disk does not. */
static void verb_diag(struct ctl *x)
{
    cw_autobuf struct cw_buf text = {0};
    json_t *o = cw_diagnosis_json(x->c);
    cw_diagnosis_text(o, &text);
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

/* ---- requeue, pause -------------------------------------------------------------------------- */

static void requeue(struct ctl *x, bool hold)
{
    struct cw_error err = {0};
    struct cw_requeue how = {cw_rpc_call_identity(x->call), x->arena, hold};
    if (cw_answer_if_failing(x->c, x->call))
        return;
    int rc = x->m->n_args == 0 ? cw_fail(&err, -EINVAL, "%s: no job was named", x->m->verb) : 0;
    for (size_t i = 0; rc == 0 && i < x->m->n_args; i++)
        rc = cw_ctl_requeue(x->c, x->m->args[i], &how, &err);
    if (rc < 0)
        cw_answer_failure(x->c, x->call, &err);
    else
        done(x, "");
}

static void verb_requeue(struct ctl *x) { requeue(x, false); }
static void verb_requeuehold(struct ctl *x) { requeue(x, true); }

static void pause_or_go_on(struct ctl *x, bool pause)
{
    if (cw_answer_if_failing(x->c, x->call))
        return;
    cw_ctl_pause(x->c, pause);
    done(x, pause ? "nothing starts any more; what runs goes on" : "scheduling goes on");
}

static void verb_pause(struct ctl *x) { pause_or_go_on(x, true); }
static void verb_unpause(struct ctl *x) { pause_or_go_on(x, false); }

/* ---- reload, log-level ------------------------------------------------------------------------ */

static void verb_reload(struct ctl *x)
{
    struct cw_error err = {0};
    cw_autobuf struct cw_buf text = {0};
    if (cw_answer_if_failing(x->c, x->call))
        return;
    if (cw_reload(x->c, cw_rpc_call_identity(x->call)->uid, &text, &err) < 0)
        cw_answer_failure(x->c, x->call, &err);
    else
        done(x, cw_buf_str(&text));
}

static void verb_log_level(struct ctl *x)
{
    enum cw_log_level level;
    if (x->m->n_args != 1 || cw_log_parse_level(x->m->args[0], &level) < 0) {
        cw_answer_failuref(x->c, x->call, -EINVAL, "log-level: allowed: debug, info, warn, error");
        return;
    }
    cw_log_set_level(level);
    cw_log_info("log level %s, asked by uid %u", x->m->args[0], cw_rpc_call_identity(x->call)->uid);
    done(x, cw_arena_printf(x->arena, "the controller logs at level %s", x->m->args[0]));
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
    {"requeue", false, verb_requeue},    {"requeuehold", false, verb_requeuehold},
    {"reload", true, verb_reload},       {"log-level", true, verb_log_level},
    {"pause", true, verb_pause},         {"unpause", true, verb_unpause},
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
