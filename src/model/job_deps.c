/* Dependencies between jobs. A waiting job has one edge for each dependency that is not met; edges
 * hang on a set per predecessor (a job, an array or one element). What becomes final is noted, and
 * the notes are worked off at the end of the step: met edges go, and a job whose dependency can
 * never be met any more ends at once, which may note further jobs. Test: job_deps_test.c. */
#include "model/model.h"

#include "base/mem.h"
#include "spec/outcome.h"

static const char *kind_word(Cw__DependencyKind k)
{
    switch (k) {
    case CW__DEPENDENCY_KIND__AFTEROK: return "afterok";
    case CW__DEPENDENCY_KIND__AFTERANY: return "afterany";
    case CW__DEPENDENCY_KIND__AFTERNOTOK: return "afternotok";
    case CW__DEPENDENCY_KIND__AFTER: return "after";
    case CW__DEPENDENCY_KIND__AFTERCORR: return "aftercorr";
    case CW__DEPENDENCY_KIND__SINGLETON: return "singleton";
    default: return "?";
    }
}

/* ---- at submit ------------------------------------------------------------------------------- */

/* 1 lives or waits, 0 ended (*ret_state, 0 when only its attempt row knows). */
static int element_lives(struct cw_model *m, const struct cw_job *j, uint64_t ordinal,
                         Cw__State *ret_state)
{
    const struct cw_jobarray *a = j->array;
    const struct cw_attempt *t = cw_model_attempt(m, cw_job_element_id(j, ordinal));
    *ret_state = 0;
    if (cw_idset_has(&a->pending, ordinal))
        return 1;
    if (t != NULL && (t->requeue || !cw_state_terminal(t->state)))
        return 1;
    if (t != NULL)
        *ret_state = t->state;
    else if (cw_idset_has(&a->cancelled, ordinal))
        *ret_state = CW__STATE__CANCELLED;
    else if (a->n_failed == 0 && a->n_cancelled == cw_idset_count(&a->cancelled))
        *ret_state = CW__STATE__COMPLETED;
    return 0;
}

static bool kind_met(Cw__DependencyKind k, bool ok)
{
    return k == CW__DEPENDENCY_KIND__AFTERANY || (k == CW__DEPENDENCY_KIND__AFTEROK) == ok;
}

static int check_one(struct cw_model *m, const Cw__Dependency *d, struct cw_error *err)
{
    const char *word = kind_word(d->kind);
    unsigned long long id = d->job_id;
    if (d->kind > CW__DEPENDENCY_KIND__AFTERNOTOK)
        return cw_fail(err, -EINVAL,
                       "dependency %s is not known here: afterok, afterany, afternotok are", word);
    if (d->satisfied)
        return 0;
    const struct cw_job *pred = cw_model_job(m, d->job_id);
    if (pred == NULL)
        return cw_fail(err, -ENOENT, "dependency %s:%llu: no such job", word, id);
    if (pred->is_array && d->job_id == pred->id) {
        bool failing = pred->array->n_failed + pred->array->n_cancelled > 0;
        if (failing && d->kind == CW__DEPENDENCY_KIND__AFTEROK)
            return cw_fail(err, -EINVAL,
                           "dependency %s:%llu can never be met: elements of the array have failed",
                           word, id);
        return 0;
    }
    uint64_t ordinal = 0;
    Cw__State s = 0;
    if (!pred->is_array || !cw_job_ordinal(pred, d->job_id, &ordinal) ||
        element_lives(m, pred, ordinal, &s) == 1)
        return 0;
    if (s == 0)
        return cw_fail(err, -ENODATA,
                       "dependency %s:%llu: the element has ended; its outcome is not at hand",
                       word, id);
    if (!kind_met(d->kind, s == CW__STATE__COMPLETED))
        return cw_fail(err, -EINVAL, "dependency %s:%llu can never be met: it ended %s", word, id,
                       cw_state_name(s));
    return 0;
}

