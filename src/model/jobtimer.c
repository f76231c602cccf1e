/* Moments at which waiting jobs have to be looked at: a binary heap over cw_job.timer_ns. A job that
 * waits for its time (--begin, the delay of a dependency, the back-off before a retry) is `early`
 * and parked until then; a job with a deadline ends at it, whatever it does. Test: jobtimer_test.c.
 */
#include "model/model.h"

#include "base/mem.h"
#include "spec/outcome.h"

#define NOT_IN UINT32_MAX

static void put(struct cw_model *m, uint32_t at, struct cw_job *j)
{
    m->timers[at] = j;
    j->timer_pos = at;
}

static void sift(struct cw_model *m, uint32_t at)
{
    struct cw_job *j = m->timers[at];
    while (at > 0 && m->timers[(at - 1) / 2]->timer_ns > j->timer_ns) {
        put(m, at, m->timers[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (uint32_t c; (c = 2 * at + 1) < m->n_timers; at = c) {
        if (c + 1 < m->n_timers && m->timers[c + 1]->timer_ns < m->timers[c]->timer_ns)
            c++;
        if (m->timers[c]->timer_ns >= j->timer_ns)
            break;
        put(m, at, m->timers[c]);
    }
    put(m, at, j);
}

static void leave(struct cw_model *m, struct cw_job *j)
{
    uint32_t at = j->timer_pos;
    if (at == NOT_IN)
        return;
    j->timer_pos = NOT_IN;
    struct cw_job *last = m->timers[--m->n_timers];
    if (last != j) {
        put(m, at, last);
        sift(m, at);
    }
}

void cw_jobtimer_leave(struct cw_model *m, struct cw_job *j) { leave(m, j); }

void cw_jobtimer_set(struct cw_model *m, struct cw_job *j)
{
    int64_t begin_ns = j->early ? j->begin_ns : INT64_MAX;
    j->timer_ns = begin_ns < j->deadline_ns ? begin_ns : j->deadline_ns;
    if (j->timer_ns == INT64_MAX) {
        leave(m, j);
        return;
    }
    if (j->timer_pos == NOT_IN) {
        if (m->n_timers == m->cap_timers) {
            m->cap_timers = m->cap_timers == 0 ? 64 : m->cap_timers * 2;
            m->timers = cw_xrealloc(m->timers, m->cap_timers, sizeof(*m->timers));
        }
        put(m, m->n_timers++, j);
    }
    sift(m, j->timer_pos);
}

void cw_jobtimer_not_before(struct cw_model *m, struct cw_job *j, int64_t begin_ns, int64_t now_ns)
{
    if (begin_ns > j->begin_ns)
        j->begin_ns = begin_ns;
    j->early = j->begin_ns > now_ns;
    cw_jobtimer_set(m, j);
    cw_queue_place(m, j);
    cw_job_settle(j);
}

static void begin(struct cw_model *m, struct cw_job *j)
{
    j->early = false;
    cw_jobtimer_set(m, j);
    cw_queue_place(m, j);
    cw_job_settle(j);
    cw_emit_cycle(m);
}

/* One job whose moment has come; it may be gone afterwards. */
static void due(struct cw_model *m, struct cw_job *j, int64_t now_ns)
{
    if (j->deadline_ns > now_ns) {
        begin(m, j);
        return;
    }
    j->deadline_ns = INT64_MAX; /* once */
    cw_jobtimer_set(m, j);
    cw_job_end_all(m, j, CW__STATE__DEADLINE, CW__CAUSE__CAUSE_DEADLINE, 0, now_ns);
}

int64_t cw_jobtimer_run(struct cw_model *m, int64_t now_ns)
{
    while (m->n_timers > 0 && m->timers[0]->timer_ns <= now_ns)
        due(m, m->timers[0], now_ns);
    return m->n_timers > 0 ? m->timers[0]->timer_ns : INT64_MAX;
}
