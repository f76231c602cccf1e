/* steplayout.c: tasks onto nodes. Candidates are the job's nodes that the step may use; `room` is
 * how many of its tasks fit on what nobody keeps, `most` how many on all that the job has there.
 * Test: steplayout_test.c. */
#include "ctld/steplayout.h"

#include <stdio.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/quantity.h"
#include "spec/check.h"

struct candidate {
    uint32_t job_node, planned, room, most, tasks;
    struct cw_idset cores, gpus, free_cores, free_gpus;
    uint32_t gpus_taken;
    bool chosen;
};
struct making {
    const struct cw_stepask *ask;
    struct cw_arena *arena;
    struct candidate *v;
    uint32_t n;     /* candidates */
    uint32_t cpt;   /* cores of a task */
    uint32_t tasks; /* wanted */
    uint32_t nodes; /* wanted */
    bool exact, exec;
};

const Cw__Grant *cw_steplayout_grant(const Cw__AttemptRecord *rec, uint32_t k)
{
    return k == 0 ? rec->grant : rec->more_grants[k - 1];
}

static const char *s_of(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- candidates ----------------------------------------------------------------------------- */

static void subtract(struct cw_idset *from, const struct cw_idset *what)
{
    for (size_t i = 0; i < what->n; i++)
        cw_idset_remove(from, what->r[i].first, what->r[i].last);
}

static uint32_t tasks_of(const struct making *m, const struct cw_idset *cores)
{
    uint64_t n = cw_idset_count(cores) / m->cpt;
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static int fill_candidate(struct making *m, uint32_t k, struct candidate *c, struct cw_error *err)
{
    const Cw__Grant *g = cw_steplayout_grant(m->ask->rec, k);
    c->job_node = k;
    c->planned = g->has_ntasks ? g->ntasks : 1;
    int rc = cw_idset_parse(g->cores, strlen(g->cores), UINT32_MAX, &c->cores, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < g->n_gpus; i++)
        cw_idset_add(&c->gpus, g->gpus[i]->index, g->gpus[i]->index);
    cw_idset_copy(&c->free_cores, &c->cores);
    cw_idset_copy(&c->free_gpus, &c->gpus);
    if (m->exact && m->ask->held_cores != NULL && k < m->ask->n_held) {
        subtract(&c->free_cores, &m->ask->held_cores[k]);
        subtract(&c->free_gpus, &m->ask->held_gpus[k]);
    }
    c->most = m->exec ? 1 : tasks_of(m, &c->cores);
    c->room = m->exec ? 1 : tasks_of(m, &c->free_cores);
    return 0;
}

static uint32_t n_job_nodes(const struct making *m)
{
    return (uint32_t)m->ask->rec->n_more_grants + 1;
}

static int add_named(struct making *m, const char *name, struct cw_error *err)
{
    for (uint32_t k = 0; k < n_job_nodes(m); k++) {
        if (strcmp(cw_steplayout_grant(m->ask->rec, k)->node, name) != 0)
            continue;
        for (uint32_t i = 0; i < m->n; i++)
            if (m->v[i].job_node == k)
                return 0;
        return fill_candidate(m, k, &m->v[m->n++], err);
    }
    return cw_fail(err, -EINVAL, "node %s is none of job %s", name, m->ask->id);
}

static int collect(struct making *m, struct cw_error *err)
{
    cw_autostrv struct cw_strv names = {0};
    int rc = 0;
    m->v = cw_arena_alloc(m->arena, n_job_nodes(m) * sizeof *m->v);
    if (m->ask->spec->nodelist == NULL) {
        uint32_t n = m->exec ? 1 : n_job_nodes(m);
        for (uint32_t k = 0; rc == 0 && k < n; k++)
            rc = fill_candidate(m, k, &m->v[m->n++], err);
        return rc;
    }
    rc = cw_hostlist_parse(m->ask->spec->nodelist, &names, err);
    if (rc < 0)
        return cw_wrap(err, rc, "node list");
    for (size_t i = 0; rc == 0 && i < names.n; i++)
        rc = add_named(m, names.v[i], err);
    return rc;
}

static void candidates_fini(struct making *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        cw_idset_fini(&m->v[i].cores);
        cw_idset_fini(&m->v[i].gpus);
        cw_idset_fini(&m->v[i].free_cores);
        cw_idset_fini(&m->v[i].free_gpus);
    }
}

/* ---- how many ------------------------------------------------------------------------------- */

static int want(struct making *m, struct cw_error *err)
{
    const Cw__StepSpec *s = m->ask->spec;
    uint32_t nodes = s->has_nodes && s->nodes > 0 ? s->nodes : m->n;
    uint64_t planned = 0;
    if (nodes > m->n)
        return cw_fail(err, -EINVAL, "job %s has %u node%s%s, the step asks for %u", m->ask->id,
                       m->n, s_of(m->n), s->nodelist != NULL ? " of these" : "", nodes);
    for (uint32_t i = 0; i < nodes; i++)
        planned += m->v[i].planned;
    if (m->exec)
        planned = 1;
    if (s->has_ntasks && s->ntasks > 0 && !m->exec)
        planned = s->ntasks;
    if (planned > CW_CHECK_MAX_CORES)
        return cw_fail(err, -EINVAL, "%llu tasks are more than a step may have (%u)",
                       (unsigned long long)planned, CW_CHECK_MAX_CORES);
    if (s->has_stdin_task && s->stdin_task >= 0 && (uint64_t)s->stdin_task >= planned)
        return cw_fail(err, -EINVAL, "input for task %d: the step has tasks 0 to %llu",
                       s->stdin_task, (unsigned long long)planned - 1);
    m->tasks = (uint32_t)planned;
    m->nodes = nodes < m->tasks ? nodes : m->tasks;
    return 0;
}

static int by_room(const void *a, const void *b)
{
    const struct candidate *x = *(struct candidate *const *)a, *y = *(struct candidate *const *)b;
    if (x->room != y->room)
        return x->room > y->room ? -1 : 1;
    return x->job_node < y->job_node ? -1 : 1;
}

static int by_most(const void *a, const void *b)
{
    const struct candidate *x = *(struct candidate *const *)a, *y = *(struct candidate *const *)b;
    return x->most > y->most ? -1 : x->most < y->most;
}

/* Tasks that could run on so many nodes if no step kept anything. */
static uint64_t most_tasks(const struct making *m)
{
    struct candidate **order = cw_arena_alloc(m->arena, m->n * sizeof(struct candidate *));
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->n; i++)
        order[i] = &m->v[i];
    qsort(order, m->n, sizeof(struct candidate *), by_most);
    for (uint32_t i = 0; i < m->nodes; i++)
        sum += order[i]->most;
    return sum;
}

