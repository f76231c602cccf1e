/* A job as its stored row. Two ways to the same content: a record with every field (for those who
 * look into it), and the packed bytes (for the store), made by appending the fields that change to
 * the packed part that never does. A row is written at each start and end of an element, so the
 * second way never unpacks the spec; only a job that waits for dependencies pays for it, because
 * their `satisfied` marks lie inside the spec. Test: job_test.c. */
#include "model/model.h"

#include "base/mem.h"

static void set_changing(const struct cw_job *j, Cw__JobRecord *r)
{
    r->state = j->state;
    r->has_end_ns = j->end_ns != 0;
    r->end_ns = j->end_ns;
    r->has_held = true;
    r->held = j->held;
    r->has_held_by_admin = r->held_by_admin = j->held_by_admin;
    r->has_node_faults = (r->node_faults = j->node_faults) != 0;
    r->has_retries_used = (r->retries_used = j->retries_used) != 0;
    r->has_not_before_ns = (r->not_before_ns = j->begin_ns) != 0;
    r->reason = cw_xstrdup(j->end_reason);
    if (j->is_array) {
        cw_jobarray_save(j->array, r);
    } else {
        r->has_next_attempt = true;
        r->next_attempt = j->next_attempt;
    }
}

Cw__JobRecord *cw_job_record(const struct cw_job *j)
{
    Cw__JobRecord *r = cw__job_record__unpack(NULL, j->spec_len, j->spec_packed);
    if (r == NULL)
        abort(); /* we packed it ourselves */
    for (size_t i = 0; i < r->spec->n_dependencies; i++) {
        Cw__Dependency *d = r->spec->dependencies[i];
        d->has_satisfied = true;
        d->has_never = d->never = cw_deps_never(j, d);
        d->satisfied = !d->never && !cw_deps_open(j, d);
    }
    set_changing(j, r);
    return r;
}

static void add_packed(struct cw_buf *out, const Cw__JobRecord *r)
{
    uint8_t *p = cw_buf_reserve(out, cw__job_record__get_packed_size(r));
    out->len += cw__job_record__pack(r, p);
    out->data[out->len] = '\0';
}

void cw_job_row(const struct cw_job *j, struct cw_buf *out)
{
    if (j->has_deps) {
        Cw__JobRecord *full = cw_job_record(j);
        add_packed(out, full);
        cw__job_record__free_unpacked(full, NULL);
        return;
    }
    /* A packed message is the sequence of its fields by tag. The required fields in front of
     * `state` are packed empty and cut off; from `state` on (tag and value: two bytes) all of it
     * changes. */
    Cw__JobSpec spec;
    Cw__Owner owner;
    cw__job_spec__init(&spec);
    cw__owner__init(&owner);
    Cw__JobRecord r;
    cw__job_record__init(&r);
    r.spec = &spec;
    r.owner = &owner;
    size_t cut = cw__job_record__get_packed_size(&r) - 2;
    set_changing(j, &r);
    cw_autobuf struct cw_buf changing = {0};
    add_packed(&changing, &r);
    cw_buf_add(out, j->spec_packed, j->spec_len);
    cw_buf_add(out, changing.data + cut, changing.len - cut);
    free(r.reason);
    free(r.pending);
    free(r.cancelled);
    for (size_t i = 0; i < r.n_requeued; i++)
        free(r.requeued[i]);
    free(r.requeued);
}
