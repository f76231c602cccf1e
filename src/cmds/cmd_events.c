/* crun-events: the history of jobs and nodes, and what happens next. Test: testsuite/t2520-events.t. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cmds/eventquery.h"
#include "cmds/eventtext.h"
#include "cmds/sincetext.h"
#include "spec/selector.h"

static const struct cw_arg args[] = {
    {"follow", 'f', NULL, "go on with what happens next"},
    {"jobs", 'j', "ID,...", "only these jobs"},
    {"kind", 'k', "KIND,...", "only these kinds (submit, start, running, end, ...)"},
    {"since", 'S', "TIME", "from then on (2h, today, 2026-11-30T20:47; with -f default: now)"},
    {"after", 0, "NUMBER", "only those behind the event of this number"},
    {"timeout", 'W', "TIME", "stop following after this time"},
    {"jsonl", 0, NULL, "one JSON object a line"},
    {NULL, 0, NULL, NULL},
};

struct events {
    struct cw_eventquery query;
    struct cw_strv ids, kinds;
    bool jsonl;
    json_t *list;
};

static int add_kinds(struct events *e, const char *value)
{
    const char *p = value;
    while (*p != '\0') {
        size_t n = strcspn(p, ",");
        if (n > 0)
            cw_strv_add_take(&e->kinds, cw_xstrndup(p, n));
        p += n + (p[n] == ',');
    }
    return 0;
}

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct events *e = arg;
    Cw__EventsRequest *req = &e->query.req;
    if (strcmp(opt->name, "follow") == 0)
        e->query.follow = true;
    else if (strcmp(opt->name, "jsonl") == 0)
        e->jsonl = true;
    else if (strcmp(opt->name, "jobs") == 0)
        return cw_selector_split(value, &e->ids, err);
    else if (strcmp(opt->name, "kind") == 0)
        return add_kinds(e, value);
    else if (strcmp(opt->name, "after") == 0)
        return cw_cli_number(value, UINT64_MAX, &req->after_seq, &req->has_after_seq, err);
    else if (strcmp(opt->name, "timeout") == 0)
        return cw_cli_timeout(value, &e->query.timeout_ms, err);
    else {
        req->has_since_ns = true;
        return cw_since_parse(value, cw_clock_real_ns(), &req->since_ns, err);
    }
    return 0;
}

static bool print_event(const Cw__EventRecord *r, void *arg)
{
    struct events *e = arg;
    if (e->jsonl) {
        cw_cli_print_jsonl(cw_eventtext_json(r));
    } else if (e->list != NULL) {
        json_array_append_new(e->list, cw_eventtext_json(r));
    } else {
        cw_autobuf struct cw_buf line = {0};
        cw_eventtext_line(r, &line);
        puts(cw_buf_str(&line));
    }
    return true;
}

static int operands(struct cw_cli *c, struct events *e)
{
    struct cw_error err;
    for (size_t i = 0; i < c->operand.n; i++)
        if (cw_selector_split(c->operand.v[i], &e->ids, &err) != 0)
            return cw_cli_usage(c, "%s", err.text);
    for (size_t i = 0; i < e->ids.n; i++) {
        struct cw_selector s;
        if (cw_selector_parse(e->ids.v[i], &s, &err) != 0)
            return cw_cli_usage(c, "%s", err.text);
        cw_selector_fini(&s);
    }
    if (c->common.json && e->query.follow)
        return cw_cli_usage(c, "--json prints one object and cannot follow: use --jsonl");
    return -1;
}

static int run(struct cw_cli *c, struct events *e)
{
    Cw__EventsRequest *req = &e->query.req;
    req->n_ids = e->ids.n;
    req->ids = e->ids.v;
    req->n_kinds = e->kinds.n;
    req->kinds = e->kinds.v;
    if (!req->has_since_ns && !req->has_after_seq && !e->query.follow)
        req->has_after_seq = true; /* from the first */
    e->list = c->common.json ? json_array() : NULL;
    int rc = cw_eventquery_each(c, &e->query, print_event, e);
    if (rc == CW_EVENTQUERY_TIMED_OUT)
        rc = -1;
    if (rc < 0 && e->list != NULL)
        cw_cli_print_json("events", json_pack("{s:O}", "events", e->list));
    json_decref(e->list);
    return rc < 0 ? CW_EXIT_OK : rc;
}

int cw_cmd_events(struct cw_cli *c, int argc, char *const *argv)
{
    struct events e = {.query.req = CW__EVENTS_REQUEST__INIT};
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, on_option, &e);
    if (rc < 0)
        rc = operands(c, &e);
    if (rc < 0)
        rc = cw_cli_connect(c);
    if (rc < 0)
        rc = run(c, &e);
    cw_strv_fini(&e.ids);
    cw_strv_fini(&e.kinds);
    return rc;
}
