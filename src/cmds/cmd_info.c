/* crun-info: partitions (a line per partition and node state) or nodes. Test:
 * testsuite/t1070-info.t. */
#include <stdio.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/quantity.h"
#include "cmds/cli.h"
#include "cmds/listing.h"
#include "cmds/nodetext.h"

static const struct cw_arg args[] = {
    {"nodes", 'N', NULL, "one line per node"},
    {"noheader", 'h', NULL, "no header line"},
    {NULL, 0, NULL, NULL},
};

struct info {
    bool by_node, no_header;
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct info *i = arg;
    (void)value, (void)err;
    if (strcmp(opt->name, "nodes") == 0)
        i->by_node = true;
    else
        i->no_header = true;
    return 0;
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
                           const Cw__PartitionInfo *p)
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
        if (nodes.n == 0)
            continue;
        cw_autobuf struct cw_buf list = {0};
        cw_hostlist_format(nodes.v, nodes.n, &list);
        snprintf(count, sizeof(count), "%zu", nodes.n);
        cw_listing_row(l, name, p->up ? "up" : "down", limit, count, states[s], cw_buf_str(&list),
                       NULL);
        any = true;
    }
    if (!any)
        cw_listing_row(l, name, p->up ? "up" : "down", limit, "0", "n/a", "", NULL);
}

static void node_rows(struct cw_listing *l, const Cw__NodesReply *r)
{
    for (size_t i = 0; i < r->n_nodes; i++) {
        const Cw__NodeInfo *n = r->nodes[i];
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

int cw_cmd_info(struct cw_cli *c, int argc, char *const *argv)
{
    static const char *const by_partition[] = {"PARTITION", "AVAIL",    ">TIMELIMIT", ">NODES",
                                               "STATE",     "NODELIST", NULL};
    static const char *const by_node[] = {"NODE",  "PARTITIONS", "STATE",  ">CORES", ">MEMORY",
                                          ">GPUS", ">JOBS",      "REASON", NULL};
    struct info o = {0};
    ProtobufCMessage *m;
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, on_option, &o);
    if (rc >= 0 || (rc = cw_cli_connect(c)) >= 0)
        return rc;
    Cw__NodesRequest req = CW__NODES_REQUEST__INIT;
    req.n_names = c->operand.n;
    req.names = c->operand.v;
    if ((rc = cw_cli_call(c, CW_KIND_NODES, &req.base, 0, &m)) >= 0)
        return rc;
    const Cw__NodesReply *r = (const Cw__NodesReply *)m;
    if (c->common.json) {
        print_json(r);
        return CW_EXIT_OK;
    }
    struct cw_listing *l =
        cw_listing_create(o.by_node ? by_node : by_partition, o.no_header, false);
    if (o.by_node)
        node_rows(l, r);
    for (size_t i = 0; i < r->n_partitions && !o.by_node; i++)
        partition_rows(l, r, r->partitions[i]);
    cw_listing_print(l);
    return CW_EXIT_OK;
}
