/* Recomputes what the steps keep up to date and reports every difference: the ledger of each node
 * from the grants in the attempts' records, the counters of each array from its sets and attempts,
 * who is in the queue. A difference is our bug; the owner logs it loudly. Test: model_random_test.c
 * calls it after every step. */
#include "model/model.h"

#include <string.h>

#include "base/mem.h"
#include "spec/outcome.h"

struct check {
    struct cw_model *m;
    struct cw_buf *out;
    int n;
    uint64_t n_attempts, n_queued;
};

#define DIFFERS(c, ...)                     \
    do {                                    \
        (c)->n++;                           \
        cw_buf_addf((c)->out, __VA_ARGS__); \
        cw_buf_add_str((c)->out, "\n");     \
    } while (0)

/* ---- nodes ----------------------------------------------------------------------------------- */

struct tally {
    uint64_t *cores, gpus, mem;
};

static void tally_part(struct check *c, const struct cw_node *n, const struct cw_part *p,
                       struct tally *t)
{
    const struct cw_attempt *a = p->attempt;
    const Cw__Grant *g = cw_part_grant(p);
    unsigned long long id = a->id;
    struct cw_idset set = {0};
    if (cw_idset_parse(g->cores, strlen(g->cores), UINT32_MAX, &set, NULL) < 0)
        DIFFERS(c, "attempt %llu:%u: cores \"%s\" do not parse", id, a->attempt, g->cores);
    for (uint32_t i = 0; i < n->n_cores; i++) {
        uint64_t bit = UINT64_C(1) << (i % 64);
        if (!cw_idset_has(&set, n->rec->inventory->cores[i]->logical))
            continue;
        if (t->cores[i / 64] & bit)
            DIFFERS(c, "node %s: core %u is charged twice, also to %llu:%u", n->name,
                    n->rec->inventory->cores[i]->logical, id, a->attempt);
        t->cores[i / 64] |= bit;
    }
    cw_idset_fini(&set);
    if (t->gpus & p->gpus)
        DIFFERS(c, "node %s: a GPU is charged twice, also to %llu:%u", n->name, id, a->attempt);
    t->gpus |= p->gpus;
    t->mem += g->mem_bytes;
    if (a->rec->ledger_freed || p->phase == CW_PART_FREED)
        DIFFERS(c, "attempt %llu:%u is freed but still charged to %s", id, a->attempt, n->name);
    if (p->node != n || strcmp(g->node, n->name) != 0)
        DIFFERS(c, "attempt %llu:%u: %s is charged for %s", id, a->attempt, n->name, g->node);
}

/* Counts it once, at the first of its charged parts. */
static void check_attempt(struct check *c, const struct cw_part *at)
{
    const struct cw_attempt *a = at->attempt;
    unsigned long long id = a->id;
    uint32_t n_ended = 0;
    for (uint32_t k = 0; k < a->n_parts; k++) {
        const struct cw_part *p = &a->parts[k];
        if (p < at && p->phase != CW_PART_FREED)
            return;
        n_ended += p->phase >= CW_PART_ENDED;
        if ((p->phase == CW_PART_FREED) != (p->on_node.next == NULL))
            DIFFERS(c, "attempt %llu:%u: part %u is not charged as it should be", id, a->attempt,
                    k);
    }
    bool ended = cw_state_terminal(a->state);
    if (ended != (n_ended == a->n_parts))
        DIFFERS(c, "attempt %llu:%u is %s with %u of %u parts ended", id, a->attempt,
                cw_state_name(a->state), n_ended, a->n_parts);
    if (n_ended > 0 && !a->rec->has_cause && a->kill_step == 0)
        DIFFERS(c, "attempt %llu:%u ends without a cause", id, a->attempt);
    if (a->ghost.next == NULL && cw_idtable_find(c->m->attempts, a->id) != a)
        DIFFERS(c, "attempt %llu:%u is charged but unknown", id, a->attempt);
    c->n_attempts++;
}

