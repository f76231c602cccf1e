/* reconcile.c: the node's word against ours. Rules, per part of an attempt of ours on that node:
 *   granted here, unknown there     it never arrived: start again (or end it, when it was to be
 *                                   killed); a head whose turn has not come waits
 *   started here, unknown there     lost; its processes are gone with it, the ledger is free
 *   ended here, unknown there       what was left over is gone: the ledger is free
 *   ended here, alive there         fenced: kill
 * and alive there, unknown here: kill. What has ended there comes as an END record of its own.
 * Test: reconcile_test.c. */
#include "ctld/reconcile.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "ctld/stepbook.h"
#include "proto/walk.h"
#include "spec/outcome.h"

static unsigned long long u(uint64_t v)
{
    return (unsigned long long)v;
}

static void on_inventory(struct cw_ctld *c, struct cw_node *n, Cw__Inventory *inv)
{
    Cw__NodeRecord rec = *n->rec;
    rec.inventory = inv;
    cw_model_node_set(c->model, &rec, true, cw_clock_real_ns());
}

static void on_ended(struct cw_ctld *c, struct cw_node *n, const Cw__TaskEnd *e, int64_t now)
{
    int rc = cw_model_ended(c->model, n, e, now, c->conf->max_requeues);
    if (rc < 0)
        cw_log_debug("node %s: end of %llu attempt %u ignored: %s", n->name, u(e->key->id),
                     e->key->attempt, strerror(-rc));
    else if (!e->empty)
        cw_log_warn("node %s: job %llu attempt %u left processes behind, its CPUs stay held: %s",
                    n->name, u(e->key->id), e->key->attempt,
                    e->leftover != NULL ? e->leftover : "?");
}

int cw_reconcile_record(struct cw_ctld *c, struct cw_node *n, const Cw__NodeRecordMsg *m,
                        const Cw__TaskKey **ret_key)
{
    int64_t now = cw_clock_real_ns();
    if (m->started != NULL && m->started->key != NULL) {
        if (cw_model_started(c->model, n, m->started, now) < 0) {
            *ret_key = m->started->key;
            return -ESTALE;
        }
    }
    if (m->end != NULL && m->end->key != NULL)
        on_ended(c, n, m->end, now);
    if (m->emptied != NULL && m->emptied->key != NULL)
        cw_model_emptied(c->model, n, m->emptied->key->id, m->emptied->key->attempt, now);
    if (m->inventory != NULL)
        on_inventory(c, n, m->inventory);
    if (m->step != NULL)
        cw_stepbook_report(c->stepbook, n, m->step);
    return 0;
}

/* ---- HELLO ---------------------------------------------------------------------------------- */

struct theirs {
    uint64_t id;
    uint32_t attempt;
    bool alive, known;
};

static int theirs_cmp(const void *a, const void *b)
{
    const struct theirs *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->attempt == y->attempt ? 0 : x->attempt < y->attempt ? -1 : 1;
}

static void welcome_kill(Cw__NodeWelcome *w, struct cw_arena *a, const struct theirs *t)
{
    Cw__TaskKey *key = cw_arena_alloc(a, sizeof *key);
    cw__task_key__init(key);
    key->id = t->id;
    key->attempt = t->attempt;
    w->kill[w->n_kill++] = key;
}

static void end_unstarted(struct cw_ctld *c, const struct cw_part *p, Cw__Cause cause,
                          const char *why, int64_t now)
{
    Cw__TaskEnd e = CW__TASK_END__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    key.id = p->attempt->id;
    key.attempt = p->attempt->attempt;
    e.key = &key;
    e.cause = cause;
    e.end_ns = now;
    e.empty = true;
    e.message = (char *)why;
    cw_model_ended(c->model, p->node, &e, now, c->conf->max_requeues);
}

void cw_reconcile_unstartable(struct cw_ctld *c, const struct cw_part *p, const char *why)
{
    end_unstarted(c, p, CW__CAUSE__CAUSE_LAUNCH_USER, why, cw_clock_real_ns());
}

/* The node does not know it. */
static void absent(struct cw_ctld *c, struct cw_node *n, struct cw_part *p,
                   cw_reconcile_again_fn again, void *arg, int64_t now)
{
    const struct cw_attempt *a = p->attempt;
    if (p->phase >= CW_PART_ENDED) {
        cw_model_emptied(c->model, n, a->id, a->attempt, now);
    } else if (cw_part_startable(p)) {
        again(p, arg);
    } else if (p->phase == CW_PART_GRANTED && a->kill_step != 0) {
        end_unstarted(c, p, a->rec->has_kill_cause ? a->rec->kill_cause : CW__CAUSE__CAUSE_PEER,
                      NULL, now);
    } else if (p->phase == CW_PART_STARTED) {
        cw_log_warn("node %s: came back without job %llu attempt %u: lost", n->name, u(a->id),
                    a->attempt);
        cw_model_lost(c->model, p, "the node came back without it", true, now,
                      c->conf->max_requeues);
    }
}

void cw_reconcile_hello(struct cw_ctld *c, struct cw_node *n, const Cw__NodeHello *m,
                        struct cw_arena *arena, Cw__NodeWelcome *w, cw_reconcile_again_fn again,
                        void *arg)
{
    int64_t now = cw_clock_real_ns();
    struct theirs *v = cw_arena_alloc(arena, (m->n_tasks + 1) * sizeof *v);
    for (size_t i = 0; i < m->n_tasks; i++)
        v[i] = (struct theirs){m->tasks[i]->key->id, m->tasks[i]->key->attempt,
                               !cw_state_terminal(m->tasks[i]->state), false};
    qsort(v, m->n_tasks, sizeof *v, theirs_cmp);
    w->kill = cw_arena_alloc(arena, (m->n_tasks + 1) * sizeof *w->kill);

    cw_list_each_safe (at, &n->parts) {
        struct cw_part *p = cw_list_entry(at, struct cw_part, on_node);
        const struct cw_attempt *a = p->attempt;
        struct theirs want = {a->id, a->attempt, false, false};
        struct theirs *t = bsearch(&want, v, m->n_tasks, sizeof *v, theirs_cmp);
        if (t == NULL) {
            absent(c, n, p, again, arg, now);
            continue;
        }
        t->known = true;
        if (t->alive && p->phase >= CW_PART_ENDED)
            welcome_kill(w, arena, t);
        else if (t->alive && a->kill_step != 0)
            again(p, arg);
    }
    for (size_t i = 0; i < m->n_tasks; i++)
        if (!v[i].known && v[i].alive) {
            cw_log_warn("node %s: runs job %llu attempt %u, which is not known here or was given "
                        "up: killed",
                        n->name, u(v[i].id), v[i].attempt);
            welcome_kill(w, arena, &v[i]);
        }
}

bool cw_reconcile_node_changed(const Cw__NodeRecord *old, const Cw__NodeRecord *now)
{
    if (old->inventory == NULL || now->inventory == NULL ||
        !cw_walk_equal(&old->inventory->base, &now->inventory->base))
        return true;
    if ((old->address == NULL) != (now->address == NULL) ||
        (now->address != NULL && strcmp(old->address, now->address) != 0))
        return true;
    return old->public_key.len != now->public_key.len ||
           (now->public_key.len > 0 &&
            memcmp(old->public_key.data, now->public_key.data, now->public_key.len) != 0);
}
