/* Why a job waits, in sentences with numbers: every rule that blocks it now, not only the first
 * that the last pass met. Computed when asked, from the same terms that the pass uses. Order: what
 * the job itself waits for, what the nodes lack, when that may change, what would fit, its place.
 * Test: pass_test.c. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "sched/pass.h"
#include "sched/placement.h"
#include "sched/timeline.h"
#include "spec/outcome.h"
#include "spec/selector.h"

#define CW_EXPLAIN_BUDGET_NS INT64_C(50000000)
#define ADD(out, ...) cw_strv_add_take((out), cw_xasprintf(__VA_ARGS__))

/* ---- the job's own reasons ------------------------------------------------------------------- */

static const char *dep_word(Cw__DependencyKind k)
{
    switch (k) {
    case CW__DEPENDENCY_KIND__AFTEROK: return "afterok";
    case CW__DEPENDENCY_KIND__AFTERANY: return "afterany";
    case CW__DEPENDENCY_KIND__AFTERNOTOK: return "afternotok";
    default: return "after";
    }
}

static void add_dependency(struct cw_model *m, const Cw__Dependency *d, struct cw_strv *out)
{
    const struct cw_job *pred = cw_model_job(m, d->job_id);
    const struct cw_attempt *a = cw_model_attempt(m, d->job_id);
    if (d->kind == CW__DEPENDENCY_KIND__SINGLETON)
        ADD(out, "waits for an earlier job of the same name and user");
    else if (d->never)
        ADD(out, "%s:%" PRIu64 " can never be met any more", dep_word(d->kind), d->job_id);
    else if (pred == NULL)
        ADD(out, "waits for %s:%" PRIu64 ", which is not live", dep_word(d->kind), d->job_id);
    else if (pred->is_array && pred->id == d->job_id)
        ADD(out, "waits for %s:%" PRIu64 ": %" PRIu64 " of its %" PRIu64 " elements have ended",
            dep_word(d->kind), d->job_id,
            pred->array->n_completed + pred->array->n_failed + pred->array->n_cancelled,
            pred->count);
    else
        ADD(out, "waits for %s:%" PRIu64 ", which is %s", dep_word(d->kind), d->job_id,
            a != NULL ? cw_state_name(a->state) : "PENDING");
}

/* The node that an ended attempt waits for. */
static const struct cw_node *holder(const struct cw_attempt *a)
{
    for (uint32_t k = 0; k < a->n_parts; k++)
        if (a->parts[k].phase == CW_PART_ENDED)
            return a->parts[k].node;
    return a->parts[0].node;
}

static void add_own(struct cw_model *m, const struct cw_job *j, struct cw_strv *out)
{
    char when[40];
    if (j->early)
        ADD(out, "not before %s", cw_clock_format(j->begin_ns, when, sizeof(when)));
    if (j->held && j->held_by_admin)
        ADD(out, "held by an administrator");
    else if (j->held)
        ADD(out, "held; crun-ctl release %" PRIu64 " lets it go", j->id);
    if (j->deps != NULL) {
        Cw__JobRecord *r = cw_job_record(j);
        for (size_t i = 0; i < r->spec->n_dependencies; i++)
            if (!r->spec->dependencies[i]->satisfied)
                add_dependency(m, r->spec->dependencies[i], out);
        cw__job_record__free_unpacked(r, NULL);
    }
    if (j->is_array && j->throttle != 0 && j->array->n_live >= j->throttle)
        ADD(out, "the array's own limit: %" PRIu64 " of %u elements at once are live",
            j->array->n_live, j->throttle);
    cw_list_each(pos, &j->attempts) {
        const struct cw_attempt *a = cw_list_entry(pos, struct cw_attempt, on_job);
        if (a->requeue)
            ADD(out,
                "element %" PRIu64
                " starts again when node %s proves that nothing of attempt %u is left",
                a->id, holder(a)->name, a->attempt);
    }
}

/* ---- the nodes ------------------------------------------------------------------------------- */

struct survey {
    uint32_t members, down, drained, unfit, busy, fit;
    const struct cw_node *freest; /* of the busy ones: most free cores */
    const struct cw_node *drained_one;
    bool known;         /* a moment at which it could start */
    int64_t soonest_ns; /* by time limits */
    const struct cw_node *soonest; /* the first of its nodes */
};

