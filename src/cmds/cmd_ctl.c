/* crun-ctl: asks the controller about itself and steers it. Test: testsuite/t1090-ctl.t. */
#include <stdio.h>
#include <string.h>

#include "cmds/cli.h"
#include "cmds/jobquery.h"
#include "cmds/jobtext.h"
#include "cmds/jobupdate.h"

static const struct cw_arg args[] = {{NULL, 0, NULL, NULL}};

static const struct {
    const char *name, *help;
    bool needs_args, takes_jobs;
} verbs[] = {
    {"ping", "is the controller there", false, false},
    {"show", "job ID ...: everything known of a job, as JSON", true, false},
    {"hold", "ID ...: keep waiting jobs from starting", true, true},
    {"release", "ID ...: undo hold", true, true},
    {"requeue", "ID ...: end what runs and start it again", true, true},
    {"requeuehold", "ID ...: the same, and hold it", true, true},
    {"update", "JOB ... KEY=VALUE ...: change jobs that wait (some things of running ones too)", true, false},
    {"pause", "nothing starts any more; what runs goes on", false, false},
    {"unpause", "undo pause", false, false},
    {"diag", "counts, times and queues of the controller", false, false},
    {"selfcheck", "recompute the ledger from the rows and compare", false, false},
    {"backup", "DIR: a consistent copy of the state into an empty directory", true, false},
    {"show-config", "every setting with its origin", false, false},
    {"reload", "read the configuration again", false, false},
    {"log-level", "debug, info, warn or error: what the controller logs from now on", true, false},
    {"shutdown", "stop the controller; running jobs go on", false, false},
};

static int no_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    (void)value, (void)arg;
    return cw_fail(err, -EINVAL, "unknown option --%s", opt->name);
}

static void add_job(const Cw__JobInfo *j, int64_t now_ns, void *arg)
{
    (void)now_ns;
    json_array_append_new(arg, cw_jobtext_json(j));
}

/* hold and release take job ids behind the verb. */
static int check_ids(const struct cw_cli *c)
{
    struct cw_cli tail = *c;
    tail.operand.v++;
    tail.operand.n--;
    return cw_jobquery_check_ids(&tail);
}

static int show_jobs(struct cw_cli *c)
{
    struct cw_jobquery q;
    struct cw_error err;
    cw_jobquery_init(&q);
    struct cw_strv ids = {.v = c->operand.v + 2, .n = c->operand.n - 2};
    int rc = -1;
    if (cw_jobquery_operands(&q, &ids, &err) != 0)
        rc = cw_cli_usage(c, "%s", err.text);
    if (rc < 0) {
        Cw__JobsRequest req = CW__JOBS_REQUEST__INIT;
        req.filter = cw_jobquery_filter(&q);
        json_t *jobs = json_array();
        rc = cw_jobquery_each(c, &req, add_job, jobs);
        if (rc < 0)
            rc = cw_jobquery_unknown(c, &q, json_array_size(jobs));
        if (rc < 0)
            cw_cli_print_json("jobs", json_pack("{s:O}", "jobs", jobs));
        json_decref(jobs);
    }
    cw_jobquery_fini(&q);
    return rc < 0 ? CW_EXIT_OK : rc;
}

static int ping(struct cw_cli *c)
{
    Cw__PingRequest req = CW__PING_REQUEST__INIT;
    ProtobufCMessage *m;
    int rc = cw_cli_call(c, CW_KIND_PING, &req.base, 0, &m);
    if (rc >= 0)
        return rc;
    const Cw__PingReply *r = (const Cw__PingReply *)m;
    if (c->common.json)
        cw_cli_print_json("ping", json_pack("{s:s, s:s, s:i}", "cluster", r->cluster, "version",
                                            r->version, "pid", (int)r->pid));
    else
        printf("controller of %s is up (version %s, pid %u)\n", r->cluster, r->version, r->pid);
    return CW_EXIT_OK;
}

#define SHUTDOWN_MS 5000u

