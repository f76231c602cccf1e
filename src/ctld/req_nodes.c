/* req_nodes.c: nodes and partitions shown, nodes drained and resumed. */
#include "ctld/requests.h"

#include <string.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/log.h"
#include "ctld/answer.h"
#include "ctld/deadline.h"
#include "ctld/row.h"
#include "ctld/turn.h"
#include "model/node.h"
#include "proto/walk.h"
#include "spec/outcome.h"

/* While commits fail: as it is on disk. */
static Cw__NodeRecord *node_record(struct cw_ctld *c, const struct cw_node *n, struct cw_arena *a)
{
    ProtobufCMessage *m;
    if (cw_turn_failing(c->turn, NULL) &&
        cw_row_get(c->store, CW_TABLE_NODE, n->name, strlen(n->name), &cw__node_record__descriptor,
                   a, &m, NULL) == 0)
        return (Cw__NodeRecord *)m;
    return (Cw__NodeRecord *)cw_walk_copy(&n->rec->base, a);
}

static Cw__NodeInfo *node_info(struct cw_ctld *c, const struct cw_node *n, struct cw_arena *a)
{
    Cw__NodeInfo *i = cw_arena_alloc(a, sizeof *i);
    cw__node_info__init(i);
    i->node = node_record(c, n, a);
    i->up = n->up;
    i->has_last_seen_ns = n->last_seen_ns != 0;
    i->last_seen_ns = n->last_seen_ns;
    i->has_cores_used = i->has_mem_used = i->has_gpus_used = i->has_jobs = true;
    i->cores_used = n->n_cores - n->n_free;
    i->mem_used = n->mem_used;
    i->gpus_used = n->gpus_total - (uint32_t)__builtin_popcountll(n->gpu_free);
    size_t attempts = 0, q = 0;
    cw_list_each (p, &n->parts)
        attempts++;
    i->quarantined = cw_arena_alloc(a, (attempts + 1) * sizeof *i->quarantined);
    cw_list_each (p, &n->parts) {
        const struct cw_part *part = cw_list_entry(p, struct cw_part, on_node);
        const struct cw_attempt *at = part->attempt;
        if (part->phase >= CW_PART_ENDED)
            i->quarantined[q++] = cw_arena_printf(
                a, "job %llu attempt %u: %s", (unsigned long long)at->id, at->attempt,
                at->rec->message != NULL ? at->rec->message : "not proven empty");
        else
            i->jobs++;
    }
    i->n_quarantined = q;
    uint16_t k = 0;
    const struct cw_partition *p;
    i->partitions = cw_arena_alloc(a, (c->conf->n_partitions + 1) * sizeof *i->partitions);
    for (; (p = cw_model_partition(c->model, k)) != NULL; k++)
        if (cw_partition_has(p, n))
            i->partitions[i->n_partitions++] = cw_arena_strdup(a, p->name);
    return i;
}

static Cw__PartitionInfo *partition_info(struct cw_ctld *c, const struct cw_partition *p,
                                         struct cw_arena *a)
{
    Cw__PartitionInfo *i = cw_arena_alloc(a, sizeof *i);
    uint32_t n = cw_model_n_nodes(c->model);
    cw__partition_info__init(i);
    i->name = cw_arena_strdup(a, p->name); /* a reload may come before the answer */
    i->has_is_default = i->has_max_time_s = i->has_default_time_s = i->has_up = true;
    i->is_default = p->is_default;
    i->max_time_s = p->max_time_s;
    i->default_time_s = p->default_time_s;
    i->nodes = cw_arena_alloc(a, (n + 1) * sizeof *i->nodes);
    for (uint32_t k = 0; k < n; k++) {
        const struct cw_node *node = cw_model_node_at(c->model, k);
        if (!cw_partition_has(p, node))
            continue;
        i->nodes[i->n_nodes++] = cw_arena_strdup(a, node->name);
        i->up = i->up || node->up;
    }
    return i;
}

/* Names of the request as a list; each may be a host list. Unknown names are an error. */
static int wanted(struct cw_ctld *c, char *const *names, size_t n, struct cw_strv *ret,
                  struct cw_error *err)
{
    for (size_t i = 0; i < n; i++) {
        cw_autostrv struct cw_strv some = {0};
        int rc = cw_hostlist_parse(names[i], &some, err);
        if (rc < 0)
            return rc;
        for (size_t k = 0; k < some.n; k++)
            cw_strv_add(ret, some.v[k]);
    }
    for (size_t i = 0; i < ret->n; i++)
        if (cw_model_node(c->model, ret->v[i]) == NULL)
            return cw_fail(err, -ENOENT, "node %s does not exist", ret->v[i]);
    return 0;
}

