/* taskstart.c: what a node is told. Sent again after a lost link, so it is always built anew from
 * memory and store and never kept. Tested by the component test. */
#include "ctld/taskstart.h"

#include <string.h>

#include "ctld/payload.h"
#include "model/node.h"
#include "proto/walk.h"

static void start_array(Cw__TaskStart *t, const struct cw_job *j, uint64_t ordinal)
{
    const struct cw_idset *all = &j->array->indices;
    uint64_t second = 0;
    t->has_index = t->has_array_count = t->has_array_min = t->has_array_max = t->has_array_step =
        true;
    t->index = cw_job_index(j, ordinal);
    t->array_count = j->count;
    t->array_min = cw_idset_first(all);
    t->array_max = all->r[all->n - 1].last;
    t->array_step = j->count > 1 && cw_idset_nth(all, 1, &second) ? second - t->array_min : 1;
}

static const char *resolve_isolation(const struct cw_ctld *c, const struct cw_job *j,
                                     const struct cw_partition *p)
{
    if (j->want->isolation != NULL)
        return j->want->isolation;
    if (p != NULL && p->isolation != NULL && p->isolation[0] != '\0')
        return p->isolation;
    return c->conf->default_isolation;
}

/* What a node has to know of all nodes of its attempt: names, tasks, CPUs. */
static void start_nodes(Cw__TaskStart *t, const struct cw_part *p, struct cw_arena *a)
{
    const struct cw_attempt *at = p->attempt;
    t->grant = (Cw__Grant *)cw_part_grant(p);
    if (at->n_parts == 1)
        return;
    t->has_node = true;
    t->node = cw_part_number(p);
    t->n_grants = at->n_parts;
    t->grants = cw_arena_alloc(a, at->n_parts * sizeof *t->grants);
    for (uint32_t k = 0; k < at->n_parts; k++) {
        const Cw__Grant *from = cw_part_grant(&at->parts[k]);
        Cw__Grant *g = cw_arena_alloc(a, sizeof *g);
        cw__grant__init(g);
        g->node = from->node;
        g->cores = from->cores;
        g->cpus = from->cpus;
        g->has_ntasks = from->has_ntasks;
        g->ntasks = from->ntasks;
        t->grants[k] = g;
    }
}

/* Only the head runs what the payload holds. */
static int find_payload(struct cw_ctld *c, const Cw__JobRecord *rec, const struct cw_part *p,
                        const Cw__Payload **ret, struct cw_error *err)
{
    static const Cw__Payload none = CW__PAYLOAD__INIT;
    *ret = &none;
    if (cw_part_number(p) > 0)
        return 0;
    if (rec->payload_hash.len != 32)
        return cw_fail(err, -EBADMSG, "payload hash has %zu bytes", rec->payload_hash.len);
    int rc = cw_payloads_get(c->payloads, rec->payload_hash.data, ret, err);
    return rc == -ENOENT ? cw_fail(err, -EBADMSG, "its payload is not in the store") : rc;
}

/* An element gets its own entry and not those of all others. */
static Cw__Payload *own_entry(const Cw__Payload *p, const struct cw_job *j, uint64_t ordinal,
                              struct cw_arena *a, char **ret_entry)
{
    if (p->n_entries == 0 || !j->is_array || ordinal >= p->n_entries)
        return (Cw__Payload *)p;
    Cw__Payload *own = cw_arena_alloc(a, sizeof *own);
    *own = *p;
    own->n_entries = 0;
    own->entries = NULL;
    *ret_entry = p->entries[ordinal];
    return own;
}

int cw_taskstart_build(struct cw_ctld *c, const struct cw_node *n, uint64_t id, uint32_t attempt,
                       struct cw_arena *a, Cw__TaskStart **ret, struct cw_error *err)
{
    struct cw_attempt *at = cw_model_attempt(c->model, id);
    const struct cw_part *part = at != NULL ? cw_attempt_part(at, n) : NULL;
    if (part == NULL || at->attempt != attempt || at->job == NULL || !cw_part_startable(part))
        return cw_fail(err, -ENOENT, "attempt %u is not about to start", attempt);
    const struct cw_job *j = at->job;
    ProtobufCMessage *m;
    int rc = cw_walk_unpack(&cw__job_record__descriptor, j->spec_packed, j->spec_len, a, &m, err);
    if (rc < 0)
        return rc;
    const Cw__JobRecord *rec = (const Cw__JobRecord *)m;
    const Cw__Payload *payload;
    rc = find_payload(c, rec, part, &payload, err);
    if (rc < 0)
        return rc;

    Cw__TaskStart *t = cw_arena_alloc(a, sizeof *t);
    cw__task_start__init(t);
    t->key = cw_arena_alloc(a, sizeof *t->key);
    cw__task_key__init(t->key);
    t->key->id = id;
    t->key->attempt = attempt;
    t->spec = rec->spec;
    if (strcmp(c->conf->slurm_env, "auto") != 0) {
        t->spec->has_slurm_env = true;
        t->spec->slurm_env = strcmp(c->conf->slurm_env, "yes") == 0;
    }
    t->owner = rec->owner;
    t->payload = own_entry(payload, j, at->ordinal, a, &t->entry);
    start_nodes(t, part, a);
    t->job_id = j->id;
    if (j->is_array)
        start_array(t, j, at->ordinal);
    /* Time counts from the start of the leader, which comes later than the other boxes. */
    if (t->node == 0 && j->time_limit_s != UINT64_MAX && j->time_limit_s > 0) {
        t->has_time_left_ms = true;
        t->time_left_ms = j->time_limit_s > UINT64_MAX / 1000 ? UINT64_MAX : j->time_limit_s * 1000;
    }
    t->kill_grace_ms = j->kill_grace_s > UINT32_MAX / 1000 ? UINT32_MAX : j->kill_grace_s * 1000;
    const struct cw_partition *p = cw_model_partition(c->model, j->partition);
    t->partition = p != NULL ? (char *)p->name : NULL;
    t->cluster = (char *)c->conf->cluster;
    t->has_submit_ns = true;
    t->submit_ns = j->submit_ns;
    t->has_allow_root = true;
    t->allow_root = c->conf->allow_root_jobs;
    t->isolation = (char *)resolve_isolation(c, j, p);
    *ret = t;
    return 0;
}
