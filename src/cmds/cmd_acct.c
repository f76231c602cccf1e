/* crun-acct: what jobs used, one row an attempt. Test: testsuite/t1130-outcome.t,
 * testsuite/t2510-acct.t. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "cmds/jobeff.h"
#include "cmds/jobquery.h"
#include "cmds/jobrows.h"
#include "cmds/jobtext.h"
#include "cmds/listing.h"
#include "cmds/sincetext.h"
#include "spec/outcome.h"

#define COLUMNS                                                                                    \
    "JobID,Attempt,JobName,User,State,ExitCode,Elapsed,TotalCPU,MemPeak,CPUs,NodeList,Cause"

static const struct cw_arg args[] = {
    {"jobs", 'j', "ID,...", "only these jobs"},
    {"user", 'u', "NAME,...", "only jobs of these users"},
    {"me", 0, NULL, "only my own jobs (the default, but for jobs that are named)"},
    {"allusers", 'a', NULL, "jobs of all users"},
    {"name", 0, "NAME,...", "only jobs of these names"},
    {"partition", 'r', "NAME,...", "only jobs of these partitions"},
    {"states", 's', "STATE,...", "only attempts that ended in these states"},
    CW_JOBQUERY_MORE_ARGS,
    {"since", 'S', "TIME", "attempts that ended since then (2h, 2026-11-30; default: midnight)"},
    {"until", 'E', "TIME", "and before then"},
    {"allocations", 'X', NULL, "no rows of steps (the default)"},
    {"steps", 0, NULL, "a row for each step too"},
    {"format", 'o', "NAME[%WIDTH],...", "columns by name"},
    {"helpformat", 'e', NULL, "list the names of all columns"},
    {"eff", 0, NULL, "how much of their CPUs, memory and GPUs jobs used"},
    {"noheader", 'n', NULL, "no header line"},
    {"parsable", 'p', NULL, "fields joined by '|', one behind the last too"},
    {"parsable2", 'P', NULL, "fields joined by '|', no padding"},
    {"delimiter", 0, "TEXT", "instead of '|'"},
    {"jsonl", 0, NULL, "one JSON object a line"},
    {NULL, 0, NULL, NULL},
};

struct acct {
    struct cw_jobquery query;
    struct cw_jobformat format;
    bool all_users, no_header, parsable, trailing, steps, eff, jsonl, help_format;
    bool has_since, has_until;
    bool live; /* the rows that come now are of jobs that have not ended */
    int64_t since_ns, until_ns;
    const char *delimiter;
    size_t seen, id_max;
    json_t *jobs;
    struct cw_jobrows *rows;
    struct cw_listing *listing;
};

