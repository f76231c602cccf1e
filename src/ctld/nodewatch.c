/* nodewatch.c: declares nodes lost. Their attempts end (or wait for another try), but what they
 * hold stays charged: the processes may live. The ledger is freed when the node returns and says
 * what it has. */
#include "ctld/nodewatch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ctld/nodelink.h"
#include "model/node.h"
#include "spec/outcome.h"

#define LOOK_MS 1000u

struct cw_nodewatch {
    struct cw_ctld *c;
    struct cw_loop_timer *timer;
    int64_t start_mono_ns;
};

static void give_up(struct cw_ctld *c, struct cw_node *n, int64_t now_ns)
{
    n->lost = true;
    cw_nodelink_drop(c, n); /* when it returns, it has to say what it still runs */
    size_t lost = 0;
    cw_list_each_safe (at, &n->parts) {
        struct cw_part *p = cw_list_entry(at, struct cw_part, on_node);
        lost += p->phase < CW_PART_ENDED;
        cw_model_lost(c->model, p, "its node was silent for too long", false, now_ns,
                      c->conf->max_requeues);
    }
    if (lost > 0)
        cw_log_error("node %s: lost, silent for more than %u s; %zu attempts given up", n->name,
                     c->conf->node_lost_s, lost);
}

static void on_timer(void *arg)
{
    struct cw_nodewatch *w = arg;
    struct cw_ctld *c = w->c;
    int64_t patience_ns = (int64_t)c->conf->node_lost_s * CW_NS_PER_S, now = cw_clock_real_ns();
    if (cw_clock_mono_ns() - w->start_mono_ns < patience_ns)
        return;
    for (uint32_t i = 0; i < cw_model_n_nodes(c->model); i++) {
        struct cw_node *n = cw_model_node_at(c->model, i);
        if (!n->up && !n->lost && now - n->last_seen_ns > patience_ns)
            give_up(c, n, now);
    }
}

struct cw_nodewatch *cw_nodewatch_create(struct cw_ctld *c)
{
    struct cw_nodewatch *w = cw_xcalloc(1, sizeof *w);
    w->c = c;
    w->start_mono_ns = cw_clock_mono_ns();
    w->timer = cw_loop_timer_open(c->loop, on_timer, w);
    cw_loop_timer_start(w->timer, LOOK_MS, LOOK_MS);
    return w;
}

void cw_nodewatch_destroy(struct cw_nodewatch *w)
{
    if (w == NULL)
        return;
    cw_loop_timer_close(w->timer);
    free(w);
}
