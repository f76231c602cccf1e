/* When attempts have to be looked at: a binary heap over cw_attempt.deadline_ns. While an attempt
 * runs that is its time limit, counted from the start of the task; before, how long a launch may
 * take; once we asked for its kill, the end of our patience (INT64_MIN after a restore: the next
 * call gives it a fresh one). Test: attempt_test.c. */
#include "model/model.h"

#include "base/mem.h"

#define NOT_IN UINT32_MAX

static void put(struct cw_model *m, uint32_t at, struct cw_attempt *a)
{
    m->heap[at] = a;
    a->heap_pos = at;
}

static void sift(struct cw_model *m, uint32_t at)
{
    struct cw_attempt *a = m->heap[at];
    while (at > 0 && m->heap[(at - 1) / 2]->deadline_ns > a->deadline_ns) {
        put(m, at, m->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (uint32_t c; (c = 2 * at + 1) < m->n_heap; at = c) {
        if (c + 1 < m->n_heap && m->heap[c + 1]->deadline_ns < m->heap[c]->deadline_ns)
            c++;
        if (m->heap[c]->deadline_ns >= a->deadline_ns)
            break;
        put(m, at, m->heap[c]);
    }
    put(m, at, a);
}

void cw_heap_set(struct cw_model *m, struct cw_attempt *a, int64_t deadline_ns)
{
    a->deadline_ns = deadline_ns;
    if (deadline_ns == INT64_MAX) {
        uint32_t at = a->heap_pos;
        if (at == NOT_IN)
            return;
        a->heap_pos = NOT_IN;
        struct cw_attempt *last = m->heap[--m->n_heap];
        if (last != a) {
            put(m, at, last);
            sift(m, at);
        }
        return;
    }
    if (a->heap_pos == NOT_IN) {
        if (m->n_heap == m->cap_heap) {
            m->cap_heap = m->cap_heap == 0 ? 64 : m->cap_heap * 2;
            m->heap = cw_xrealloc(m->heap, m->cap_heap, sizeof(*m->heap));
        }
        put(m, m->n_heap++, a);
    }
    sift(m, a->heap_pos);
}

int64_t cw_model_deadlines(struct cw_model *m, int64_t now_ns)
{
    while (m->n_heap > 0 && m->heap[0]->deadline_ns <= now_ns) {
        struct cw_attempt *a = m->heap[0];
        bool launching = a->state == CW__STATE__STARTING;
        if (a->kill_step == 0)
            cw_attempt_ask_kill(
                m, a, launching ? CW__CAUSE__CAUSE_LAUNCH_NODE : CW__CAUSE__CAUSE_TIME_LIMIT, 0,
                now_ns);
        else if (a->deadline_ns == INT64_MIN)
            cw_heap_set(m, a, cw_attempt_patience(a, now_ns));
        else
            cw_attempt_quarantine(m, a, now_ns);
    }
    int64_t drain_ns = cw_drains_run(m, now_ns); /* may put attempts into the heap */
    int64_t next_ns = cw_jobtimer_run(m, now_ns);
    next_ns = drain_ns < next_ns ? drain_ns : next_ns;
    cw_deps_drain(m, now_ns);
    int64_t attempt_ns = m->n_heap > 0 ? m->heap[0]->deadline_ns : INT64_MAX;
    return attempt_ns < next_ns ? attempt_ns : next_ns;
}
