/* recover.c: the start of a controller. Finished rows are skipped by their flag without decoding,
 * so that history costs little. Nothing here refers to the configuration by pointer: a job whose
 * partition is gone loads and waits (FEATURES-BATCH C20). Test: recover_test.c. */
#include "ctld/recover.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/crashpoint.h"
#include "base/hostlist.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "ctld/effect.h"
#include "ctld/eventlog.h"
#include "ctld/jobview.h"
#include "ctld/lease.h"
#include "ctld/reload.h"
#include "ctld/row.h"
#include "ctld/stepbook.h"
#include "ctld/stepmerge.h"
#include "model/node.h"
#include "spec/outcome.h"

struct pred {
    uint64_t id;
};
struct loading {
    struct cw_ctld *c;
    enum cw_table table;
    int (*take)(struct loading *l, const void *key, size_t klen, const void *val, size_t vlen,
                struct cw_error *err);
    struct cw_arena *arena;
    struct cw_batch *repair;
    uint64_t n;
    struct pred *preds; /* dependencies not met by what was loaded */
    size_t n_preds, cap_preds;
    uint64_t top_id; /* highest job id seen, finished ones too */
};

/* ---- quarantine ----------------------------------------------------------------------------- */

static void quarantine(struct loading *l, const void *key, size_t klen, const void *val,
                       size_t vlen, const char *why)
{
    uint8_t k[511]; /* the longest key of the store; a longer one is cut */
    char name[64] = "";
    size_t n = klen < sizeof k - 1 ? klen : sizeof k - 1;
    k[0] = (uint8_t)l->table;
    memcpy(k + 1, key, n);
    if (l->table == CW_TABLE_NODE)
        snprintf(name, sizeof name, "%.*s", (int)klen, (const char *)key);
    else if (klen >= 8)
        snprintf(name, sizeof name, "%llu", (unsigned long long)cw_store_u64_key(key));
    cw_log_error("state: row %s of table %s cannot be read and is put aside (table quarantine): %s",
                 name, cw_store_table_name(l->table), why);
    cw_batch_put(l->repair, CW_TABLE_QUARANTINE, k, n + 1, val, vlen);
    cw_batch_del(l->repair, l->table, key, klen);
    l->c->n_quarantined++;
}

static bool on_row(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct loading *l = arg;
    struct cw_error err = {0};
    if (l->take(l, key, klen, val, vlen, &err) < 0)
        quarantine(l, key, klen, val, vlen, err.text);
    cw_arena_reset(l->arena);
    return true;
}