/* When all of it could start, as planned now, without counting the jobs ahead. */
static void estimate(struct cw_model *m, const struct cw_job *j, const struct cw_shape *s,
                     int64_t now_ns, struct survey *v)
{
    struct cw_timeline *t = cw_timeline_create(m, now_ns);
    struct cw_picks where = {0};
    v->known = cw_timeline_earliest(t, s, cw_timeline_length(j),
                                    cw_clock_mono_ns() + CW_EXPLAIN_BUDGET_NS, &v->soonest_ns,
                                    &where);
    if (v->known)
        v->soonest = where.v[0].node;
    cw_picks_fini(&where);
    cw_timeline_destroy(t);
}

static void survey_node(const struct cw_shape *s, const struct cw_node *n, struct survey *v)
{
    v->members++;
    if (!n->up || n->lost || n->rec->inventory == NULL) {
        v->down++;
    } else if (n->rec->drained) {
        v->drained++;
        v->drained_one = n;
    } else if (cw_shape_lacks(s, n) != CW_TERM_NONE) {
        v->unfit++;
    } else if (cw_shape_lacks_now(s, n) != CW_TERM_NONE) {
        v->busy++;
        if (v->freest == NULL || n->n_free > v->freest->n_free)
            v->freest = n;
    } else {
        v->fit++;
    }
}

static void add_need(const struct cw_shape *s, struct cw_buf *b)
{
    const struct cw_want *w = s->want;
    char size[32];
    uint32_t cores = cw_want_cores(w), gpus = cw_want_gpus(w);
    cw_buf_addf(b, "needs %u core%s", cores, cores == 1 ? "" : "s");
    if (!cw_shape_single(s))
        cw_buf_addf(b, " for %u tasks", w->ntasks);
    if (w->mem_node != 0)
        cw_buf_addf(b, ", %s of memory%s", cw_size_format(w->mem_node, size, sizeof(size)),
                    cw_shape_single(s) ? "" : " a node");
    if (w->mem_cpu != 0)
        cw_buf_addf(b, ", %s of memory a core", cw_size_format(w->mem_cpu, size, sizeof(size)));
    if (w->mem_gpu != 0)
        cw_buf_addf(b, ", %s of memory a GPU", cw_size_format(w->mem_gpu, size, sizeof(size)));
    if (gpus != 0)
        cw_buf_addf(b, ", %u GPU%s%s%s", gpus, gpus == 1 ? "" : "s",
                    w->gpu_type != NULL ? " of type " : "", w->gpu_type != NULL ? w->gpu_type : "");
    if (s->isolation != NULL)
        cw_buf_addf(b, ", isolation %s", s->isolation);
    if (w->constraint != NULL)
        cw_buf_addf(b, ", labels %s", w->constraint);
    if (w->exclude != NULL)
        cw_buf_addf(b, ", without %s", w->exclude);
    if (cw_shape_single(s))
        cw_buf_add_str(b, " on one node");
    else if (w->nodes_min > 1)
        cw_buf_addf(b, " on %u nodes", w->nodes_min);
    if (w->nodelist != NULL)
        cw_buf_addf(b, " (%s)", w->nodelist);
    if (w->exclusive)
        cw_buf_add_str(b, ", nobody else there");
}

static void add_nodes(const struct cw_shape *s, const struct survey *v, struct cw_strv *out)
{
    struct cw_buf b = {0};
    add_need(s, &b);
    cw_buf_addf(&b, "; partition %s has %u node%s", s->part->name, v->members,
                v->members == 1 ? "" : "s");
    if (v->fit > 0)
        cw_buf_addf(&b, ", %u with room", v->fit);
    if (v->busy > 0)
        cw_buf_addf(&b, ", %u busy", v->busy);
    if (v->unfit > 0)
        cw_buf_addf(&b, ", %u too small or of another kind", v->unfit);
    if (v->down > 0)
        cw_buf_addf(&b, ", %u down", v->down);
    if (v->drained > 0)
        cw_buf_addf(&b, ", %u drained (%s by uid %u: \"%s\")", v->drained, v->drained_one->name,
                    v->drained_one->rec->drain_uid,
                    v->drained_one->rec->drain_reason != NULL ? v->drained_one->rec->drain_reason
                                                              : "");
    cw_strv_add_take(out, cw_buf_steal(&b));
}

