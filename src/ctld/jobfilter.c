/* jobfilter.c: selectors and conditions. Test: jobview_test.c. */
#include "ctld/jobfilter.h"

#include <string.h>

#include "base/mem.h"
#include "proto/walk.h"

static int sel_cmp(const void *a, const void *b)
{
    const struct cw_selector *x = a, *y = b;
    return x->first == y->first ? 0 : x->first < y->first ? -1 : 1;
}

int cw_jobfilter_init(struct cw_jobfilter *f, const Cw__JobFilter *msg, struct cw_error *err)
{
    *f = (struct cw_jobfilter){.msg = msg};
    if (msg->n_ids > CW_JOBFILTER_IDS_MAX)
        return cw_fail(err, -E2BIG, "%zu job ids in one request, at most %u are allowed",
                       msg->n_ids, CW_JOBFILTER_IDS_MAX);
    f->sel = cw_xcalloc(msg->n_ids + 1, sizeof *f->sel);
    for (; f->n_sel < msg->n_ids; f->n_sel++) {
        int rc = cw_selector_parse(msg->ids[f->n_sel], &f->sel[f->n_sel], err);
        if (rc < 0) {
            cw_jobfilter_fini(f);
            return rc;
        }
    }
    qsort(f->sel, f->n_sel, sizeof *f->sel, sel_cmp);
    return 0;
}

void cw_jobfilter_fini(struct cw_jobfilter *f)
{
    for (size_t i = 0; i < f->n_sel; i++)
        cw_selector_fini(&f->sel[i]);
    free(f->sel);
    f->sel = NULL;
    f->n_sel = 0;
}

bool cw_jobfilter_is_empty(const struct cw_jobfilter *f)
{
    return f->n_sel == 0 && f->msg->n_states == 0 && f->msg->n_uids == 0 && f->msg->n_names == 0 &&
           f->msg->n_partitions == 0 && f->msg->n_accounts == 0 && f->msg->n_qos == 0 &&
           f->msg->n_nodes == 0 && f->msg->n_labels == 0;
}

static bool has_text(char *const *v, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++)
        if (s != NULL && strcmp(v[i], s) == 0)
            return true;
    return n == 0;
}

static bool has_uid(const Cw__JobFilter *m, uint32_t uid)
{
    for (size_t i = 0; i < m->n_uids; i++)
        if (m->uids[i] == uid)
            return true;
    return m->n_uids == 0;
}

static bool has_label(const Cw__JobSpec *spec, const Cw__KeyValue *want)
{
    for (size_t i = 0; i < spec->n_labels; i++)
        if (strcmp(spec->labels[i]->key, want->key) == 0)
            return strcmp(spec->labels[i]->value, want->value) == 0;
    return false;
}

/* What only the spec knows. */
static bool spec_fits(const Cw__JobFilter *m, const Cw__JobSpec *spec)
{
    for (size_t i = 0; i < m->n_labels; i++)
        if (!has_label(spec, m->labels[i]))
            return false;
    return has_text(m->qos, m->n_qos, spec->qos);
}

static bool live_spec_fits(const Cw__JobFilter *m, const struct cw_job *j)
{
    ProtobufCMessage *rec;
    if (m->n_labels + m->n_qos == 0)
        return true;
    struct cw_arena *a = cw_arena_create();
    bool fits = cw_walk_unpack_stored(&cw__job_record__descriptor, j->spec_packed, j->spec_len, a,
                                      &rec, NULL) == 0 &&
                spec_fits(m, ((const Cw__JobRecord *)rec)->spec);
    cw_arena_destroy(a);
    return fits;
}

bool cw_jobfilter_nodes(const struct cw_jobfilter *f, const Cw__AttemptRecord *a)
{
    const Cw__JobFilter *m = f->msg;
    if (m->n_nodes == 0)
        return true;
    if (a == NULL || a->grant == NULL)
        return false;
    bool is = has_text(m->nodes, m->n_nodes, a->grant->node);
    for (size_t i = 0; i < a->n_more_grants && !is; i++)
        is = has_text(m->nodes, m->n_nodes, a->more_grants[i]->node);
    return is;
}

static bool live_on_nodes(const struct cw_jobfilter *f, const struct cw_job *j)
{
    if (f->msg->n_nodes == 0)
        return true;
    cw_list_each (p, &j->attempts)
        if (cw_jobfilter_nodes(f, cw_list_entry(p, struct cw_attempt, on_job)->rec))
            return true;
    return false;
}

bool cw_jobfilter_job(const struct cw_jobfilter *f, const struct cw_jobsrc *s,
                      const char *default_partition)
{
    const Cw__JobSpec *spec = s->rec->spec;
    return has_uid(f->msg, s->rec->owner->uid) &&
           has_text(f->msg->names, f->msg->n_names, spec->name) &&
           has_text(f->msg->accounts, f->msg->n_accounts, spec->account) &&
           spec_fits(f->msg, spec) &&
           has_text(f->msg->partitions, f->msg->n_partitions,
                    spec->partition != NULL ? spec->partition : default_partition);
}

bool cw_jobfilter_live(const struct cw_jobfilter *f, const struct cw_job *j, const char *partition)
{
    return has_uid(f->msg, j->uid) && has_text(f->msg->names, f->msg->n_names, j->name) &&
           has_text(f->msg->partitions, f->msg->n_partitions, partition) &&
           has_text(f->msg->accounts, f->msg->n_accounts, j->account) && live_on_nodes(f, j) &&
           live_spec_fits(f->msg, j);
}

bool cw_jobfilter_state(const struct cw_jobfilter *f, Cw__State s)
{
    for (size_t i = 0; i < f->msg->n_states; i++)
        if (f->msg->states[i] == s)
            return true;
    return f->msg->n_states == 0;
}

bool cw_jobfilter_ordinals(const struct cw_selector *sel, const struct cw_idset *indices,
                           struct cw_idset *ret)
{
    if (!sel->has_indices) {
        uint64_t n = cw_idset_count(indices);
        if (n > 0)
            cw_idset_add(ret, 0, n - 1);
        return n > 0;
    }
    /* Both sets are sorted ranges; an ordinal is the rank of its index. */
    for (size_t i = 0; i < sel->indices.n; i++)
        for (size_t k = 0; k < indices->n; k++) {
            uint64_t first = sel->indices.r[i].first > indices->r[k].first ? sel->indices.r[i].first
                                                                           : indices->r[k].first;
            uint64_t last = sel->indices.r[i].last < indices->r[k].last ? sel->indices.r[i].last
                                                                        : indices->r[k].last;
            if (first <= last)
                cw_idset_add(ret, cw_idset_rank(indices, first), cw_idset_rank(indices, last));
        }
    return !cw_idset_empty(ret);
}