static bool on_bad(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    quarantine(arg, key, klen, val, vlen, "its checksum is wrong");
    return true;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int take_node(struct loading *l, const void *key, size_t klen, const void *val, size_t vlen,
                     struct cw_error *err)
{
    ProtobufCMessage *m;
    int rc = cw_row_unpack(&cw__node_record__descriptor, val, vlen, l->arena, &m, err);
    if (rc < 0)
        return rc;
    const Cw__NodeRecord *rec = (const Cw__NodeRecord *)m;
    if (strlen(rec->name) != klen || memcmp(rec->name, key, klen) != 0)
        return cw_fail(err, -EBADMSG, "it names node %s", rec->name);
    cw_model_node_set(l->c->model, rec, false, 0);
    l->n++;
    return 0;
}

static void note_preds(struct loading *l, const Cw__JobSpec *s)
{
    for (size_t i = 0; i < s->n_dependencies; i++) {
        const Cw__Dependency *d = s->dependencies[i];
        if (d->satisfied || !d->has_job_id)
            continue;
        if (l->n_preds == l->cap_preds) {
            l->cap_preds = l->cap_preds ? l->cap_preds * 2 : 64;
            l->preds = cw_xrealloc(l->preds, l->cap_preds, sizeof *l->preds);
        }
        l->preds[l->n_preds++].id = d->job_id;
    }
}

static int take_job(struct loading *l, const void *key, size_t klen, const void *val, size_t vlen,
                    struct cw_error *err)
{
    if (klen != 8)
        return cw_fail(err, -EBADMSG, "its key has %zu bytes", klen);
    uint64_t id = cw_store_u64_key(key);
    if (id > l->top_id)
        l->top_id = id;
    if (cw_row_flags(val, vlen) & CW_ROW_FINAL)
        return 0;
    ProtobufCMessage *m;
    int rc = cw_row_unpack(&cw__job_record__descriptor, val, vlen, l->arena, &m, err);
    if (rc < 0)
        return rc;
    const Cw__JobRecord *rec = (const Cw__JobRecord *)m;
    if (rec->id != id || rec->spec == NULL || rec->owner == NULL)
        return cw_fail(err, -EBADMSG, "it is the row of job %llu", (unsigned long long)rec->id);
    struct cw_job *j;
    rc = cw_model_restore_job(l->c->model, rec, &j, err);
    if (rc < 0)
        return rc;
    if (j != NULL) {
        l->n++;
        note_preds(l, rec->spec);
        cw_leases_renew(l->c->leases, rec->id, rec->spec);
    }
    return 0;
}

static int take_attempt(struct loading *l, const void *key, size_t klen, const void *val,
                        size_t vlen, struct cw_error *err)
{
    (void)key;
    if (klen != CW_ROW_ATTEMPT_KEY)
        return cw_fail(err, -EBADMSG, "its key has %zu bytes", klen);
    if (cw_row_flags(val, vlen) & CW_ROW_FINAL)
        return 0;
    ProtobufCMessage *m;
    int rc = cw_row_unpack(&cw__attempt_record__descriptor, val, vlen, l->arena, &m, err);
    if (rc < 0)
        return rc;
    const Cw__AttemptRecord *rec = (const Cw__AttemptRecord *)m;
    if (rec->grant == NULL)
        return cw_fail(err, -EBADMSG, "it has no grant");
    struct cw_attempt *a;
    rc = cw_model_restore_attempt(l->c->model, rec, &a, err);
    if (rc == 0 && a != NULL)
        l->n++;
    return rc;
}

static int take_step(struct loading *l, const void *key, size_t klen, const void *val, size_t vlen,
                     struct cw_error *err)
{
    uint64_t id;
    uint32_t attempt;
    ProtobufCMessage *m;
    if (klen != CW_ROW_STEP_KEY)
        return cw_fail(err, -EBADMSG, "its key has %zu bytes", klen);
    cw_row_attempt_parse(key, &id, &attempt);
    uint32_t step = cw_store_u32_key((const uint8_t *)key + CW_ROW_ATTEMPT_KEY);
    if (cw_row_flags(val, vlen) & CW_ROW_FINAL)
        return cw_stepbook_restore(l->c->stepbook, id, attempt, step, NULL);
    int rc = cw_row_unpack(&cw__step_record__descriptor, val, vlen, l->arena, &m, err);
    if (rc < 0)
        return rc;
    Cw__StepRecord *rec = (Cw__StepRecord *)m;
    if (rec->id != id || rec->attempt != attempt || rec->step != step)
        return cw_fail(err, -EBADMSG, "it is the row of step %llu.%u", (unsigned long long)rec->id,
                       rec->step);
    if (cw_stepbook_restore(l->c->stepbook, id, attempt, step, rec) == -ESTALE) {
        cw_stepmerge_close(rec, CW__CAUSE__CAUSE_NODE_LOST, CW__STATE__NODE_FAIL, NULL,
                           cw_clock_real_ns());
        cw_row_put(l->repair, CW_TABLE_STEP, key, klen, CW_ROW_FINAL, &rec->base);
    }
    return 0;
}

static int load_table(struct loading *l, enum cw_table t,
                      int (*take)(struct loading *, const void *, size_t, const void *, size_t,
                                  struct cw_error *),
                      struct cw_error *err)
{
    l->table = t;
    l->take = take;
    l->n = 0;
    int rc = cw_store_scan(l->c->store, t, NULL, 0, false, 0, on_row, on_bad, l, err);
    return rc < 0 ? cw_wrap(err, rc, "state: table %s", cw_store_table_name(t)) : 0;
}

/* ---- around the tables ---------------------------------------------------------------------- */

static int add_partition(struct cw_ctld *c, const struct cw_conf_partition *p, struct cw_error *err)
{
    cw_autostrv struct cw_strv names = {0};
    struct cw_partition part;
    int rc = cw_partition_of_conf(c->conf, p, &part, &names, err);
    if (rc < 0)
        return rc;
    rc = cw_model_partition_add(c->model, &part);
    cw_strtable_destroy(part.nodes);
    return rc < 0 ? cw_fail_errno(err, rc, "%s:%d: partition %s", c->conf->path, p->line, p->name)
                  : 0;
}

static int check_schema(struct cw_ctld *c, struct cw_batch *repair, struct cw_error *err)
{
    cw_autobuf struct cw_buf val = {0};
    int rc =
        cw_store_get(c->store, CW_TABLE_META, CW_META_SCHEMA, strlen(CW_META_SCHEMA), &val, err);
    if (rc < 0)
        return rc;
    uint8_t schema[4];
    cw_store_key_u32(schema, CW_ROW_SCHEMA);
    if (rc == 0) {
        cw_batch_put(repair, CW_TABLE_META, CW_META_SCHEMA, strlen(CW_META_SCHEMA), schema,
                     sizeof schema);
        return 0;
    }
    uint32_t found = val.len == 4 ? cw_store_u32_key((const uint8_t *)val.data) : 0;
    if (found != CW_ROW_SCHEMA)
        return cw_fail(err, -EPROTO, "state directory %s: it has schema %u, this version knows %u",
                       c->conf->state_dir, found, CW_ROW_SCHEMA);
    return 0;
}

/* An id is never used again: the mark is stored with every submit; the rows themselves are a second
 * proof. */
static int set_next_id(struct loading *l, struct cw_error *err)
{
    struct cw_ctld *c = l->c;
    cw_autobuf struct cw_buf val = {0};
    int rc =
        cw_store_get(c->store, CW_TABLE_META, CW_META_NEXT_ID, strlen(CW_META_NEXT_ID), &val, err);
    if (rc < 0)
        return rc;
    uint64_t next = val.len == 8 ? cw_store_u64_key((const uint8_t *)val.data) : 1;
    struct cw_jobsrc s;
    if (l->top_id != 0 && cw_jobview_find(c, l->top_id, l->arena, &s, NULL, NULL, NULL) == 0) {
        uint64_t behind = s.rec->id + (s.is_array ? s.count : 0) + 1;
        if (behind > next)
            next = behind;
        cw_jobsrc_fini(&s);
    }
    if (next > cw_model_next_id(c->model))
        cw_model_set_next_id(c->model, next);
    return 0;
}

static bool take_seq(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    uint64_t *seq = arg;
    (void)val, (void)vlen;
    if (klen == 8)
        *seq = cw_store_u64_key(key);
    return false;
}

/* Predecessors that have ended: their dependents were told in the same transaction, so this finds
 * work only when a row was lost. */
static void settle_preds(struct loading *l)
{
    for (size_t i = 0; i < l->n_preds; i++) {
        uint64_t id = l->preds[i].id;
        struct cw_jobsrc s;
        bool is_element;
        uint64_t ordinal;
        if (cw_model_job(l->c->model, id) != NULL)
            continue;
        bool ok = false;
        if (cw_jobview_find(l->c, id, l->arena, &s, &is_element, &ordinal, NULL) == 0) {
            Cw__JobInfo *info = is_element ? cw_jobview_element(l->c, &s, ordinal, l->arena)
                                           : cw_jobview_info(l->c, &s, l->arena);
            ok = info->state == CW__STATE__COMPLETED;
            cw_jobsrc_fini(&s);
        }
        cw_model_dependency_final(l->c->model, id, ok, cw_clock_real_ns());
        cw_arena_reset(l->arena);
    }
}

static int load_all(struct loading *l, struct cw_error *err)
{
    struct cw_ctld *c = l->c;
    int rc = check_schema(c, l->repair, err);
    for (size_t i = 0; rc == 0 && i < c->conf->n_partitions; i++)
        rc = add_partition(c, &c->conf->partitions[i], err);
    if (rc == 0)
        rc = load_table(l, CW_TABLE_NODE, take_node, err);
    if (rc == 0)
        rc = load_table(l, CW_TABLE_JOB, take_job, err);
    uint64_t jobs = l->n;
    if (rc == 0)
        rc = load_table(l, CW_TABLE_ATTEMPT, take_attempt, err);
    uint64_t attempts = l->n;
    if (rc == 0)
        rc = load_table(l, CW_TABLE_STEP, take_step, err);
    if (rc == 0)
        rc = set_next_id(l, err);
    uint64_t seq = 0;
    if (rc == 0)
        rc = cw_store_scan(c->store, CW_TABLE_EVENT, NULL, 0, true, 1, take_seq, NULL, &seq, err);
    if (rc < 0)
        return rc;
    cw_effects_set_event_seq(c->effects, seq);
    cw_eventlog_set(c->eventlog, seq);
    if (!cw_batch_empty(l->repair))
        rc = cw_store_commit(c->store, l->repair, err);
    if (rc < 0)
        return rc;
    settle_preds(l);
    cw_log_info("state: %u nodes, %llu live jobs, %llu live attempts, next id %llu",
                cw_model_n_nodes(c->model), (unsigned long long)jobs, (unsigned long long)attempts,
                (unsigned long long)cw_model_next_id(c->model));
    return 0;
}

static void selfcheck(struct cw_ctld *c)
{
    cw_autobuf struct cw_buf text = {0};
    if (cw_model_selfcheck(c->model, &text) != 0)
        cw_log_error("state: the ledger does not agree with the attempts: %s", cw_buf_str(&text));
}

int cw_recover(struct cw_ctld *c, struct cw_error *err)
{
    struct loading l = {.c = c, .arena = cw_arena_create(), .repair = cw_batch_create()};
    int rc = load_all(&l, err);
    if (rc == 0)
        selfcheck(c);
    cw_arena_destroy(l.arena);
    cw_batch_destroy(l.repair);
    free(l.preds);
    if (rc == 0)
        cw_crashpoint("recover.done");
    return rc;
}