/* Whose end makes the room: the attempt on that node that ends then. */
static const struct cw_attempt *ends_at(const struct cw_node *n, int64_t t_ns)
{
    cw_list_each(pos, &n->parts) {
        const struct cw_part *p = cw_list_entry(pos, struct cw_part, on_node);
        if (cw_timeline_end(p->attempt, t_ns - 1) == t_ns)
            return p->attempt;
    }
    return NULL;
}

/* As people call it: 12, or 12_3. */
static char *attempt_text(const struct cw_attempt *a, char *buf, size_t cap)
{
    bool element = a->job != NULL && a->job->is_array;
    return cw_selector_format(a->id, element ? a->job_id : 0,
                              element ? cw_job_index(a->job, a->ordinal) : 0, buf, cap);
}

static void add_soonest(const struct survey *v, struct cw_strv *out)
{
    char when[40], until[48];
    const struct cw_attempt *a = ends_at(v->soonest, v->soonest_ns);
    cw_clock_format(v->soonest_ns, when, sizeof(when));
    if (a != NULL)
        ADD(out,
            "estimated start: %s at the latest on node %s, when job %s reaches its time limit "
            "(jobs ahead not counted)",
            when, v->soonest->name, attempt_text(a, until, sizeof(until)));
    else
        ADD(out, "estimated start: %s at the latest on node %s (jobs ahead not counted)", when,
            v->soonest->name);
}

static void add_times(const struct cw_shape *s, const struct survey *v, int64_t now_ns,
                      struct cw_strv *out)
{
    char size[32];
    if ((v->known && v->soonest_ns <= now_ns) || v->busy == 0)
        return;
    if (v->known)
        add_soonest(v, out);
    else
        ADD(out,
            "estimated start: unknown, the running jobs have no time limit that would make room");
    const struct cw_node *n = v->freest;
    if (n->n_free == 0)
        ADD(out, "would fit now: nothing, no core is free");
    else
        ADD(out, "would fit now: up to %u cores, %s of memory, %u GPUs (node %s)", n->n_free,
            cw_size_format(n->mem_free, size, sizeof(size)), cw_shape_gpus_free(s, n), n->name);
}

/* ---- the place ------------------------------------------------------------------------------- */

/* Returns how many jobs of its partition are in front of it. */
static uint64_t add_place(struct cw_model *m, const struct cw_job *j, const struct cw_partition *p,
                          struct cw_strv *out)
{
    uint64_t ahead = 0, total = cw_model_n_queued(m, j->partition);
    const struct cw_job *first = NULL;
    cw_list_each(pos, cw_model_queue(m)) {
        const struct cw_job *q = cw_list_entry(pos, struct cw_job, in_queue);
        if (q == j)
            break;
        if (q->partition != j->partition)
            continue;
        first = first == NULL ? q : first;
        ahead++;
    }
    if (first != NULL)
        ADD(out,
            "place %" PRIu64 " of %" PRIu64 " in partition %s; %" PRIu64
            " ahead, the first is job %" PRIu64,
            ahead + 1, total, p->name, ahead, first->id);
    else
        ADD(out, "place 1 of %" PRIu64 " in partition %s", total, p->name);
    return ahead;
}

static void explain_live(const struct cw_job *j, struct cw_strv *out)
{
    ADD(out, "nothing of it waits: it is %s", cw_state_name(j->state));
}

void cw_pass_explain(struct cw_model *m, const struct cw_pass_policy *p, struct cw_job *j,
                     int64_t now_ns, struct cw_strv *ret)
{
    (void)p;
    struct cw_shape s;
    add_own(m, j, ret);
    if (j->in_queue.next == NULL && ret->n == 0)
        explain_live(j, ret);
    if (j->in_queue.next == NULL)
        return;
    if (!cw_shape_of_job(m, j, &s)) {
        ADD(ret, "its partition does not exist any more; it waits until the partition is back or "
                 "it is cancelled");
        return;
    }
    struct survey v = {0};
    for (uint32_t i = 0; i < cw_model_n_nodes(m); i++)
        if (cw_partition_has(s.part, cw_model_node_at(m, i)))
            survey_node(&s, cw_model_node_at(m, i), &v);
    add_nodes(&s, &v, ret);
    estimate(m, j, &s, now_ns, &v);
    add_times(&s, &v, now_ns, ret);
    if (!j->parked)
        add_place(m, j, s.part, ret);
}
