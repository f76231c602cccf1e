/* crun-stat: what running jobs use now, a line for each of their nodes. Test:
 * testsuite/t2530-diag.t. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cmds/cli.h"
#include "cmds/jobfields.h"
#include "cmds/jobquery.h"
#include "cmds/jobtext.h"
#include "cmds/listing.h"
#include "cmds/repeat.h"
#include "spec/check.h"
#include "spec/outcome.h"

static const struct cw_arg args[] = {
    {"jobs", 'j', "ID,...", "these jobs (the same as operands)"},
    {"iterate", 'i', "SECONDS", "again and again"},
    {"noheader", 'n', NULL, "no header line"},
    {"parsable2", 'P', NULL, "fields joined by '|', no padding"},
    {NULL, 0, NULL, NULL},
};

struct stat_cmd {
    struct cw_jobquery query;
    bool no_header, parsable;
    uint64_t every_s;
    struct cw_strv running; /* ids, as shown */
    struct cw_listing *listing;
    json_t *list;
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct stat_cmd *s = arg;
    int rc = cw_jobquery_option(&s->query, opt, value, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (strcmp(opt->name, "iterate") == 0)
        return cw_cli_number(value, 86400, &s->every_s, NULL, err);
    if (strcmp(opt->name, "noheader") == 0)
        s->no_header = true;
    else
        s->parsable = true;
    return 0;
}

static void take_running(const Cw__JobInfo *j, int64_t now_ns, void *arg)
{
    struct stat_cmd *s = arg;
    cw_autobuf struct cw_buf id = {0};
    (void)now_ns;
    if (j->attempt != NULL && j->attempt->has_start_ns && !cw_state_terminal(j->state))
        cw_strv_add(&s->running, cw_jobtext_id(j, 0, &id));
}

static void mib(bool has, uint64_t bytes, char *buf, size_t cap)
{
    if (has)
        snprintf(buf, cap, "%.1fM", (double)bytes / 1048576.0);
    else
        snprintf(buf, cap, "-");
}

static json_t *reading_json(const char *id, const Cw__TicketReply *t, const Cw__StatReply *r)
{
    json_t *o = json_pack("{s:s, s:I, s:i, s:s, s:o}", "id", id, "job_id",
                          (json_int_t)t->attempt->id, "attempt", (int)t->attempt->attempt, "node",
                          t->node, "usage", cw_jobtext_usage_json(r->usage));
    if (r->has_mem_bytes)
        json_object_set_new(o, "mem_bytes", json_integer((json_int_t)r->mem_bytes));
    if (r->has_processes)
        json_object_set_new(o, "processes", json_integer(r->processes));
    return o;
}

static void reading_row(struct stat_cmd *s, const char *id, const Cw__TicketReply *t,
                        const Cw__StatReply *r)
{
    char elapsed[40], cpu[40], mem[32], anon[32], peak[32], busy[16], procs[16];
    const Cw__AttemptRecord *a = t->attempt;
    uint64_t cpu_ns = r->usage->cpu_user_ns + r->usage->cpu_sys_ns;
    int64_t now = r->has_now_ns ? r->now_ns : cw_clock_real_ns();
    int64_t ran = a->has_start_ns && now > a->start_ns ? now - a->start_ns : 0;
    cw_jobfield_cpu_text(cpu_ns, cpu, sizeof(cpu));
    mib(r->has_mem_bytes, r->mem_bytes, mem, sizeof(mem));
    mib(r->usage->has_mem_anon_peak_bytes, r->usage->mem_anon_peak_bytes, anon, sizeof(anon));
    mib(r->usage->has_mem_peak_bytes, r->usage->mem_peak_bytes, peak, sizeof(peak));
    cw_jobfield_elapsed_text((uint64_t)(ran / CW_NS_PER_S), elapsed, sizeof(elapsed));
    snprintf(busy, sizeof(busy), "%.2f", ran > 0 ? (double)cpu_ns / (double)ran : 0.0);
    snprintf(procs, sizeof(procs), "%u", r->processes);
    cw_listing_row(s->listing, id, t->node, elapsed, cpu, busy, mem, anon, peak,
                   r->has_processes ? procs : "-", NULL);
}

/* One job on all of its nodes. -1, or the exit code. */
static int read_job(struct cw_cli *c, struct stat_cmd *s, const char *id)
{
    size_t nodes = 1;
    for (uint32_t k = 0; k < nodes; k++) {
        const Cw__TicketReply *t;
        const Cw__StatReply *r;
        struct cw_error err;
        if (cw_statreader_read(c->client, id, k, c->arena, &t, &r, &err) != 0)
            return cw_cli_fail(c, &err);
        nodes = 1 + t->attempt->n_more_grants;
        if (s->list != NULL)
            json_array_append_new(s->list, reading_json(id, t, r));
        else
            reading_row(s, id, t, r);
    }
    return -1;
}

static int once(struct cw_cli *c, void *arg)
{
    struct stat_cmd *s = arg;
    static const char *const headers[] = {">JobID",   "Node",       ">Elapsed", ">TotalCPU",
                                          ">CPUsUsed", ">Mem",      ">AnonPeak", ">MemPeak",
                                          ">Processes", NULL};
    Cw__JobsRequest req = CW__JOBS_REQUEST__INIT;
    size_t before = s->query.ids.n;
    req.filter = cw_jobquery_filter(&s->query);
    req.has_expand = req.expand = true;
    s->running = (struct cw_strv){0};
    int rc = cw_jobquery_each(c, &req, take_running, s);
    if (rc < 0 && s->running.n == 0 && before > 0) {
        fprintf(stderr, "%s: none of these jobs is running\n", c->name);
        rc = CW_EXIT_REFUSED;
    }
    if (rc < 0 && c->common.json)
        s->list = json_array();
    else if (rc < 0)
        s->listing = cw_listing_create(headers, s->no_header, s->parsable);
    for (size_t i = 0; i < s->running.n && rc < 0; i++)
        rc = read_job(c, s, s->running.v[i]);
    if (s->listing != NULL && rc < 0)
        cw_listing_print(s->listing);
    else
        cw_listing_discard(s->listing);
    if (s->list != NULL && rc < 0)
        cw_cli_print_json("stat", json_pack("{s:O}", "jobs", s->list));
    json_decref(s->list);
    s->list = NULL;
    s->listing = NULL;
    cw_strv_fini(&s->running);
    return rc;
}

int cw_cmd_stat(struct cw_cli *c, int argc, char *const *argv)
{
    struct stat_cmd s = {0};
    struct cw_error err;
    c->args = args;
    cw_jobquery_init(&s.query);
    int rc = cw_cli_begin(c, argc, argv, on_option, &s);
    if (rc < 0 && cw_jobquery_operands(&s.query, &c->operand, &err) != 0)
        rc = cw_cli_usage(c, "%s", err.text);
    if (rc < 0 && s.query.ids.n == 0)
        rc = cw_cli_usage(c, "no job given");
    if (rc < 0)
        rc = cw_cli_connect(c);
    if (rc < 0)
        rc = cw_jobquery_resolve(c, &s.query.ids, 0);
    if (rc < 0)
        rc = cw_repeat(c, s.every_s, once, &s);
    cw_jobquery_fini(&s.query);
    return rc < 0 ? CW_EXIT_OK : rc;
}
