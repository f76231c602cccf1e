/* crun-info: partitions (a line per partition and node state) or nodes. Test:
 * testsuite/t1070-info.t. */
#include <stdio.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/quantity.h"
#include "cmds/cli.h"
#include "cmds/inforows.h"
#include "cmds/listing.h"
#include "cmds/nodetext.h"

static const struct cw_arg args[] = {
    {"nodes", 'N', NULL, "one line per node"},
    {"node", 'n', "NODES", "only these nodes (the same as operands)"},
    {"partition", 'p', "NAME,...", "only these partitions"},
    {"states", 't', "STATE,...", "only nodes in these states (idle, mix, alloc, drain, down, ...)"},
    {"list-reasons", 'R', NULL, "nodes that are drained, and why"},
    {"format", 'o', "FORMAT", "columns by letters: \"%P %.5a %.10l %.6D %.6t %N\""},
    {"helpformat", 0, NULL, "list the letters of all columns"},
    {"all", 'a', NULL, "all partitions (the default)"},
    {"noheader", 'h', NULL, "no header line"},
    {NULL, 0, NULL, NULL},
};

#define REASON_FORMAT "%20E %9u %19H %N"

struct info {
    bool by_node, no_header, reasons, help_format;
    struct cw_strv nodes, partitions, states;
    struct cw_infoformat *format;
};

static void split(const char *text, struct cw_strv *out)
{
    for (const char *p = text; *p != '\0';) {
        size_t n = strcspn(p, ",");
        if (n > 0)
            cw_strv_add_take(out, cw_xstrndup(p, n));
        p += n + (p[n] == ',');
    }
}

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct info *i = arg;
    if (strcmp(opt->name, "nodes") == 0)
        i->by_node = true;
    else if (strcmp(opt->name, "noheader") == 0)
        i->no_header = true;
    else if (strcmp(opt->name, "list-reasons") == 0)
        i->reasons = true;
    else if (strcmp(opt->name, "helpformat") == 0)
        i->help_format = true;
    else if (strcmp(opt->name, "node") == 0)
        return cw_hostlist_parse(value, &i->nodes, err);
    else if (strcmp(opt->name, "partition") == 0)
        split(value, &i->partitions);
    else if (strcmp(opt->name, "states") == 0)
        split(value, &i->states);
    else if (strcmp(opt->name, "format") == 0) {
        cw_infoformat_destroy(i->format);
        i->format = NULL;
        return cw_infoformat_parse(value, &i->format, err);
    }
    for (size_t k = 0; k < i->states.n; k++)
        for (char *p = i->states.v[k]; *p != '\0'; p++)
            *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    return 0;
}

static bool in_list(const struct cw_strv *v, const char *s)
{
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->v[i], s) == 0)
            return true;
    return v->n == 0;
}

static bool in_partition(const Cw__NodeInfo *n, const char *partition)
{
    for (size_t i = 0; i < n->n_partitions; i++)
        if (strcmp(n->partitions[i], partition) == 0)
            return true;
    return false;
}

/* One line per state that some node of the partition is in. */
static void partition_rows(struct cw_listing *l, const Cw__NodesReply *r,
                           const Cw__PartitionInfo *p, const struct info *o)
{
    static const char *const states[] = {"idle",    "mixed", "allocated", "draining",
                                         "drained", "down",  "unknown"};
    char limit[32], count[16];
    bool any = false;
    cw_autofree char *name = cw_xasprintf("%s%s", p->name, p->is_default ? "*" : "");
    if (p->has_max_time_s)
        cw_duration_format(p->max_time_s, limit, sizeof(limit));
    else
        snprintf(limit, sizeof(limit), "unlimited");
    for (size_t s = 0; s < CW_ARRAY_LEN(states); s++) {
        cw_autostrv struct cw_strv nodes = {0};
        for (size_t i = 0; i < r->n_nodes; i++)
            if (in_partition(r->nodes[i], p->name) &&
                strcmp(cw_nodetext_state(r->nodes[i]), states[s]) == 0)
                cw_strv_add(&nodes, r->nodes[i]->node->name);
        if (nodes.n == 0 || !in_list(&o->states, states[s]))
            continue;
        cw_autobuf struct cw_buf list = {0};
        cw_hostlist_format(nodes.v, nodes.n, &list);
        snprintf(count, sizeof(count), "%zu", nodes.n);
        cw_listing_row(l, name, p->up ? "up" : "down", limit, count, states[s], cw_buf_str(&list),
                       NULL);
        any = true;
    }
    if (!any && o->states.n == 0)
        cw_listing_row(l, name, p->up ? "up" : "down", limit, "0", "n/a", "", NULL);
}

