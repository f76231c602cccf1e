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
    switch (k) {
    case CW__DEPENDENCY_KIND__AFTEROK: return ok;
    case CW__DEPENDENCY_KIND__AFTERNOTOK: return !ok;
    default: return true; /* afterany, after (it began, or never will), singleton */
    }
}

static int check_one(struct cw_model *m, const Cw__Dependency *d, struct cw_error *err)
{
    const char *word = kind_word(d->kind);
    unsigned long long id = d->job_id;
    if (d->kind == CW__DEPENDENCY_KIND__AFTERCORR)
        return cw_fail(err, -EINVAL, "dependency %s is not carried out: use afterok", word);
    if (d->satisfied || d->never || d->kind == CW__DEPENDENCY_KIND__SINGLETON)
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

/* Of alternatives one that can be met is enough. */
int cw_deps_check(struct cw_model *m, const Cw__JobSpec *s, struct cw_error *err)
{
    bool any = s->dependency_rule != NULL;
    size_t n_never = 0;
    int never = 0;
    for (size_t i = 0; i < s->n_dependencies; i++) {
        int r = check_one(m, s->dependencies[i], err);
        n_never += r == -EINVAL || s->dependencies[i]->never;
        never = r == -EINVAL ? r : never;
        if (r < 0 && (r != -EINVAL || !any))
            return r == -EINVAL && s->keep_on_invalid_dep ? 0 : r;
    }
    if (!any || n_never < s->n_dependencies || s->n_dependencies == 0 || s->keep_on_invalid_dep)
        return 0;
    return never != 0 ? never : cw_fail(err, -EINVAL, "none of the dependencies can ever be met");
}

/* When it (all elements of an array) began, 0: has not. */
static int64_t began_at(struct cw_model *m, uint64_t id)
{
    const struct cw_job *pred = cw_model_job(m, id);
    int64_t last = 0;
    if (pred == NULL || (pred->is_array && pred->id == id && !cw_idset_empty(&pred->array->pending)))
        return 0;
    cw_list_each(pos, &((struct cw_job *)pred)->attempts) {
        const struct cw_attempt *a = cw_list_entry(pos, struct cw_attempt, on_job);
        if (pred->is_array && pred->id != id && a->id != id)
            continue;
        if (!a->rec->has_start_ns)
            return 0;
        last = a->rec->start_ns > last ? a->rec->start_ns : last;
    }
    return last;
}

enum openness { MET, OPEN, NEVER };

/* An element that ended before the submit: the outcome is known. */
static enum openness openness(struct cw_model *m, const Cw__Dependency *d)
{
    if (d->satisfied || d->never)
        return d->never ? NEVER : MET;
    const struct cw_job *pred = cw_model_job(m, d->job_id);
    uint64_t ordinal;
    Cw__State s;
    if (pred == NULL)
        return OPEN;
    if (d->kind == CW__DEPENDENCY_KIND__AFTER && began_at(m, d->job_id) != 0)
        return MET;
    if (pred->id == d->job_id) {
        bool failing = pred->is_array && pred->array->n_failed + pred->array->n_cancelled > 0;
        return failing && d->kind == CW__DEPENDENCY_KIND__AFTEROK ? NEVER : OPEN;
    }
    if (!cw_job_ordinal(pred, d->job_id, &ordinal) || element_lives(m, pred, ordinal, &s) == 1)
        return OPEN;
    return kind_met(d->kind, s == CW__STATE__COMPLETED) ? MET : NEVER;
}

/* The latest job before j of the same name and user that has not ended; NULL. */
struct same {
    const struct cw_job *j;
    const struct cw_job *found;
};

static bool is_same(struct cw_job *j, void *arg)
{
    struct same *s = arg;
    if (j->id >= s->j->id)
        return false;
    if (j->name == s->j->name && j->uid == s->j->uid)
        s->found = j;
    return true;
}

static const struct cw_job *earlier_same(struct cw_model *m, const struct cw_job *j)
{
    struct same s = {.j = j};
    cw_model_each_job(m, is_same, &s);
    return s.found;
}

/* Walks what the predecessors wait for, each job once. */
bool cw_deps_cycle(struct cw_model *m, const struct cw_job *j, const Cw__JobSpec *s)
{
    size_t n = 0, cap = s->n_dependencies + 16;
    bool found = false;
    struct cw_idtable *seen = cw_idtable_create();
    const struct cw_job **todo = cw_xcalloc(cap, sizeof(*todo));
    for (size_t i = 0; i < s->n_dependencies; i++) {
        bool same = s->dependencies[i]->kind == CW__DEPENDENCY_KIND__SINGLETON;
        const struct cw_job *pred =
            same ? earlier_same(m, j) : cw_model_job(m, s->dependencies[i]->job_id);
        if (pred != NULL)
            todo[n++] = pred;
    }
    while (n > 0 && !found) {
        const struct cw_job *p = todo[--n];
        found = p == j;
        if (cw_idtable_set(seen, p->id, (void *)p) != NULL || p->deps == NULL)
            continue;
        if (n + p->deps->n > cap) {
            cap = 2 * (n + p->deps->n);
            todo = cw_xrealloc(todo, cap, sizeof(*todo));
        }
        for (size_t i = 0; i < p->deps->n; i++) {
            const struct cw_job *pred = cw_model_job(m, p->deps->edges[i].pred_id);
            if (pred != NULL)
                todo[n++] = pred;
        }
    }
    free(todo);
    cw_idtable_destroy(seen);
    return found;
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

static void add_delay(struct cw_job *j, int64_t began_ns, uint64_t delay_s)
{
    if (delay_s == 0 || began_ns == 0)
        return;
    int64_t t = began_ns + (int64_t)delay_s * INT64_C(1000000000);
    j->begin_ns = t > j->begin_ns ? t : j->begin_ns;
}

/* One dependency of a job that is made; false: it needs no edge. */
static bool make_edge(struct cw_model *m, struct cw_job *j, const Cw__Dependency *d, bool restoring,
                      struct cw_depedge *e)
{
    *e = (struct cw_depedge){
        .job = j, .pred_id = d->job_id, .kind = d->kind, .delay_s = d->delay_s};
    if (d->kind == CW__DEPENDENCY_KIND__SINGLETON) {
        const struct cw_job *before = d->satisfied ? NULL : earlier_same(m, j);
        e->pred_id = before != NULL ? before->id : 0;
        return before != NULL;
    }
    if (restoring) /* attempts are restored later than jobs */
        return !d->satisfied && !d->never;
    if (d->kind == CW__DEPENDENCY_KIND__AFTER)
        add_delay(j, began_at(m, d->job_id), d->delay_s);
    return openness(m, d) == OPEN;
}

void cw_deps_attach(struct cw_model *m, struct cw_job *j, const Cw__JobSpec *s, bool restoring)
{
    size_t n = s->n_dependencies, n_never = 0;
    if (n == 0)
        return;
    struct cw_jobdeps *deps = cw_xcalloc(1, sizeof(*deps) + n * sizeof(deps->edges[0]));
    for (size_t i = 0; i < n; i++) {
        const Cw__Dependency *d = s->dependencies[i];
        bool open = make_edge(m, j, d, restoring, &deps->edges[deps->n]);
        bool never = !open && (restoring ? d->never : openness(m, d) == NEVER);
        n_never += never;
        deps->n += open;
    }
    bool some_met = deps->n + n_never < n;
    deps->never = j->deps_any ? n_never == n : n_never > 0;
    deps->n_open = deps->n;
    if ((deps->n == 0 && !deps->never) || (j->deps_any && some_met)) {
        free(deps);
        return;
    }
    for (size_t i = 0; i < deps->n; i++)
        edge_add(m, &deps->edges[i]);
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

static const struct cw_depedge *edge_of(const struct cw_job *j, const Cw__Dependency *d)
{
    bool singleton = d->kind == CW__DEPENDENCY_KIND__SINGLETON;
    for (size_t i = 0; j->deps != NULL && i < j->deps->n; i++) {
        const struct cw_depedge *e = &j->deps->edges[i];
        if (e->kind == d->kind && (singleton || e->pred_id == d->job_id))
            return e;
    }
    return NULL;
}

bool cw_deps_open(const struct cw_job *j, const Cw__Dependency *d)
{
    const struct cw_depedge *e = edge_of(j, d);
    return e != NULL && e->set != NULL;
}

bool cw_deps_never(const struct cw_job *j, const Cw__Dependency *d)
{
    const struct cw_depedge *e = edge_of(j, d);
    return d->never || (e != NULL && e->never);
}

/* ---- news ------------------------------------------------------------------------------------ */

static void note(struct cw_model *m, uint64_t id, enum cw_depnews news, int64_t t_ns)
{
    if (cw_idtable_find(m->depsets, id) == NULL)
        return;
    if (m->n_notes == m->cap_notes) {
        m->cap_notes = m->cap_notes == 0 ? 16 : m->cap_notes * 2;
        m->notes = cw_xrealloc(m->notes, m->cap_notes, sizeof(*m->notes));
    }
    m->notes[m->n_notes++] = (struct cw_depnote){id, news, t_ns};
}

void cw_deps_note(struct cw_model *m, uint64_t id, enum cw_depnews news) { note(m, id, news, 0); }

void cw_deps_note_started(struct cw_model *m, const struct cw_attempt *a)
{
    const struct cw_job *j = a->job;
    if (cw_idtable_count(m->depsets) == 0 || j == NULL)
        return;
    if (!j->is_array || j->array->n_element_deps > 0)
        note(m, a->id, CW_DEPNEWS_STARTED, a->rec->start_ns);
    if (j->is_array && cw_idset_empty(&j->array->pending) && j->array->n_running == j->array->n_live)
        note(m, j->id, CW_DEPNEWS_STARTED, a->rec->start_ns);
}

void cw_deps_note_element(struct cw_model *m, struct cw_job *j, uint64_t ordinal, Cw__State s)
{
    if (j->is_array && j->array->n_element_deps > 0)
        cw_deps_note(m, cw_job_element_id(j, ordinal),
                     s == CW__STATE__COMPLETED ? CW_DEPNEWS_OK : CW_DEPNEWS_FAILED);
}

/* Nothing of its dependencies holds it any more. */
static void let_go(struct cw_model *m, struct cw_job *j)
{
    cw_deps_detach(m, j);
    cw_queue_place(m, j);
    cw_job_settle(j);
}

static void on_met(struct cw_model *m, struct cw_depedge *e, int64_t began_ns, int64_t now_ns)
{
    struct cw_job *j = e->job;
    uint64_t delay_s = e->kind == CW__DEPENDENCY_KIND__AFTER && began_ns != 0 ? e->delay_s : 0;
    edge_remove(m, e);
    if (delay_s > 0)
        cw_jobtimer_not_before(m, j, began_ns + (int64_t)delay_s * INT64_C(1000000000), now_ns);
    if (--j->deps->n_open == 0 || j->deps_any) {
        if (!j->deps->never || j->deps_any)
            let_go(m, j);
    }
    cw_emit_job(m, CW_EFFECT_PUT_JOB, j); /* the predecessor's row will not be looked at again */
    if (j->deps == NULL && !j->parked)
        cw_emit_cycle(m);
}

static void on_never(struct cw_model *m, struct cw_depedge *e, int64_t now_ns)
{
    struct cw_job *j = e->job;
    const char *word = kind_word(e->kind);
    unsigned long long pred = e->pred_id;
    edge_remove(m, e);
    e->never = true;
    j->deps->n_open--;
    bool hopeless = !j->deps_any || j->deps->n_open == 0;
    j->deps->never = j->deps->never || hopeless;
    if (hopeless && !j->keep_invalid) {
        cw_job_cancel_unmet(m, j, word, pred, now_ns);
        return;
    }
    cw_job_settle(j);
    cw_emit_job(m, CW_EFFECT_PUT_JOB, j);
}

/* The job that a singleton waited for has ended; there may be another one before it. */
static bool moved_on(struct cw_model *m, struct cw_depedge *e)
{
    const struct cw_job *next =
        e->kind == CW__DEPENDENCY_KIND__SINGLETON ? earlier_same(m, e->job) : NULL;
    if (next == NULL || next->id == e->pred_id)
        return false;
    edge_remove(m, e);
    e->pred_id = next->id;
    edge_add(m, e);
    return true;
}

/* Does the edge go on waiting for more of its predecessor? */
static bool waits_on(const struct cw_depedge *e, enum cw_depnews news)
{
    if (news == CW_DEPNEWS_STARTED)
        return e->kind != CW__DEPENDENCY_KIND__AFTER;
    return news == CW_DEPNEWS_FAILING && e->kind != CW__DEPENDENCY_KIND__AFTEROK;
}

/* Takes the edges of one set off one by one: ending a job may unlink other edges of the same set.
 */
static void tell(struct cw_model *m, struct cw_depset *set, const struct cw_depnote *n,
                 int64_t now_ns)
{
    struct cw_list rest;
    cw_list_init(&rest);
    while (!cw_list_empty(&set->edges)) {
        struct cw_depedge *e = cw_list_entry(set->edges.next, struct cw_depedge, on_set);
        bool ok = n->news == CW_DEPNEWS_OK || n->news == CW_DEPNEWS_STARTED;
        if (waits_on(e, n->news)) {
            cw_list_remove(&e->on_set);
            cw_list_add_tail(&rest, &e->on_set);
        } else if (n->news == CW_DEPNEWS_FAILING || !kind_met(e->kind, ok)) {
            on_never(m, e, now_ns);
        } else if (!moved_on(m, e)) {
            on_met(m, e, n->t_ns, now_ns);
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
        struct cw_depnote n = m->notes[i];
        struct cw_depset *set = cw_idtable_find(m->depsets, n.id);
        if (set == NULL)
            continue;
        m->telling = set;
        tell(m, set, &n, now_ns);
        m->telling = NULL;
        if (cw_list_empty(&set->edges)) {
            cw_idtable_remove(m->depsets, n.id);
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
