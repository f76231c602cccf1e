/* cycle.c: runs sched/pass and turns its grants into model steps. A pass starts at most MAX_STARTS
 * elements so that a turn stays short; what is left starts in the turns behind it. */
#include "ctld/cycle.h"

#include "base/clock.h"
#include "base/mem.h"
#include "ctld/turn.h"

#define MAX_STARTS 1000u

struct cw_cycle {
    struct cw_ctld *c;
    bool wanted;
    int64_t now_ns; /* of the running pass */
    struct cw_cycle_stats stats;
};

struct cw_cycle *cw_cycle_create(struct cw_ctld *c)
{
    struct cw_cycle *y = cw_xcalloc(1, sizeof *y);
    y->c = c;
    return y;
}

void cw_cycle_destroy(struct cw_cycle *y)
{
    free(y);
}

void cw_cycle_want(struct cw_cycle *y)
{
    y->wanted = true;
}

static void on_grant(struct cw_job *j, uint64_t ordinal, const struct cw_partgrant *parts,
                     size_t n_parts, void *arg)
{
    struct cw_cycle *y = arg;
    cw_model_grant(y->c->model, j, ordinal, parts, n_parts, y->now_ns);
}

/* Whoever waits sees why. */
static void tell_paused(struct cw_ctld *c)
{
    cw_list_each(pos, cw_model_queue(c->model))
        cw_list_entry(pos, struct cw_job, in_queue)->reason = CW_REASON_PAUSED;
}

bool cw_cycle_is_due(const struct cw_cycle *y)
{
    return y->wanted && !y->c->stopping && !cw_turn_flying(y->c->turn);
}

void cw_cycle_end_of_turn(struct cw_cycle *y)
{
    if (!cw_cycle_is_due(y))
        return;
    y->wanted = false;
    if (y->c->paused) {
        tell_paused(y->c);
        return;
    }
    struct cw_pass_stats st = {0};
    y->now_ns = cw_clock_real_ns();
    int64_t began = cw_clock_mono_ns();
    cw_pass_run(y->c->model, &y->c->policy, y->now_ns, MAX_STARTS, on_grant, y, &st);
    y->stats.last_ns = cw_clock_mono_ns() - began;
    cw_latency_add(&y->stats.latency, y->stats.last_ns);
    y->stats.started += st.started;
    if (st.started >= MAX_STARTS)
        y->wanted = true; /* goes on when the commit of these is done */
}

void cw_cycle_get_stats(const struct cw_cycle *y, struct cw_cycle_stats *ret)
{
    *ret = y->stats;
}
