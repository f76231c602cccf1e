/* crun-queue: jobs as a list. Test: testsuite/t1010-queue.t, testsuite/t2500-queue-formats.t. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmds/jobquery.h"
#include "cmds/jobrows.h"
#include "cmds/jobtext.h"
#include "cmds/listing.h"
#include "cmds/repeat.h"
#include "spec/outcome.h"

#define COLUMNS "JobArrayID,Partition,Name,UserName,StateCompact,TimeUsed,NumNodes,ReasonList"
#define START_COLUMNS "JobArrayID,Partition,Name,UserName,StateCompact,StartTime,NumNodes,SchedNodes,ReasonList"
#define STEP_COLUMNS "StepID,Name,Partition,UserName,TimeUsed,NodeList"
#define NAMED_WIDTH 20u /* of --Format, as in squeue */

static const struct cw_arg args[] = {
    CW_JOBQUERY_ARGS,
    {"array", 'r', NULL, "one line per array element"},
    {"all", 'a', NULL, "finished jobs too (the same as --states=all)"},
    {"format", 'o', "FORMAT", "columns by letters: \"%.18i %.9P %j %.2t %R\""},
    {"Format", 'O', "NAME[:WIDTH],...", "columns by name"},
    {"helpformat", 0, NULL, "list the letters and names of all columns"},
    {"sort", 'S', "[-]KEY,...", "sort by columns, - the largest first"},
    {"iterate", 'i', "SECONDS", "again and again"},
    {"start", 0, NULL, "waiting jobs with estimated start and nodes"},
    {"steps", 's', NULL, "running steps instead of jobs"},
    {"noheader", 'h', NULL, "no header line"},
    {"parsable2", 'P', NULL, "fields joined by '|', no padding"},
    {"delimiter", 0, "TEXT", "instead of '|'"},
    {"jsonl", 0, NULL, "one JSON object a line"},
    {NULL, 0, NULL, NULL},
};

struct queue {
    struct cw_jobquery query;
    struct cw_jobformat format;
    struct cw_jobsort sort;
    bool expand, no_header, start, steps, parsable, jsonl, help_format;
    const char *delimiter;
    uint64_t every_s;
    size_t seen;   /* jobs, printed or not */
    size_t id_max; /* longest list of indices */
    json_t *jobs;
    struct cw_jobrows *rows;
};

static int on_output_option(struct queue *q, const char *name, const char *value,
                            struct cw_error *err)
{
    if (strcmp(name, "format") == 0) {
        cw_jobformat_fini(&q->format);
        return cw_jobformat_letters(value, &q->format, err);
    }
    if (strcmp(name, "Format") == 0) {
        cw_jobformat_fini(&q->format);
        return cw_jobformat_names(value, NAMED_WIDTH, &q->format, err);
    }
    if (strcmp(name, "sort") == 0)
        return cw_jobsort_parse(value, &q->sort, err);
    if (strcmp(name, "iterate") == 0)
        return cw_cli_number(value, 86400, &q->every_s, NULL, err);
    if (strcmp(name, "noheader") == 0)
        q->no_header = true;
    else if (strcmp(name, "jsonl") == 0)
        q->jsonl = true;
    else if (strcmp(name, "helpformat") == 0)
        q->help_format = true;
    else
        q->parsable = true;
    if (strcmp(name, "delimiter") == 0)
        q->delimiter = value;
    return 0;
}

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct queue *q = arg;
    int rc = cw_jobquery_option(&q->query, opt, value, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (strcmp(opt->name, "array") == 0)
        q->expand = true;
    else if (strcmp(opt->name, "all") == 0)
        q->query.all_states = true;
    else if (strcmp(opt->name, "start") == 0)
        q->start = true;
    else if (strcmp(opt->name, "steps") == 0)
        q->steps = true;
    else
        return on_output_option(q, opt->name, value, err);
    return 0;
}

static void help_format(void)
{
    for (size_t i = 0; i < cw_jobfield_count(); i++) {
        const struct cw_jobfield *f = cw_jobfield_nth(i);
        printf("%%%c  %s%s\n", f->letter != 0 ? f->letter : '-', f->name,
               f->text == NULL ? " (N/A)" : "");
    }
}