static void node_rows(struct cw_listing *l, const Cw__NodesReply *r, const struct info *o)
{
    for (size_t i = 0; i < r->n_nodes; i++) {
        const Cw__NodeInfo *n = r->nodes[i];
        bool in = o->partitions.n == 0;
        for (size_t k = 0; k < n->n_partitions && !in; k++)
            in = in_list(&o->partitions, n->partitions[k]);
        if (!in || !in_list(&o->states, cw_nodetext_state(n)))
            continue;
        char cores[40], mem[32], gpus[40], jobs[16];
        const Cw__Inventory *inv = n->node->inventory;
        cw_autobuf struct cw_buf parts = {0};
        for (size_t k = 0; k < n->n_partitions; k++)
            cw_buf_addf(&parts, "%s%s", k == 0 ? "" : ",", n->partitions[k]);
        snprintf(cores, sizeof(cores), "%u/%u", n->cores_used, cw_nodetext_cores(n));
        snprintf(gpus, sizeof(gpus), "%u/%zu", n->gpus_used, inv != NULL ? inv->n_gpus : 0);
        snprintf(jobs, sizeof(jobs), "%u", n->jobs);
        cw_listing_row(
            l, n->node->name, cw_buf_str(&parts), cw_nodetext_state(n), cores,
            cw_size_format(inv != NULL ? inv->mem_bytes : 0, mem, sizeof(mem)), gpus, jobs,
            n->node->drained && n->node->drain_reason != NULL ? n->node->drain_reason : "", NULL);
    }
}

static void print_json(const Cw__NodesReply *r)
{
    json_t *nodes = json_array(), *parts = json_array();
    for (size_t i = 0; i < r->n_nodes; i++)
        json_array_append_new(nodes, cw_nodetext_json(r->nodes[i]));
    for (size_t i = 0; i < r->n_partitions; i++) {
        const Cw__PartitionInfo *p = r->partitions[i];
        json_t *o = json_pack("{s:s, s:b, s:b}", "name", p->name, "default", (int)p->is_default,
                              "up", (int)p->up);
        if (p->has_max_time_s && p->max_time_s != CW_DURATION_UNLIMITED)
            json_object_set_new(o, "max_time_s", json_integer((json_int_t)p->max_time_s));
        json_array_append_new(parts, o);
    }
    cw_cli_print_json("info",
                      json_pack("{s:s, s:o, s:o}", "cluster", r->cluster != NULL ? r->cluster : "",
                                "partitions", parts, "nodes", nodes));
}

static void print_formatted(const struct info *o, const Cw__NodesReply *r)
{
    struct cw_inforows rows = {.reply = r,
                               .by_node = o->by_node,
                               .no_header = o->no_header,
                               .reasons = o->reasons,
                               .partitions = o->partitions.v,
                               .n_partitions = o->partitions.n,
                               .states = o->states.v,
                               .n_states = o->states.n};
    cw_inforows_print(o->format, &rows);
}

static void print_tables(const struct info *o, const Cw__NodesReply *r)
{
    static const char *const by_partition[] = {"PARTITION", "AVAIL",    ">TIMELIMIT", ">NODES",
                                               "STATE",     "NODELIST", NULL};
    static const char *const by_node[] = {"NODE",  "PARTITIONS", "STATE",  ">CORES", ">MEMORY",
                                          ">GPUS", ">JOBS",      "REASON", NULL};
    struct cw_listing *l =
        cw_listing_create(o->by_node ? by_node : by_partition, o->no_header, false);
    if (o->by_node)
        node_rows(l, r, o);
    for (size_t i = 0; i < r->n_partitions && !o->by_node; i++)
        if (in_list(&o->partitions, r->partitions[i]->name))
            partition_rows(l, r, r->partitions[i], o);
    cw_listing_print(l);
}

static int run(struct cw_cli *c, struct info *o)
{
    ProtobufCMessage *m;
    struct cw_error err;
    int rc;
    for (size_t i = 0; i < c->operand.n; i++)
        if (cw_hostlist_parse(c->operand.v[i], &o->nodes, &err) != 0)
            return cw_cli_usage(c, "%s", err.text);
    if (o->reasons && o->format == NULL && cw_infoformat_parse(REASON_FORMAT, &o->format, &err) != 0)
        return cw_cli_usage(c, "%s", err.text);
    if ((rc = cw_cli_connect(c)) >= 0)
        return rc;
    Cw__NodesRequest req = CW__NODES_REQUEST__INIT;
    req.n_names = o->nodes.n;
    req.names = o->nodes.v;
    if ((rc = cw_cli_call(c, CW_KIND_NODES, &req.base, 0, &m)) >= 0)
        return rc;
    const Cw__NodesReply *r = (const Cw__NodesReply *)m;
    if (c->common.json)
        print_json(r);
    else if (o->format != NULL)
        print_formatted(o, r);
    else
        print_tables(o, r);
    return CW_EXIT_OK;
}

int cw_cmd_info(struct cw_cli *c, int argc, char *const *argv)
{
    struct info o = {0};
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, on_option, &o);
    if (rc < 0 && o.help_format) {
        cw_infoformat_letters();
        rc = CW_EXIT_OK;
    }
    if (rc < 0)
        rc = run(c, &o);
    cw_strv_fini(&o.nodes);
    cw_strv_fini(&o.partitions);
    cw_strv_fini(&o.states);
    cw_infoformat_destroy(o.format);
    return rc;
}
