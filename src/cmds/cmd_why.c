/* crun-why: every rule that keeps a job waiting, or how it ended. Test: testsuite/t1020-why.t. */
#include <stdio.h>

#include "cmds/cli.h"
#include "cmds/jobquery.h"
#include "cmds/jobtext.h"
#include "spec/outcome.h"

static const struct cw_arg args[] = {{NULL, 0, NULL, NULL}};

static int no_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    (void)value, (void)arg;
    return cw_fail(err, -EINVAL, "unknown option --%s", opt->name);
}

static void print_why(const Cw__WhyReply *r)
{
    cw_autobuf struct cw_buf id = {0};
    printf("Job %s (%s) of %s: %s\n", cw_jobtext_id(r->job, 0, &id),
           r->job->spec->name != NULL ? r->job->spec->name : "", cw_cli_user(r->job->owner),
           cw_state_name(r->job->state));
    for (size_t i = 0; i < r->n_lines; i++)
        printf("  %s\n", r->lines[i]);
}

static json_t *why_json(const Cw__WhyReply *r)
{
    json_t *o = cw_jobtext_json(r->job), *lines = json_array();
    for (size_t i = 0; i < r->n_lines; i++)
        json_array_append_new(lines, json_string(r->lines[i]));
    json_object_set_new(o, "why", lines);
    return o;
}

int cw_cmd_why(struct cw_cli *c, int argc, char *const *argv)
{
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, no_option, NULL);
    if (rc >= 0)
        return rc;
    if (c->operand.n == 0)
        return cw_cli_usage(c, "no job given");
    if ((rc = cw_jobquery_check_ids(c)) >= 0)
        return rc;
    if ((rc = cw_cli_connect(c)) >= 0 || (rc = cw_jobquery_resolve(c, &c->operand, 0)) >= 0)
        return rc;
    json_t *jobs = json_array();
    for (size_t i = 0; i < c->operand.n && rc < 0; i++) {
        Cw__WhyRequest req = CW__WHY_REQUEST__INIT;
        ProtobufCMessage *m;
        req.id = c->operand.v[i];
        rc = cw_cli_call(c, CW_KIND_WHY, &req.base, 0, &m);
        if (rc >= 0)
            break;
        if (c->common.json)
            json_array_append_new(jobs, why_json((const Cw__WhyReply *)m));
        else
            print_why((const Cw__WhyReply *)m);
    }
    if (c->common.json && rc < 0)
        cw_cli_print_json("why", json_pack("{s:O}", "jobs", jobs));
    json_decref(jobs);
    return rc < 0 ? CW_EXIT_OK : rc;
}
