/* crun-queue: jobs as a list. Test: testsuite/t1010-queue.t. */
#include <stdio.h>
#include <string.h>

#include "cmds/jobquery.h"
#include "cmds/jobtext.h"
#include "cmds/listing.h"
#include "spec/outcome.h"

static const struct cw_arg args[] = {
    CW_JOBQUERY_ARGS,
    {"array", 'r', NULL, "one line per array element"},
    {"all", 'a', NULL, "finished jobs too (the same as --states=all)"},
    {"noheader", 'h', NULL, "no header line"},
    {NULL, 0, NULL, NULL},
};

struct queue {
    struct cw_jobquery query;
    bool expand, no_header;
    size_t rows;
    json_t *jobs;
    struct cw_listing *listing;
};

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
    else
        q->no_header = true;
    return 0;
}

static void on_job(const Cw__JobInfo *j, int64_t now_ns, void *arg)
{
    struct queue *q = arg;
    char elapsed[32];
    cw_autobuf struct cw_buf id = {0};
    q->rows++;
    if (q->jobs != NULL) {
        json_array_append_new(q->jobs, cw_jobtext_json(j));
        return;
    }
    cw_autobuf struct cw_buf place = {0};
    cw_jobtext_place(j, &place);
    cw_listing_row(q->listing, cw_jobtext_id(j, cw_listing_id_max(), &id),
                   j->spec->partition != NULL ? j->spec->partition : "",
                   j->spec->name != NULL ? j->spec->name : "", cw_cli_user(j->owner),
                   cw_state_letters(j->state),
                   cw_jobtext_elapsed(j, now_ns, elapsed, sizeof(elapsed)), "1", cw_buf_str(&place),
                   NULL);
}

int cw_cmd_queue(struct cw_cli *c, int argc, char *const *argv)
{
    struct queue q = {0};
    struct cw_error err;
    c->args = args;
    cw_jobquery_init(&q.query);
    int rc = cw_cli_begin(c, argc, argv, on_option, &q);
    if (rc < 0 && cw_jobquery_operands(&q.query, &c->operand, &err) != 0)
        rc = cw_cli_usage(c, "%s", err.text);
    if (rc < 0)
        rc = cw_cli_connect(c);
    if (rc < 0) {
        static const char *const headers[] = {">JOBID", "PARTITION", "NAME",   "USER",
                                              "ST",     ">TIME",     ">NODES", "NODELIST(REASON)",
                                              NULL};
        Cw__JobsRequest req = CW__JOBS_REQUEST__INIT;
        req.filter = cw_jobquery_filter(&q.query);
        req.has_expand = req.expand = q.expand;
        if (c->common.json)
            q.jobs = json_array();
        else
            q.listing = cw_listing_create(headers, q.no_header, false);
        rc = cw_jobquery_each(c, &req, on_job, &q);
        if (q.listing != NULL && rc < 0)
            cw_listing_print(q.listing);
        else
            cw_listing_discard(q.listing);
        if (q.jobs != NULL && rc < 0)
            cw_cli_print_json("queue", json_pack("{s:O}", "jobs", q.jobs));
        if (rc < 0)
            rc = cw_jobquery_unknown(c, &q.query, q.rows);
        json_decref(q.jobs);
    }
    cw_jobquery_fini(&q.query);
    return rc < 0 ? CW_EXIT_OK : rc;
}
