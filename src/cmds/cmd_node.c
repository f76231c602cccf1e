/* crun-node: list, show, drain, resume. Test: testsuite/t1080-node.t, testsuite/t2600-drain.t. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/quantity.h"
#include "cmds/cli.h"
#include "cmds/nodetext.h"
#include "spec/datetime.h"

static const struct cw_arg args[] = {
    {"reason", 'r', "TEXT", "why (needed by drain)"},
    {"deadline", 0, "TIME", "drain: when what still runs is ended (a date, now+1hour, or 1h)"},
    {"then", 0, "WHAT", "cancel or requeue what runs at the deadline (default cancel)"},
    {NULL, 0, NULL, NULL},
};

struct node_options {
    const char *reason, *then;
    int64_t deadline_ns; /* 0: none */
};

/* A date, or how long from now. What is wrong is said of the date. */
static int deadline(const char *text, int64_t *ret_ns, struct cw_error *err)
{
    int64_t now = cw_clock_real_ns();
    uint64_t s;
    if (cw_datetime_parse(text, now, ret_ns, err) == 0)
        return 0;
    if (cw_duration_parse(text, &s, NULL) < 0 || s > 100ull * 366 * 86400)
        return -EINVAL;
    *ret_ns = now + (int64_t)s * CW_NS_PER_S;
    return 0;
}

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct node_options *o = arg;
    if (strcmp(opt->name, "reason") == 0) {
        o->reason = value;
    } else if (strcmp(opt->name, "deadline") == 0) {
        return deadline(value, &o->deadline_ns, err);
    } else {
        if (strcmp(value, "cancel") != 0 && strcmp(value, "requeue") != 0)
            return cw_fail(err, -EINVAL, "'%s' is unknown, allowed: cancel, requeue", value);
        o->then = value;
    }
    return 0;
}

/* Operands behind the verb, host lists expanded. */
static int node_names(const struct cw_cli *c, struct cw_strv *ret, struct cw_error *err)
{
    for (size_t i = 1; i < c->operand.n; i++) {
        cw_autostrv struct cw_strv hosts = {0};
        int rc = cw_hostlist_parse(c->operand.v[i], &hosts, err);
        if (rc != 0)
            return rc;
        for (size_t k = 0; k < hosts.n; k++)
            cw_strv_add(ret, hosts.v[k]);
    }
    return 0;
}

static int show(struct cw_cli *c, struct cw_strv *names)
{
    Cw__NodesRequest req = CW__NODES_REQUEST__INIT;
    ProtobufCMessage *m;
    req.n_names = names->n;
    req.names = names->v;
    int rc = cw_cli_call(c, CW_KIND_NODES, &req.base, 0, &m);
    if (rc >= 0)
        return rc;
    const Cw__NodesReply *r = (const Cw__NodesReply *)m;
    json_t *nodes = json_array();
    for (size_t i = 0; i < r->n_nodes; i++) {
        cw_autobuf struct cw_buf text = {0};
        json_array_append_new(nodes, cw_nodetext_json(r->nodes[i]));
        cw_nodetext_show(r->nodes[i], &text);
        if (!c->common.json)
            fputs(cw_buf_str(&text), stdout);
    }
    if (c->common.json)
        cw_cli_print_json("nodes", json_pack("{s:O}", "nodes", nodes));
    json_decref(nodes);
    return CW_EXIT_OK;
}

static int set(struct cw_cli *c, Cw__NodeVerb verb, struct cw_strv *names,
               const struct node_options *o)
{
    Cw__NodeSetRequest req = CW__NODE_SET_REQUEST__INIT;
    ProtobufCMessage *m;
    req.n_names = names->n;
    req.names = names->v;
    req.verb = verb;
    req.reason = (char *)o->reason;
    req.has_deadline_ns = o->deadline_ns != 0;
    req.deadline_ns = o->deadline_ns;
    if (req.has_deadline_ns)
        req.then = (char *)(o->then != NULL ? o->then : "cancel");
    int rc = cw_cli_call(c, CW_KIND_NODE_SET, &req.base, 0, &m);
    if (rc >= 0)
        return rc;
    if (c->common.json) {
        json_t *list = json_array();
        for (size_t i = 0; i < names->n; i++)
            json_array_append_new(list, json_string(names->v[i]));
        cw_cli_print_json("node", json_pack("{s:o}", "nodes", list));
    }
    return CW_EXIT_OK;
}

int cw_cmd_node(struct cw_cli *c, int argc, char *const *argv)
{
    struct node_options o = {0};
    cw_autostrv struct cw_strv names = {0};
    struct cw_error err;
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, on_option, &o);
    if (rc >= 0)
        return rc;
    const char *verb = c->operand.n > 0 ? c->operand.v[0] : "list";
    bool drain = strcmp(verb, "drain") == 0, resume = strcmp(verb, "resume") == 0;
    if (!drain && !resume && strcmp(verb, "list") != 0 && strcmp(verb, "show") != 0)
        return cw_cli_usage(c, "'%s' is unknown, allowed: list, show, drain, resume", verb);
    if (node_names(c, &names, &err) != 0)
        return cw_cli_usage(c, "%s", err.text);
    if ((drain || resume) && names.n == 0)
        return cw_cli_usage(c, "%s needs a node", verb);
    if (drain && (o.reason == NULL || o.reason[0] == '\0'))
        return cw_cli_usage(c, "drain needs --reason=TEXT");
    if (o.deadline_ns != 0 && !drain)
        return cw_cli_usage(c, "--deadline belongs to drain");
    if (o.then != NULL && o.deadline_ns == 0)
        return cw_cli_usage(c, "--then needs --deadline=TIME");
    if ((rc = cw_cli_connect(c)) >= 0)
        return rc;
    if (drain || resume)
        return set(c, drain ? CW__NODE_VERB__NODE_DRAIN : CW__NODE_VERB__NODE_RESUME, &names,
                   &o);
    return show(c, &names);
}