static int too_few_cores(const struct making *m, struct cw_error *err)
{
    uint64_t cores = 0;
    for (uint32_t i = 0; i < m->n; i++)
        cores += cw_idset_count(&m->v[i].cores);
    if (m->exact && most_tasks(m) >= m->tasks)
        return cw_fail(err, -EBUSY, "%u task%s of %u core%s: other steps have the cores", m->tasks,
                       s_of(m->tasks), m->cpt, s_of(m->cpt));
    return cw_fail(err, -EINVAL,
                   "job %s holds %llu core%s on %u node%s: %u task%s of %u core%s do not fit",
                   m->ask->id, (unsigned long long)cores, s_of(cores), m->n, s_of(m->n), m->tasks,
                   s_of(m->tasks), m->cpt, s_of(m->cpt));
}

static int choose(struct making *m, struct cw_error *err)
{
    struct candidate **order = cw_arena_alloc(m->arena, m->n * sizeof(struct candidate *));
    uint64_t room = 0;
    for (uint32_t i = 0; i < m->n; i++)
        order[i] = &m->v[i];
    if (m->nodes < m->n)
        qsort(order, m->n, sizeof(struct candidate *), by_room);
    for (uint32_t i = 0; i < m->nodes; i++) {
        order[i]->chosen = order[i]->room > 0;
        room += order[i]->room;
    }
    bool all = true; /* nodes that were asked for by number or name */
    for (uint32_t i = 0; i < m->nodes; i++)
        all = all && order[i]->chosen;
    bool named = m->ask->spec->has_nodes || m->ask->spec->nodelist != NULL;
    return room < m->tasks || (named && !all) ? too_few_cores(m, err) : 0;
}

/* ---- tasks and ranks ------------------------------------------------------------------------ */

static bool as_planned(struct making *m)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->v[i].chosen && m->v[i].planned > m->v[i].room)
            return false;
        sum += m->v[i].chosen ? m->v[i].planned : 0;
    }
    return sum == m->tasks;
}

static void count_tasks(struct making *m)
{
    uint32_t left = m->tasks;
    bool planned = as_planned(m);
    for (uint32_t i = 0; planned && i < m->n; i++)
        m->v[i].tasks = m->v[i].chosen ? m->v[i].planned : 0;
    while (!planned && left > 0)
        for (uint32_t i = 0; i < m->n && left > 0; i++)
            if (m->v[i].chosen && m->v[i].tasks < m->v[i].room) {
                m->v[i].tasks++;
                left--;
            }
}

static bool is_cyclic(const struct making *m)
{
    const char *d = m->ask->spec->distribution;
    if (d == NULL)
        d = m->ask->job->distribution;
    return d != NULL && strncmp(d, "cyclic", 6) == 0;
}

static void number_tasks(const struct making *m, struct cw_steplayout *l)
{
    uint32_t next = 0;
    for (uint32_t i = 0; !is_cyclic(m) && i < l->n_nodes; i++)
        for (uint32_t k = 0; k < l->nodes[i].n_ranks; k++)
            l->nodes[i].ranks[k] = next++;
    for (uint32_t round = 0; next < l->ntasks; round++)
        for (uint32_t i = 0; i < l->n_nodes; i++)
            if (round < l->nodes[i].n_ranks)
                l->nodes[i].ranks[round] = next++;
}

/* ---- cores and GPUs ------------------------------------------------------------------------- */