static void check_node(struct check *c, const struct cw_node *n)
{
    struct tally t = {.cores = cw_xcalloc(n->words + 1, sizeof(uint64_t))};
    cw_list_each(pos, &n->parts) {
        const struct cw_part *p = cw_list_entry(pos, struct cw_part, on_node);
        tally_part(c, n, p, &t);
        check_attempt(c, p);
    }
    uint32_t n_free = 0;
    for (uint32_t i = 0; i < n->n_cores; i++) {
        bool is_free = (n->core_free[i / 64] >> (i % 64)) & 1;
        n_free += is_free;
        if (is_free == ((t.cores[i / 64] >> (i % 64)) & 1))
            DIFFERS(c, "node %s: core %u is %s in the ledger, the rows say otherwise", n->name, i,
                    is_free ? "free" : "taken");
    }
    if (n_free != n->n_free)
        DIFFERS(c, "node %s: %u cores are free, the count says %u", n->name, n_free, n->n_free);
    if (t.mem != n->mem_used)
        DIFFERS(c, "node %s: memory in use %llu, the rows say %llu", n->name,
                (unsigned long long)n->mem_used, (unsigned long long)t.mem);
    if ((n->gpu_free & t.gpus) != 0)
        DIFFERS(c, "node %s: a charged GPU is free", n->name);
    free(t.cores);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void check_array(struct check *c, const struct cw_job *j)
{
    const struct cw_jobarray *a = j->array;
    uint64_t live = 0, running = 0, back = 0;
    cw_list_each(pos, &j->attempts) {
        const struct cw_attempt *t = cw_list_entry(pos, struct cw_attempt, on_job);
        live += !cw_state_terminal(t->state);
        running += t->state == CW__STATE__RUNNING;
        back += t->requeue;
    }
    uint64_t sum =
        cw_idset_count(&a->pending) + live + back + a->n_completed + a->n_failed + a->n_cancelled;
    if (live != a->n_live || running != a->n_running || back != a->n_held_back)
        DIFFERS(c, "job %llu: live/running/held back %llu/%llu/%llu, counted %llu/%llu/%llu",
                (unsigned long long)j->id, (unsigned long long)a->n_live,
                (unsigned long long)a->n_running, (unsigned long long)a->n_held_back,
                (unsigned long long)live, (unsigned long long)running, (unsigned long long)back);
    if (sum != j->count)
        DIFFERS(c, "job %llu: %llu of %llu elements are accounted for", (unsigned long long)j->id,
                (unsigned long long)sum, (unsigned long long)j->count);
}

static bool check_job(struct cw_job *j, void *arg)
{
    struct check *c = arg;
    uint64_t ordinal;
    bool waits = cw_job_next(j, &ordinal);
    if (waits != (j->in_queue.next != NULL))
        DIFFERS(c, "job %llu %s but is %s a queue", (unsigned long long)j->id,
                waits ? "waits" : "does not wait", waits ? "not in" : "in");
    if (waits && j->parked != (j->held || j->deps != NULL || j->early || j->partition == UINT16_MAX))
        DIFFERS(c, "job %llu is in the wrong queue", (unsigned long long)j->id);
    if (waits && cw_job_reason(j) == CW_REASON_NONE)
        DIFFERS(c, "job %llu waits without a reason", (unsigned long long)j->id);
    if (cw_state_terminal(j->state))
        DIFFERS(c, "job %llu is terminal but still here", (unsigned long long)j->id);
    c->n_queued += j->in_queue.next != NULL;
    if (j->is_array)
        check_array(c, j);
    return true;
}

static uint64_t list_length(const struct cw_list *l)
{
    uint64_t n = 0;
    cw_list_each(pos, l)
        n++;
    return n;
}

int cw_model_selfcheck(struct cw_model *m, struct cw_buf *ret)
{
    struct check c = {.m = m, .out = ret};
    for (uint32_t i = 0; i < m->n_nodes; i++)
        check_node(&c, m->nodes[i]);
    cw_model_each_job(m, check_job, &c);
    uint64_t known = cw_idtable_count(m->attempts) + list_length(&m->ghosts);
    if (c.n_attempts != known)
        DIFFERS(&c, "%llu attempts are charged, %llu are known", (unsigned long long)c.n_attempts,
                (unsigned long long)known);
    uint64_t listed = list_length(&m->queue) + list_length(&m->parked);
    if (listed != c.n_queued)
        DIFFERS(&c, "%llu jobs wait, %llu are in the queues", (unsigned long long)c.n_queued,
                (unsigned long long)listed);
    return c.n;
}