static const struct {
    const char *name;
    size_t at;
} flags[] = {
    {"allusers", offsetof(struct acct, all_users)}, {"noheader", offsetof(struct acct, no_header)},
    {"parsable2", offsetof(struct acct, parsable)}, {"steps", offsetof(struct acct, steps)},
    {"eff", offsetof(struct acct, eff)},            {"jsonl", offsetof(struct acct, jsonl)},
    {"helpformat", offsetof(struct acct, help_format)},
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct acct *a = arg;
    int64_t now = cw_clock_real_ns();
    int rc = cw_jobquery_option(&a->query, opt, value, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    for (size_t i = 0; i < CW_ARRAY_LEN(flags); i++)
        if (strcmp(opt->name, flags[i].name) == 0)
            *(bool *)((char *)a + flags[i].at) = true;
    if (strcmp(opt->name, "since") == 0) {
        a->has_since = true;
        return cw_since_parse(value, now, &a->since_ns, err);
    }
    if (strcmp(opt->name, "until") == 0) {
        a->has_until = true;
        return cw_since_parse(value, now, &a->until_ns, err);
    }
    if (strcmp(opt->name, "format") == 0)
        return cw_jobformat_names(value, 0, &a->format, err);
    if (strcmp(opt->name, "delimiter") == 0)
        a->delimiter = value;
    if (strcmp(opt->name, "parsable") == 0)
        a->parsable = a->trailing = true;
    if (strcmp(opt->name, "allocations") == 0)
        a->steps = false;
    return 0;
}

static void mib(bool has, uint64_t bytes, char *buf, size_t cap)
{
    if (has)
        snprintf(buf, cap, "%.1fM", (double)bytes / 1048576.0);
    else
        snprintf(buf, cap, "-");
}

static void percent(bool has, double v, char *buf, size_t cap)
{
    if (has)
        snprintf(buf, cap, "%.1f%%", v * 100);
    else
        snprintf(buf, cap, "-");
}

static void eff_row(struct acct *s, const struct cw_fieldrow *r)
{
    struct cw_jobeff e;
    int64_t ran;
    char cores[24], gpus[16], elapsed[40], cpu[40], cpu_eff[16], used[32], had[32], mem_eff[16];
    cw_autobuf struct cw_buf id = {0};
    cw_jobeff_of(r, &e);
    cw_jobfield_ran_ns(r, &ran);
    snprintf(cores, sizeof(cores), "%llu", (unsigned long long)e.cores);
    snprintf(gpus, sizeof(gpus), "%u", e.gpus);
    mib(e.has_mem, e.mem_used_bytes, used, sizeof(used));
    mib(e.has_mem, e.mem_bytes, had, sizeof(had));
    percent(e.has_cpu, cw_jobeff_cpu(&e), cpu_eff, sizeof(cpu_eff));
    percent(e.has_mem, cw_jobeff_mem(&e), mem_eff, sizeof(mem_eff));
    cw_listing_row(
        s->listing, cw_jobtext_id(r->job, r->id_max, &id), cw_state_name(r->job->state), cores,
        cw_jobfield_elapsed_text((uint64_t)(ran / CW_NS_PER_S), elapsed, sizeof(elapsed)),
        e.has_cpu ? cw_jobfield_cpu_text(e.cpu_ns, cpu, sizeof(cpu)) : "-", cpu_eff, used, had,
        mem_eff, gpus, NULL);
}

static json_t *job_json(struct acct *s, const struct cw_fieldrow *r)
{
    json_t *o = cw_jobtext_json(r->job);
    if (s->eff) {
        struct cw_jobeff e;
        cw_jobeff_of(r, &e);
        json_object_set_new(o, "efficiency", cw_jobeff_json(&e));
    }
    return o;
}

static void on_job(const Cw__JobInfo *j, int64_t now_ns, void *arg)
{
    struct acct *s = arg;
    struct cw_fieldrow r = {.job = j, .now_ns = now_ns, .acct = true, .whole = s->live};
    s->seen++;
    if (s->jsonl) {
        cw_cli_print_jsonl(job_json(s, &r));
        return;
    }
    if (s->jobs != NULL) {
        json_array_append_new(s->jobs, job_json(s, &r));
        return;
    }
    r.id_max = s->id_max;
    if (s->eff) {
        eff_row(s, &r);
        return;
    }
    cw_jobrows_add(s->rows, &r);
    for (size_t i = 0; i < j->n_steps && s->steps; i++) {
        r.step = j->steps[i];
        cw_jobrows_add(s->rows, &r);
    }
}

static void narrow(struct acct *s, Cw__JobsRequest *req)
{
    req->filter = cw_jobquery_filter(&s->query);
    req->filter->has_include_finished = req->filter->include_finished = true;
    req->has_attempts = req->attempts = true;
    req->has_steps = req->steps = s->steps || s->jobs != NULL || s->jsonl;
    if (req->filter->n_ids > 0)
        return; /* a job that was named is shown whatever its age and owner */
    if (!s->all_users && req->filter->n_uids == 0) {
        s->query.uids[0] = geteuid();
        req->filter->n_uids = 1;
    }
    req->filter->has_ended_after_ns = true;
    req->filter->ended_after_ns =
        s->has_since ? s->since_ns : cw_since_midnight(cw_clock_real_ns());
    req->filter->has_ended_before_ns = s->has_until;
    req->filter->ended_before_ns = s->until_ns;
}

/* An attempt that has ended was shown by its end time. */
static void on_live(const Cw__JobInfo *j, int64_t now_ns, void *arg)
{
    Cw__JobInfo row = *j;
    if (j->state == CW__STATE__PENDING)
        row.attempt = NULL;
    on_job(&row, now_ns, arg);
}

/* Behind what has ended comes, as in sacct, what has not. */
static int each_live(struct cw_cli *c, struct acct *s)
{
    Cw__JobsRequest req = CW__JOBS_REQUEST__INIT;
    if (s->query.ids.n > 0 || (s->has_until && s->until_ns < cw_clock_real_ns() - CW_NS_PER_S))
        return -1;
    req.filter = cw_jobquery_filter(&s->query);
    req.filter->include_finished = false;
    req.filter->has_ended_after_ns = req.filter->has_ended_before_ns = false;
    req.has_steps = req.steps = s->steps || s->jobs != NULL || s->jsonl;
    s->live = true;
    return cw_jobquery_each(c, &req, on_live, s);
}

static int prepare(struct cw_cli *c, struct acct *s)
{
    struct cw_error err;
    if (s->help_format) {
        for (size_t i = 0; i < cw_jobfield_count(); i++)
            puts(cw_jobfield_nth(i)->name);
        return CW_EXIT_OK;
    }
    if (cw_jobquery_operands(&s->query, &c->operand, &err) != 0)
        return cw_cli_usage(c, "%s", err.text);
    if (s->format.n == 0 && cw_jobformat_names(COLUMNS, 0, &s->format, &err) != 0)
        return cw_cli_usage(c, "%s", err.text);
    int rc = cw_cli_connect(c);
    return rc < 0 ? cw_jobquery_resolve(c, &s->query.ids, 0) : rc;
}

static int run(struct cw_cli *c, struct acct *s)
{
    static const char *const eff_headers[] = {
        ">JobID", "State",    ">Cores",    ">Elapsed", ">TotalCPU", ">CPUEff",
        ">Mem",   ">MemHad", ">MemEff", ">GPUs",    NULL};
    Cw__JobsRequest req = CW__JOBS_REQUEST__INIT;
    struct cw_jobrows_style style = {.no_header = s->no_header, .acct = true,
                                     .trailing = s->trailing};
    if (s->parsable)
        style.delimiter = s->delimiter != NULL ? s->delimiter : "|";
    if (c->common.json)
        s->jobs = json_array();
    else if (s->eff && !s->jsonl)
        s->listing = cw_listing_create(eff_headers, s->no_header, s->parsable);
    else if (!s->jsonl)
        s->rows = cw_jobrows_create(&s->format, &style);
    s->id_max = s->parsable ? 0 : cw_listing_id_max();
    narrow(s, &req);
    int rc = cw_jobquery_each(c, &req, on_job, s);
    if (rc < 0)
        rc = each_live(c, s);
    if (s->listing != NULL && rc < 0)
        cw_listing_print(s->listing);
    else
        cw_listing_discard(s->listing);
    if (s->rows != NULL && rc < 0)
        cw_jobrows_finish(s->rows);
    else
        cw_jobrows_discard(s->rows);
    if (s->jobs != NULL && rc < 0)
        cw_cli_print_json("acct", json_pack("{s:O}", "jobs", s->jobs));
    json_decref(s->jobs);
    return rc < 0 ? cw_jobquery_unknown(c, &s->query, s->seen) : rc;
}

int cw_cmd_acct(struct cw_cli *c, int argc, char *const *argv)
{
    struct acct s = {0};
    c->args = args;
    cw_jobquery_init(&s.query);
    int rc = cw_cli_begin(c, argc, argv, on_option, &s);
    if (rc < 0)
        rc = prepare(c, &s);
    if (rc < 0)
        rc = run(c, &s);
    cw_jobquery_fini(&s.query);
    cw_jobformat_fini(&s.format);
    return rc < 0 ? CW_EXIT_OK : rc;
}
