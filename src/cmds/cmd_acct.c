/* crun-acct: one row per attempt, with what it used. Test: testsuite/t1060-acct.t. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "cmds/jobquery.h"
#include "cmds/jobtext.h"
#include "cmds/listing.h"
#include "spec/outcome.h"

static const struct cw_arg args[] = {
    CW_JOBQUERY_ARGS,
    {"since", 'S', "TIME",
     "attempts that ended within this time (2h, 7d; default: since midnight)"},
    {"allusers", 'a', NULL, "jobs of all users"},
    {"noheader", 0, NULL, "no header line"},
    {"parsable2", 'P', NULL, "fields joined by '|', no padding"},
    {NULL, 0, NULL, NULL},
};

struct acct {
    struct cw_jobquery query;
    bool all_users, no_header, parsable;
    uint64_t since_s; /* 0: since midnight */
    json_t *jobs;
    struct cw_listing *listing;
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct acct *a = arg;
    int rc = cw_jobquery_option(&a->query, opt, value, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (strcmp(opt->name, "since") == 0)
        return cw_duration_parse(value, &a->since_s, err);
    if (strcmp(opt->name, "allusers") == 0)
        a->all_users = true;
    else if (strcmp(opt->name, "noheader") == 0)
        a->no_header = true;
    else
        a->parsable = true;
    return 0;
}

/* 1.234 s as 00:01.234; from an hour on as H:MM:SS. */
static void cpu_text(const Cw__Usage *u, char *buf, size_t cap)
{
    if (u == NULL) {
        snprintf(buf, cap, "-");
        return;
    }
    uint64_t ms = (u->cpu_user_ns + u->cpu_sys_ns) / 1000000u, s = ms / 1000;
    if (s < 3600)
        snprintf(buf, cap, "%02u:%02u.%03u", (unsigned)(s / 60), (unsigned)(s % 60),
                 (unsigned)(ms % 1000));
    else
        cw_duration_format(s, buf, cap);
}

static void mem_text(const Cw__Usage *u, char *buf, size_t cap)
{
    if (u == NULL)
        snprintf(buf, cap, "-");
    else
        snprintf(buf, cap, "%.1fM",
                 (double)(u->has_mem_peak_bytes ? u->mem_peak_bytes : u->maxrss_bytes) / 1048576.0);
}

static void exit_text(const Cw__AttemptRecord *a, char *buf, size_t cap)
{
    if (a == NULL || (!a->has_exit_code && !a->has_signal))
        snprintf(buf, cap, "-");
    else
        snprintf(buf, cap, "%u:%u", a->exit_code, a->signal);
}

static void on_job(const Cw__JobInfo *j, int64_t now_ns, void *arg)
{
    struct acct *s = arg;
    cw_autobuf struct cw_buf id = {0};
    char elapsed[32], cpu[40], mem[32], code[32], attempt[16];
    if (s->jobs != NULL) {
        json_array_append_new(s->jobs, cw_jobtext_json(j));
        return;
    }
    const Cw__AttemptRecord *a = j->attempt;
    cpu_text(a != NULL ? a->usage : NULL, cpu, sizeof(cpu));
    mem_text(a != NULL ? a->usage : NULL, mem, sizeof(mem));
    exit_text(a, code, sizeof(code));
    snprintf(attempt, sizeof(attempt), "%u", a != NULL ? a->attempt : 0);
    cw_listing_row(s->listing, cw_jobtext_id(j, cw_listing_id_max(), &id), attempt,
                   j->spec->name != NULL ? j->spec->name : "", cw_cli_user(j->owner),
                   cw_state_name(a != NULL ? a->state : j->state), code,
                   cw_jobtext_elapsed(j, now_ns, elapsed, sizeof(elapsed)), cpu, mem,
                   a != NULL && a->grant != NULL ? a->grant->cpus : "-",
                   a != NULL && a->grant != NULL ? a->grant->node : "-",
                   a != NULL && a->has_cause ? cw_cause_name(a->cause) : "-", NULL);
}

static int64_t midnight_ns(void)
{
    time_t now = (time_t)(cw_clock_real_ns() / CW_NS_PER_S);
    struct tm tm;
    localtime_r(&now, &tm);
    tm.tm_sec = tm.tm_min = tm.tm_hour = 0;
    tm.tm_isdst = -1;
    return (int64_t)mktime(&tm) * CW_NS_PER_S;
}

static void narrow(struct acct *s, Cw__JobsRequest *req)
{
    req->filter = cw_jobquery_filter(&s->query);
    req->filter->has_include_finished = req->filter->include_finished = true;
    req->has_attempts = req->attempts = true;
    if (req->filter->n_ids > 0)
        return; /* a job that was named is shown whatever its age and owner */
    if (!s->all_users && req->filter->n_uids == 0) {
        s->query.uids[0] = geteuid();
        req->filter->n_uids = 1;
    }
    req->filter->has_ended_after_ns = s->since_s != CW_DURATION_UNLIMITED;
    req->filter->ended_after_ns =
        s->since_s == 0 ? midnight_ns() : cw_clock_real_ns() - (int64_t)s->since_s * CW_NS_PER_S;
}

int cw_cmd_acct(struct cw_cli *c, int argc, char *const *argv)
{
    struct acct s = {0};
    struct cw_error err;
    c->args = args;
    cw_jobquery_init(&s.query);
    int rc = cw_cli_begin(c, argc, argv, on_option, &s);
    if (rc < 0 && cw_jobquery_operands(&s.query, &c->operand, &err) != 0)
        rc = cw_cli_usage(c, "%s", err.text);
    if (rc < 0)
        rc = cw_cli_connect(c);
    if (rc < 0) {
        static const char *const headers[] = {
            ">JobID",    ">Attempt", "JobName", "User", "State", ">ExitCode", ">Elapsed",
            ">TotalCPU", ">MemPeak", "CPUs",    "Node", "Cause", NULL};
        Cw__JobsRequest req = CW__JOBS_REQUEST__INIT;
        narrow(&s, &req);
        if (c->common.json)
            s.jobs = json_array();
        else
            s.listing = cw_listing_create(headers, s.no_header, s.parsable);
        rc = cw_jobquery_each(c, &req, on_job, &s);
        if (s.listing != NULL && rc < 0)
            cw_listing_print(s.listing);
        else
            cw_listing_discard(s.listing);
        if (s.jobs != NULL && rc < 0)
            cw_cli_print_json("acct", json_pack("{s:O}", "jobs", s.jobs));
        json_decref(s.jobs);
    }
    cw_jobquery_fini(&s.query);
    return rc < 0 ? CW_EXIT_OK : rc;
}