void cw_req_nodes(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    const Cw__NodesRequest *m = (const Cw__NodesRequest *)msg;
    struct cw_arena *a = cw_rpc_call_arena(call);
    struct cw_error err = {0};
    cw_autostrv struct cw_strv names = {0};
    if (wanted(c, m->names, m->n_names, &names, &err) < 0) {
        cw_answer_failure(c, call, &err);
        return;
    }
    Cw__NodesReply *r = cw_arena_alloc(a, sizeof *r);
    cw__nodes_reply__init(r);
    r->cluster = cw_arena_strdup(a, c->conf->cluster);
    uint32_t total = cw_model_n_nodes(c->model);
    size_t n = m->n_names > 0 ? names.n : total;
    r->nodes = cw_arena_alloc(a, (n + 1) * sizeof *r->nodes);
    for (size_t k = 0; k < n; k++) {
        struct cw_node *node = m->n_names > 0 ? cw_model_node(c->model, names.v[k])
                                              : cw_model_node_at(c->model, (uint32_t)k);
        r->nodes[r->n_nodes++] = node_info(c, node, a);
    }
    r->partitions = cw_arena_alloc(a, (c->conf->n_partitions + 1) * sizeof *r->partitions);
    const struct cw_partition *p;
    for (uint16_t k = 0; (p = cw_model_partition(c->model, k)) != NULL; k++)
        r->partitions[r->n_partitions++] = partition_info(c, p, a);
    cw_answer(c, call, &r->base);
}

static int check_set(const Cw__NodeSetRequest *m, struct cw_error *err)
{
    if (m->verb != CW__NODE_VERB__NODE_DRAIN && m->verb != CW__NODE_VERB__NODE_RESUME)
        return cw_fail(err, -EINVAL, "this change of a node is unknown");
    if (m->n_names == 0)
        return cw_fail(err, -EINVAL, "no node was named");
    if (m->verb == CW__NODE_VERB__NODE_RESUME)
        return 0;
    if (m->reason == NULL || m->reason[0] == '\0')
        return cw_fail(err, -EINVAL, "drain needs a reason");
    if (!m->has_deadline_ns)
        return m->then == NULL ? 0 : cw_fail(err, -EINVAL, "what happens then needs a deadline");
    if (m->then == NULL || (strcmp(m->then, "cancel") != 0 && strcmp(m->then, "requeue") != 0))
        return cw_fail(err, -EINVAL, "at the deadline: cancel or requeue");
    if (m->deadline_ns <= cw_clock_real_ns())
        return cw_fail(err, -EINVAL, "the deadline is in the past");
    return 0;
}

void cw_req_node_set(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    const Cw__NodeSetRequest *m = (const Cw__NodeSetRequest *)msg;
    if (cw_answer_if_failing(c, call))
        return;
    struct cw_arena *a = cw_rpc_call_arena(call);
    struct cw_error err = {0};
    bool drain = m->verb == CW__NODE_VERB__NODE_DRAIN;
    cw_autostrv struct cw_strv names = {0};
    int rc = check_set(m, &err);
    if (rc == 0)
        rc = wanted(c, m->names, m->n_names, &names, &err);
    if (rc < 0) {
        cw_answer_failure(c, call, &err);
        return;
    }
    uint32_t uid = cw_rpc_call_identity(call)->uid;
    Cw__NodeSetReply *r = cw_arena_alloc(a, sizeof *r);
    cw__node_set_reply__init(r);
    r->names = cw_arena_alloc(a, (names.n + 1) * sizeof *r->names);
    for (size_t i = 0; i < names.n; i++) {
        struct cw_node *n = cw_model_node(c->model, names.v[i]);
        cw_model_node_drain(c->model, n, drain, m->reason, uid, cw_clock_real_ns());
        if (drain && m->has_deadline_ns) {
            cw_model_node_drain_until(c->model, n, m->deadline_ns,
                                      strcmp(m->then, "requeue") == 0);
            cw_deadline_touch(c->deadline, m->deadline_ns);
        }
        cw_log_info("node %s: %s by uid %u%s%s", names.v[i], drain ? "drained" : "resumed", uid,
                    drain ? ": " : "", drain ? m->reason : "");
        r->names[r->n_names++] = cw_arena_strdup(a, names.v[i]);
    }
    cw_answer(c, call, &r->base);
}
