/* See nodetext.h. */
#include "cmds/nodetext.h"

#include "base/clock.h"
#include "base/quantity.h"

uint32_t cw_nodetext_cores(const Cw__NodeInfo *n)
{
    return n->node->inventory != NULL ? (uint32_t)n->node->inventory->n_cores : 0;
}

const char *cw_nodetext_state(const Cw__NodeInfo *n)
{
    if (!n->up)
        return n->node->inventory == NULL ? "unknown" : "down";
    if (n->node->drained)
        return n->jobs > 0 ? "draining" : "drained";
    if (n->cores_used == 0)
        return "idle";
    return n->cores_used < cw_nodetext_cores(n) ? "mixed" : "allocated";
}

static void add_list(struct cw_buf *out, const char *what, char *const *v, size_t n)
{
    if (n == 0)
        return;
    cw_buf_addf(out, "  %-11s", what);
    for (size_t k = 0; k < n; k++)
        cw_buf_addf(out, " %s", v[k]);
    cw_buf_add_str(out, "\n");
}

void cw_nodetext_show(const Cw__NodeInfo *n, struct cw_buf *out)
{
    char used[32], total[32], when[40];
    const Cw__Inventory *i = n->node->inventory;
    cw_buf_addf(out, "Node %s: %s\n", n->node->name, cw_nodetext_state(n));
    cw_buf_addf(out, "  cores:      %u of %u in use\n", n->cores_used, cw_nodetext_cores(n));
    cw_buf_addf(out, "  memory:     %s of %s in use\n",
                cw_size_format(n->mem_used, used, sizeof(used)),
                cw_size_format(i != NULL ? i->mem_bytes : 0, total, sizeof(total)));
    if (i != NULL && i->n_gpus > 0)
        cw_buf_addf(out, "  gpus:       %u of %zu in use (%s)\n", n->gpus_used, i->n_gpus,
                    i->gpus[0]->model != NULL ? i->gpus[0]->model : "unknown model");
    cw_buf_addf(out, "  jobs:       %u\n", n->jobs);
    if (i != NULL && i->synthetic)
        cw_buf_add_str(out, "  topology:   synthetic (processes are not bound)\n");
    if (i != NULL && i->n_features > 0) {
        cw_buf_add_str(out, "  features:  ");
        for (size_t k = 0; k < i->n_features; k++)
            cw_buf_addf(out, " %s", i->features[k]);
        cw_buf_add_str(out, "\n");
    }
    add_list(out, "labels:", i != NULL ? i->labels : NULL, i != NULL ? i->n_labels : 0);
    add_list(out, "isolations:", i != NULL ? i->isolations : NULL, i != NULL ? i->n_isolations : 0);
    add_list(out, "partitions:", n->partitions, n->n_partitions);
    if (i != NULL && i->hostname != NULL)
        cw_buf_addf(out, "  host:       %s\n", i->hostname);
    if (i != NULL && i->version != NULL)
        cw_buf_addf(out, "  version:    %s\n", i->version);
    if (n->node->address != NULL)
        cw_buf_addf(out, "  address:    %s\n", n->node->address);
    if (n->node->config_hash != NULL)
        cw_buf_addf(out, "  config:     %s\n", n->node->config_hash);
    if (n->has_last_seen_ns)
        cw_buf_addf(out, "  last seen:  %s\n",
                    cw_clock_format(n->last_seen_ns, when, sizeof(when)));
    if (n->node->drained)
        cw_buf_addf(out, "  drained:    %s by uid %u: %s\n",
                    cw_clock_format(n->node->drain_ns, when, sizeof(when)), n->node->drain_uid,
                    n->node->drain_reason != NULL ? n->node->drain_reason : "");
    if (n->node->drained && n->node->has_drain_deadline_ns)
        cw_buf_addf(out, "  deadline:   %s, then %s\n",
                    cw_clock_format(n->node->drain_deadline_ns, when, sizeof(when)),
                    n->node->drain_then != NULL ? n->node->drain_then : "cancel");
    for (size_t k = 0; k < n->n_quarantined; k++)
        cw_buf_addf(out, "  quarantine: %s\n", n->quarantined[k]);
}

json_t *cw_nodetext_json(const Cw__NodeInfo *n)
{
    char when[40];
    const Cw__Inventory *i = n->node->inventory;
    json_t *o = json_pack("{s:s, s:s, s:i, s:i, s:I, s:i, s:i}", "name", n->node->name, "state",
                          cw_nodetext_state(n), "cores", (int)cw_nodetext_cores(n), "cores_used",
                          (int)n->cores_used, "mem_used_bytes", (json_int_t)n->mem_used,
                          "gpus_used", (int)n->gpus_used, "jobs", (int)n->jobs);
    json_t *list = json_array();
    if (i != NULL) {
        json_object_set_new(o, "mem_bytes", json_integer((json_int_t)i->mem_bytes));
        json_object_set_new(o, "gpus", json_integer((json_int_t)i->n_gpus));
        json_object_set_new(o, "synthetic", json_boolean(i->synthetic));
        for (size_t k = 0; k < i->n_features; k++)
            json_array_append_new(list, json_string(i->features[k]));
    }
    json_object_set_new(o, "features", list);
    list = json_array();
    for (size_t k = 0; k < n->n_partitions; k++)
        json_array_append_new(list, json_string(n->partitions[k]));
    json_object_set_new(o, "partitions", list);
    if (n->node->drain_reason != NULL && n->node->drained)
        json_object_set_new(o, "drain_reason", json_string(n->node->drain_reason));
    if (n->node->drained && n->node->has_drain_deadline_ns) {
        cw_clock_format(n->node->drain_deadline_ns, when, sizeof(when));
        json_object_set_new(o, "drain_deadline", json_string(when));
        json_object_set_new(
            o, "drain_then",
            json_string(n->node->drain_then != NULL ? n->node->drain_then : "cancel"));
    }
    if (n->has_last_seen_ns)
        json_object_set_new(o, "last_seen",
                            json_string(cw_clock_format(n->last_seen_ns, when, sizeof(when))));
    list = json_array();
    for (size_t k = 0; k < n->n_quarantined; k++)
        json_array_append_new(list, json_string(n->quarantined[k]));
    json_object_set_new(o, "quarantined", list);
    return o;
}