static char *text_of(struct cw_arena *a, const struct cw_idset *s)
{
    cw_autobuf struct cw_buf b = {0};
    cw_idset_format(s, &b);
    return cw_arena_strdup(a, cw_buf_str(&b));
}

static char *first_of(struct cw_arena *a, const struct cw_idset *s, uint64_t n)
{
    struct cw_idset some = {0};
    uint64_t id;
    for (uint64_t k = 0; k < n && cw_idset_nth(s, k, &id); k++)
        cw_idset_add(&some, id, id);
    char *text = text_of(a, &some);
    cw_idset_fini(&some);
    return text;
}

static int too_few_gpus(const struct making *m, uint32_t asked, struct cw_error *err)
{
    uint64_t sum = 0, highest = 0, nodes = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        uint64_t n = cw_idset_count(&m->v[i].gpus);
        highest = n > highest ? n : highest;
        if (m->v[i].tasks > 0) {
            sum += n;
            nodes++;
        }
    }
    if (sum >= asked)
        return cw_fail(err, -EBUSY, "%u GPU%s: other steps have them", asked, s_of(asked));
    return cw_fail(err, -EINVAL,
                   "allocation has %llu GPU%s per node, the step asks for %u on %llu node%s",
                   (unsigned long long)highest, s_of(highest), asked, (unsigned long long)nodes,
                   s_of(nodes));
}

/* One each, then a second one each, while there are some. */
static int count_gpus(struct making *m, struct cw_error *err)
{
    uint32_t asked = m->ask->spec->gpus, left = asked;
    for (bool any = true; left > 0;) {
        any = false;
        for (uint32_t i = 0; i < m->n && left > 0; i++) {
            struct candidate *c = &m->v[i];
            if (c->tasks == 0 || c->gpus_taken >= cw_idset_count(&c->free_gpus))
                continue;
            c->gpus_taken++;
            left--;
            any = true;
        }
        if (!any)
            return too_few_gpus(m, asked, err);
    }
    return 0;
}

static int check_mem(const struct making *m, struct cw_error *err)
{
    const Cw__StepSpec *s = m->ask->spec;
    char has[32], wants[32];
    for (uint32_t i = 0; s->has_mem_bytes && i < m->n; i++) {
        const Cw__Grant *g = cw_steplayout_grant(m->ask->rec, m->v[i].job_node);
        if (m->v[i].tasks > 0 && g->mem_bytes < s->mem_bytes)
            return cw_fail(err, -EINVAL, "allocation has %s of memory on node %s, the step asks "
                                         "for %s",
                           cw_size_format(g->mem_bytes, has, sizeof has), g->node,
                           cw_size_format(s->mem_bytes, wants, sizeof wants));
    }
    return 0;
}

static void put_node(const struct making *m, const struct candidate *c, struct cw_stepnode *n)
{
    bool some_gpus = m->ask->spec->has_gpus;
    n->job_node = c->job_node;
    n->n_ranks = c->tasks;
    n->ranks = cw_arena_alloc(m->arena, c->tasks * sizeof *n->ranks);
    n->cores = m->exact ? first_of(m->arena, &c->free_cores, (uint64_t)c->tasks * m->cpt)
                        : text_of(m->arena, &c->cores);
    n->gpus = some_gpus ? first_of(m->arena, &c->free_gpus, c->gpus_taken)
                        : text_of(m->arena, &c->gpus);
}

static void put_layout(const struct making *m, struct cw_steplayout *l)
{
    l->ntasks = m->tasks;
    l->n_nodes = 0;
    l->nodes = cw_arena_alloc(m->arena, m->n * sizeof *l->nodes);
    for (uint32_t i = 0; i < m->n; i++)
        if (m->v[i].tasks > 0)
            put_node(m, &m->v[i], &l->nodes[l->n_nodes++]);
    number_tasks(m, l);
}

static int by_job_node(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->job_node < y->job_node ? -1 : x->job_node > y->job_node;
}

static int make(struct making *m, struct cw_steplayout *ret, struct cw_error *err)
{
    int rc = collect(m, err);
    if (rc < 0)
        return rc;
    qsort(m->v, m->n, sizeof *m->v, by_job_node);
    rc = want(m, err);
    if (rc == 0)
        rc = choose(m, err);
    if (rc < 0)
        return rc;
    count_tasks(m);
    rc = m->ask->spec->has_gpus ? count_gpus(m, err) : 0;
    if (rc == 0)
        rc = check_mem(m, err);
    if (rc == 0)
        put_layout(m, ret);
    return rc;
}

int cw_steplayout_make(const struct cw_stepask *ask, struct cw_arena *a,
                       struct cw_steplayout *ret, struct cw_error *err)
{
    const Cw__StepSpec *s = ask->spec;
    struct making m = {.ask = ask, .arena = a};
    m.exec = s->has_exec && s->exec;
    m.exact = s->has_exact && s->exact && !m.exec;
    m.cpt = s->has_cpus_per_task ? s->cpus_per_task : cw_spec_cpus_per_task(ask->job);
    if (m.cpt == 0)
        return cw_fail(err, -EINVAL, "a task needs at least one core");
    int rc = make(&m, ret, err);
    candidates_fini(&m);
    return rc;
}
