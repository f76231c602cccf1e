/* diagnosis.c: what crun-diag prints: the counters of every part, read when somebody asks. See
 * diagnosis.h. */
#include "ctld/diagnosis.h"

#include <unistd.h>

#include "base/clock.h"
#include "ctld/cycle.h"
#include "ctld/effect.h"
#include "ctld/eventlog.h"
#include "ctld/nodelink.h"
#include "ctld/retention.h"
#include "ctld/statistics.h"
#include "ctld/turn.h"
#include "ctld/users.h"
#include "ctld/waiter.h"
#include "model/node.h"

#define TOP_USERS 10u

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

/* Jobs that a pass looks at. */
static uint64_t queued(struct cw_ctld *c)
{
    uint64_t n = 0;
    cw_list_each (p, cw_model_queue(c->model))
        n++;
    return n;
}

static void diag_jobs(struct cw_ctld *c, json_t *o)
{
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
    set(o, "event_followers", cw_eventlog_n_followers(c->eventlog));
    set(o, "queued_jobs", queued(c));
}

static void diag_times(struct cw_ctld *c, json_t *o)
{
    struct cw_turn_stats t;
    struct cw_cycle_stats y;
    struct cw_error why;
    cw_turn_get_stats(c->turn, &t);
    cw_cycle_get_stats(c->cycle, &y);
    set(o, "turns", cw_statistics_turns(c->statistics));
    set(o, "commits", t.latency.n);
    set(o, "commit_failures", t.failures);
    set(o, "commit_last_us", (uint64_t)t.last_ns / 1000);
    set(o, "commit_max_us", (uint64_t)t.latency.max_ns / 1000);
    set(o, "commit_mean_us", t.latency.n == 0 ? 0 : (uint64_t)t.total_ns / 1000 / t.latency.n);
    set(o, "commit_p50_us", cw_latency_quantile_us(&t.latency, 500));
    set(o, "commit_p99_us", cw_latency_quantile_us(&t.latency, 990));
    set(o, "batch_open_bytes", t.open_bytes);
    set(o, "batch_flying_bytes", t.flying_bytes);
    set(o, "passes", y.latency.n);
    set(o, "pass_started", y.started);
    set(o, "pass_p50_us", cw_latency_quantile_us(&y.latency, 500));
    set(o, "pass_p99_us", cw_latency_quantile_us(&y.latency, 990));
    set(o, "pass_last_us", (uint64_t)y.last_ns / 1000);
    set(o, "pass_max_us", (uint64_t)y.latency.max_ns / 1000);
    if (cw_turn_failing(c->turn, &why))
        json_object_set_new(o, "store_error", json_string(why.text));
}

static void diag_store(struct cw_ctld *c, json_t *o)
{
    uint64_t bytes = 0;
    cw_store_free_bytes(c->store, &bytes);
    set(o, "store_free_bytes", bytes);
    set(o, "rows_damaged", cw_store_checked(c->store)->damaged);
    set(o, "rows_job", rows(c, CW_TABLE_JOB));
    set(o, "rows_attempt", rows(c, CW_TABLE_ATTEMPT));
    set(o, "rows_payload", rows(c, CW_TABLE_PAYLOAD));
    set(o, "rows_step", rows(c, CW_TABLE_STEP));
    set(o, "rows_event", rows(c, CW_TABLE_EVENT));
    set(o, "rows_cron", rows(c, CW_TABLE_CRON));
    set(o, "rows_quarantine", rows(c, CW_TABLE_QUARANTINE));
    set(o, "events_written", cw_effects_event_seq(c->effects));
    set(o, "jobs_expired", cw_retention_expired(c->retention));
    set(o, "quarantined_at_start", c->n_quarantined);
    set(o, "uptime_s", (uint64_t)((cw_clock_real_ns() - c->start_ns) / CW_NS_PER_S));
    set(o, "paused", c->paused ? 1 : 0);
    set(o, "pid", (uint64_t)getpid());
}

static void diag_requests(struct cw_ctld *c, json_t *o)
{
    json_t *kinds = json_object(), *users = json_array();
    struct cw_requestcount top[TOP_USERS];
    int64_t now = cw_clock_mono_ns();
    for (unsigned k = 0; k < CW_STATISTICS_KINDS; k++) {
        const struct cw_kind_row *row = cw_kind_find(k);
        uint64_t count, rate;
        if (row == NULL)
            continue;
        cw_statistics_kind(c->statistics, row->kind, now, &count, &rate);
        if (count > 0)
            json_object_set_new(kinds, row->name, json_pack("{s:I, s:I}", "count", n(count),
                                                            "last_minute", n(rate)));
    }
    size_t n_users = cw_statistics_users(c->statistics, now, top, TOP_USERS);
    for (size_t i = 0; i < n_users; i++) {
        json_t *u = json_pack("{s:I, s:I}", "count", n(top[i].n), "last_minute", n(top[i].before));
        const char *name = top[i].uid == CW_STATISTICS_OTHERS
                               ? "(others)"
                               : cw_users_name(c->users, top[i].uid);
        if (top[i].uid != CW_STATISTICS_OTHERS)
            json_object_set_new(u, "uid", json_integer(top[i].uid));
        if (name != NULL)
            json_object_set_new(u, "user", json_string(name));
        json_array_append_new(users, u);
    }
    json_object_set_new(o, "requests", kinds);
    json_object_set_new(o, "users", users);
}

json_t *cw_diagnosis_json(struct cw_ctld *c)
{
    json_t *o = json_object();
    diag_jobs(c, o);
    diag_times(c, o);
    diag_store(c, o);
    diag_requests(c, o);
    return o;
}

static void text_count(const char *what, const json_t *o, struct cw_buf *out)
{
    cw_buf_addf(out, "  %-20s %lld, %lld in the last minute\n", what,
                (long long)json_integer_value(json_object_get(o, "count")),
                (long long)json_integer_value(json_object_get(o, "last_minute")));
}

void cw_diagnosis_text(json_t *o, struct cw_buf *out)
{
    const char *key;
    json_t *v;
    size_t i;
    json_object_foreach (o, key, v) {
        if (json_is_integer(v))
            cw_buf_addf(out, "%-22s %lld\n", key, (long long)json_integer_value(v));
        else if (json_is_string(v))
            cw_buf_addf(out, "%-22s %s\n", key, json_string_value(v));
        else if (json_is_boolean(v))
            cw_buf_addf(out, "%-22s %s\n", key, json_is_true(v) ? "yes" : "no");
    }
    cw_buf_add_str(out, "requests by kind\n");
    json_object_foreach (json_object_get(o, "requests"), key, v)
        text_count(key, v, out);
    cw_buf_add_str(out, "users that asked most\n");
    json_array_foreach (json_object_get(o, "users"), i, v) {
        const char *name = json_string_value(json_object_get(v, "user"));
        text_count(name != NULL ? name : "?", v, out);
    }
}
