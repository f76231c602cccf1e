/* deadline.c: wakes up when the nearest deadline passes. Deadlines are real times, so the timer
 * never sleeps longer than LOOK_AGAIN_MS: a clock that was set does not make it oversleep. */
#include "ctld/deadline.h"

#include "base/clock.h"
#include "base/mem.h"
#include "ctld/lease.h"
#include "ctld/stepbook.h"

#define LOOK_AGAIN_MS 30000

struct cw_deadline {
    struct cw_ctld *c;
    struct cw_loop_timer *timer;
    int64_t next_ns; /* INT64_MAX: timer is off */
};

static void timer_set(struct cw_deadline *d, int64_t next_ns)
{
    d->next_ns = next_ns;
    if (next_ns == INT64_MAX) {
        cw_loop_timer_stop(d->timer);
        return;
    }
    int64_t now = cw_clock_real_ns();
    int64_t ms = next_ns <= now ? 0 : (next_ns - now) / CW_NS_PER_MS + 1;
    cw_loop_timer_start(d->timer, (uint64_t)(ms > LOOK_AGAIN_MS ? LOOK_AGAIN_MS : ms), 0);
}

static void on_timer(void *arg)
{
    cw_deadline_run(arg);
}

struct cw_deadline *cw_deadline_create(struct cw_ctld *c)
{
    struct cw_deadline *d = cw_xcalloc(1, sizeof *d);
    d->c = c;
    d->next_ns = INT64_MAX;
    d->timer = cw_loop_timer_open(c->loop, on_timer, d);
    return d;
}

void cw_deadline_destroy(struct cw_deadline *d)
{
    if (d == NULL)
        return;
    cw_loop_timer_close(d->timer);
    free(d);
}

void cw_deadline_touch(struct cw_deadline *d, int64_t deadline_ns)
{
    if (deadline_ns < d->next_ns)
        timer_set(d, deadline_ns);
}

void cw_deadline_run(struct cw_deadline *d)
{
    int64_t now = cw_clock_real_ns();
    int64_t leases = cw_leases_due(d->c->leases, now);
    int64_t steps = cw_stepbook_due(d->c->stepbook, now);
    int64_t next = cw_model_deadlines(d->c->model, now); /* last: the others step the model */
    next = leases < next ? leases : next;
    timer_set(d, steps < next ? steps : next);
}