int cw_deps_check(struct cw_model *m, const Cw__JobSpec *s, struct cw_error *err)
{
    for (size_t i = 0; i < s->n_dependencies; i++) {
        int r = check_one(m, s->dependencies[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* An element that ended before the submit was checked to fit: such a dependency is met. */
static bool is_open(struct cw_model *m, const Cw__Dependency *d)
{
    if (d->satisfied)
        return false;
    const struct cw_job *pred = cw_model_job(m, d->job_id);
    uint64_t ordinal;
    Cw__State s;
    return pred == NULL || pred->id == d->job_id || !cw_job_ordinal(pred, d->job_id, &ordinal) ||
           element_lives(m, pred, ordinal, &s) == 1;
}

/* How many edges point at elements of a live array; kept there so that most elements need no
 * look-up. */
static void count_element_dep(struct cw_model *m, uint64_t pred_id, int step)
{
    struct cw_job *pred = cw_model_job(m, pred_id);
    if (pred != NULL && pred->is_array && pred->id != pred_id)
        pred->array->n_element_deps += (uint64_t)(int64_t)step;
}

static void edge_add(struct cw_model *m, struct cw_depedge *e)
{
    struct cw_depset *set = cw_idtable_find(m->depsets, e->pred_id);
    if (set == NULL) {
        set = cw_xcalloc(1, sizeof(*set));
        set->pred_id = e->pred_id;
        cw_list_init(&set->edges);
        cw_idtable_set(m->depsets, e->pred_id, set);
    }
    e->set = set;
    cw_list_add_tail(&set->edges, &e->on_set);
    count_element_dep(m, e->pred_id, 1);
}

void cw_deps_attach(struct cw_model *m, struct cw_job *j, const Cw__JobSpec *s, bool restoring)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_dependencies; i++)
        n += !s->dependencies[i]->satisfied;
    if (n == 0)
        return;
    struct cw_jobdeps *deps = cw_xcalloc(1, sizeof(*deps) + n * sizeof(deps->edges[0]));
    for (size_t i = 0; i < s->n_dependencies; i++) {
        const Cw__Dependency *d = s->dependencies[i];
        if (restoring ? d->satisfied : !is_open(m, d)) /* attempts are restored later than jobs */
            continue;
        struct cw_depedge *e = &deps->edges[deps->n++];
        e->job = j;
        e->pred_id = d->job_id;
        e->kind = d->kind;
        edge_add(m, e);
    }
    deps->n_open = deps->n;
    if (deps->n == 0)
        free(deps);
    else
        j->deps = deps;
}

/* ---- removing edges -------------------------------------------------------------------------- */

static void edge_remove(struct cw_model *m, struct cw_depedge *e)
{
    struct cw_depset *set = e->set;
    if (set == NULL)
        return;
    e->set = NULL;
    cw_list_remove(&e->on_set);
    count_element_dep(m, e->pred_id, -1);
    if (!cw_list_empty(&set->edges) || set == m->telling)
        return; /* the drain frees the set that it works on */
    cw_idtable_remove(m->depsets, set->pred_id);
    free(set);
}

void cw_deps_detach(struct cw_model *m, struct cw_job *j)
{
    struct cw_jobdeps *deps = cw_steal(j->deps);
    if (deps == NULL)
        return;
    for (size_t i = 0; i < deps->n; i++)
        edge_remove(m, &deps->edges[i]);
    free(deps);
}

bool cw_deps_open(const struct cw_job *j, const Cw__Dependency *d)
{
    for (size_t i = 0; j->deps != NULL && i < j->deps->n; i++) {
        const struct cw_depedge *e = &j->deps->edges[i];
        if (e->set != NULL && e->pred_id == d->job_id && e->kind == d->kind)
            return true;
    }
    return false;
}

/* ---- news ------------------------------------------------------------------------------------ */

void cw_deps_note(struct cw_model *m, uint64_t id, enum cw_depnews news)
{
    if (cw_idtable_find(m->depsets, id) == NULL)
        return;
    if (m->n_notes == m->cap_notes) {
        m->cap_notes = m->cap_notes == 0 ? 16 : m->cap_notes * 2;
        m->notes = cw_xrealloc(m->notes, m->cap_notes, sizeof(*m->notes));
    }
    m->notes[m->n_notes++] = (struct cw_depnote){id, news};
}

void cw_deps_note_element(struct cw_model *m, struct cw_job *j, uint64_t ordinal, Cw__State s)
{
    if (j->is_array && j->array->n_element_deps > 0)
        cw_deps_note(m, cw_job_element_id(j, ordinal),
                     s == CW__STATE__COMPLETED ? CW_DEPNEWS_OK : CW_DEPNEWS_FAILED);
}

static void on_met(struct cw_model *m, struct cw_depedge *e)
{
    struct cw_job *j = e->job;
    edge_remove(m, e);
    if (--j->deps->n_open == 0) {
        free(cw_steal(j->deps));
        cw_queue_place(m, j);
        cw_job_settle(j);
    }
    cw_emit_job(m, CW_EFFECT_PUT_JOB, j); /* the predecessor's row will not be looked at again */
    if (j->deps == NULL && !j->parked)
        cw_emit_cycle(m);
}

static void on_never(struct cw_model *m, struct cw_depedge *e, int64_t now_ns)
{
    struct cw_job *j = e->job;
    edge_remove(m, e);
    cw_job_cancel_unmet(m, j, now_ns);
}

/* Takes the edges of one set off one by one: ending a job may unlink other edges of the same set.
 */
static void tell(struct cw_model *m, struct cw_depset *set, enum cw_depnews news, int64_t now_ns)
{
    struct cw_list rest;
    cw_list_init(&rest);
    while (!cw_list_empty(&set->edges)) {
        struct cw_depedge *e = cw_list_entry(set->edges.next, struct cw_depedge, on_set);
        if (news == CW_DEPNEWS_FAILING && e->kind != CW__DEPENDENCY_KIND__AFTEROK) {
            cw_list_remove(&e->on_set);
            cw_list_add_tail(&rest, &e->on_set);
        } else if (news != CW_DEPNEWS_FAILING && kind_met(e->kind, news == CW_DEPNEWS_OK)) {
            on_met(m, e);
        } else {
            on_never(m, e, now_ns);
        }
    }
    while (!cw_list_empty(&rest)) {
        struct cw_list *item = rest.next;
        cw_list_remove(item);
        cw_list_add_tail(&set->edges, item);
    }
}

void cw_deps_drain(struct cw_model *m, int64_t now_ns)
{
    if (m->draining)
        return;
    m->draining = true;
    for (size_t i = 0; i < m->n_notes; i++) {
        struct cw_depnote note = m->notes[i];
        struct cw_depset *set = cw_idtable_find(m->depsets, note.id);
        if (set == NULL)
            continue;
        m->telling = set;
        tell(m, set, note.news, now_ns);
        m->telling = NULL;
        if (cw_list_empty(&set->edges)) {
            cw_idtable_remove(m->depsets, note.id);
            free(set);
        }
    }
    m->n_notes = 0;
    m->draining = false;
}

void cw_model_dependency_final(struct cw_model *m, uint64_t job_id, bool ok, int64_t now_ns)
{
    cw_deps_note(m, job_id, ok ? CW_DEPNEWS_OK : CW_DEPNEWS_FAILED);
    cw_deps_drain(m, now_ns);
}