static void print_steps(struct queue *q, struct cw_fieldrow *r)
{
    for (size_t i = 0; i < r->job->n_steps; i++) {
        r->step = r->job->steps[i];
        if (!cw_state_terminal(r->step->state))
            cw_jobrows_add(q->rows, r);
    }
}

static void on_job(const Cw__JobInfo *j, int64_t now_ns, void *arg)
{
    struct queue *q = arg;
    q->seen++;
    if (q->start && j->state != CW__STATE__PENDING)
        return;
    if (q->jsonl) {
        cw_cli_print_jsonl(cw_jobtext_json(j));
    } else if (q->jobs != NULL) {
        json_array_append_new(q->jobs, cw_jobtext_json(j));
    } else {
        struct cw_fieldrow r = {.job = j, .now_ns = now_ns};
        r.id_max = q->id_max;
        if (q->steps)
            print_steps(q, &r);
        else
            cw_jobrows_add(q->rows, &r);
    }
}

/* squeue -O JobArrayID lists elements. */
static bool wants_elements(const struct queue *q)
{
    for (size_t i = 0; i < q->format.n && !q->format.letters; i++)
        if (strcmp(q->format.v[i].field->name, "JobArrayID") == 0 && q->format.v[i].width > 0)
            return true;
    return q->expand || q->steps;
}

static int once(struct cw_cli *c, void *arg)
{
    struct queue *q = arg;
    Cw__JobsRequest req = CW__JOBS_REQUEST__INIT;
    req.filter = cw_jobquery_filter(&q->query);
    req.has_expand = req.expand = wants_elements(q);
    req.has_estimate = req.estimate = q->start;
    req.has_steps = req.steps = q->steps;
    struct cw_jobrows_style style = {.no_header = q->no_header,
                                     .delimiter = q->parsable ? q->delimiter : NULL,
                                     .sort = q->sort.n > 0 ? &q->sort : NULL};
    q->seen = 0;
    q->id_max = q->parsable ? 0 : cw_listing_id_max();
    if (c->common.json)
        q->jobs = json_array();
    else if (!q->jsonl)
        q->rows = cw_jobrows_create(&q->format, &style);
    int rc = cw_jobquery_each(c, &req, on_job, q);
    if (q->rows != NULL && rc < 0)
        cw_jobrows_finish(q->rows);
    else
        cw_jobrows_discard(q->rows);
    if (q->jobs != NULL && rc < 0)
        cw_cli_print_json("queue", json_pack("{s:O}", "jobs", q->jobs));
    if (rc < 0)
        rc = cw_jobquery_unknown(c, &q->query, q->seen);
    json_decref(q->jobs);
    q->jobs = NULL;
    q->rows = NULL;
    return rc;
}

static int prepare(struct cw_cli *c, struct queue *q)
{
    struct cw_error err;
    const char *columns = q->steps ? STEP_COLUMNS : q->start ? START_COLUMNS : COLUMNS;
    if (q->help_format) {
        help_format();
        return CW_EXIT_OK;
    }
    if (cw_jobquery_operands(&q->query, &c->operand, &err) != 0)
        return cw_cli_usage(c, "%s", err.text);
    if (q->format.n == 0 && cw_jobformat_names(columns, 0, &q->format, &err) != 0)
        return cw_cli_usage(c, "%s", err.text);
    if (q->delimiter == NULL)
        q->delimiter = "|";
    int rc = cw_cli_connect(c);
    return rc < 0 ? cw_jobquery_resolve(c, &q->query.ids, 0) : rc;
}

int cw_cmd_queue(struct cw_cli *c, int argc, char *const *argv)
{
    struct queue q = {0};
    c->args = args;
    cw_jobquery_init(&q.query);
    int rc = cw_cli_begin(c, argc, argv, on_option, &q);
    if (rc < 0)
        rc = prepare(c, &q);
    if (rc < 0)
        rc = cw_repeat(c, q.every_s, once, &q);
    cw_jobquery_fini(&q.query);
    cw_jobformat_fini(&q.format);
    return rc < 0 ? CW_EXIT_OK : rc;
}