/* The controller may be gone before its answer is read: its absence is an answer too. */
static int shut_down(struct cw_cli *c)
{
    Cw__CtlRequest req = CW__CTL_REQUEST__INIT;
    Cw__PingRequest ping_req = CW__PING_REQUEST__INIT;
    ProtobufCMessage *m;
    struct cw_error err;
    req.verb = "shutdown";
    int rc = cw_client_call(c->client, CW_KIND_CTL, &req.base, SHUTDOWN_MS, c->arena, &m, &err);
    if (rc == -EHOSTUNREACH && cw_client_call(c->client, CW_KIND_PING, &ping_req.base, SHUTDOWN_MS,
                                              c->arena, &m, NULL) == -EHOSTUNREACH)
        rc = 0;
    if (rc != 0)
        return cw_cli_fail(c, &err);
    static const char text[] = "the controller stops; jobs go on";
    if (c->common.json)
        cw_cli_print_json("shutdown", json_pack("{s:s}", "text", text));
    else
        puts(text);
    return CW_EXIT_OK;
}

static int ask(struct cw_cli *c, const char *verb)
{
    Cw__CtlRequest req = CW__CTL_REQUEST__INIT;
    ProtobufCMessage *m;
    req.verb = (char *)verb;
    req.n_args = c->operand.n - 1;
    req.args = c->operand.v + 1;
    int rc = cw_cli_call(c, CW_KIND_CTL, &req.base, 0, &m);
    if (rc >= 0)
        return rc;
    const Cw__CtlReply *r = (const Cw__CtlReply *)m;
    json_error_t je;
    json_t *body = c->common.json && r->json != NULL ? json_loads(r->json, 0, &je) : NULL;
    if (c->common.json)
        cw_cli_print_json(
            verb, body != NULL ? body : json_pack("{s:s}", "text", r->text != NULL ? r->text : ""));
    else if (r->text != NULL && r->text[0] != '\0')
        printf("%s%s", r->text, r->text[strlen(r->text) - 1] == '\n' ? "" : "\n");
    return CW_EXIT_OK;
}

static int unknown_verb(const struct cw_cli *c, const char *verb)
{
    cw_autobuf struct cw_buf list = {0};
    for (size_t i = 0; i < CW_ARRAY_LEN(verbs); i++)
        cw_buf_addf(&list, "%s%s", i == 0 ? "" : ", ", verbs[i].name);
    return cw_cli_usage(c, "'%s' is unknown, allowed: %s", verb, cw_buf_str(&list));
}

int cw_cmd_ctl(struct cw_cli *c, int argc, char *const *argv)
{
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, no_option, NULL);
    if (rc >= 0) {
        for (size_t i = 0; i < CW_ARRAY_LEN(verbs) && c->common.help; i++)
            printf("%s  %-12s %s\n", i == 0 ? "\nVerbs:\n" : "", verbs[i].name, verbs[i].help);
        return rc;
    }
    if (c->operand.n == 0)
        return cw_cli_usage(c, "no verb given");
    const char *verb = c->operand.v[0];
    size_t i = 0;
    while (i < CW_ARRAY_LEN(verbs) && strcmp(verbs[i].name, verb) != 0)
        i++;
    if (i == CW_ARRAY_LEN(verbs))
        return unknown_verb(c, verb);
    if (verbs[i].needs_args && c->operand.n < 2)
        return cw_cli_usage(c, "%s needs an argument: %s", verb, verbs[i].help);
    if (!verbs[i].needs_args && c->operand.n > 1)
        return cw_cli_usage(c, "%s takes no argument, '%s' was given", verb, c->operand.v[1]);
    if (verbs[i].takes_jobs && (rc = check_ids(c)) >= 0)
        return rc;
    if (strcmp(verb, "update") == 0)
        return cw_jobupdate(c);
    bool is_show = strcmp(verb, "show") == 0;
    bool of_jobs = is_show || verbs[i].takes_jobs;
    if (is_show && (c->operand.n < 3 || strcmp(c->operand.v[1], "job") != 0))
        return cw_cli_usage(c, "allowed: show job ID ...");
    if ((rc = cw_cli_connect(c)) >= 0 ||
        (of_jobs && (rc = cw_jobquery_resolve(c, &c->operand, is_show ? 2 : 1)) >= 0))
        return rc;
    verb = c->operand.v[0];
    if (is_show)
        return show_jobs(c);
    if (strcmp(verb, "shutdown") == 0)
        return shut_down(c);
    return strcmp(verb, "ping") == 0 ? ping(c) : ask(c, verb);
}
