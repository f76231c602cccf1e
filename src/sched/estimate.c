/* When waiting jobs will start, by planning the queue in its order with a reservation for each. One
 * element of an array stands for it, those behind are not planned one by one. See pass.h. Test:
 * pass_test.c. */
#include "base/clock.h"
#include "sched/order.h"
#include "sched/pass.h"
#include "sched/timeline.h"

#define NS_PER_MS INT64_C(1000000)

struct plan {
    struct cw_timeline *t;
    struct cw_picks picks;
    int64_t stop_ns; /* monotonic */
    uint32_t left;
};

static bool out_of_time(const struct plan *p)
{
    return cw_clock_mono_ns() > p->stop_ns;
}

/* Reserves; false when no moment is known. */
static bool plan_one(struct plan *p, const struct cw_shape *s, int64_t len_ns, int64_t *ret_ns)
{
    if (!cw_timeline_earliest(p->t, s, len_ns, p->stop_ns, ret_ns, &p->picks))
        return false;
    cw_timeline_reserve(p->t, s, &p->picks, *ret_ns, len_ns);
    return true;
}

static void begin(struct plan *p, struct cw_model *m, const struct cw_pass_policy *policy,
                  int64_t now_ns, uint32_t budget_ms)
{
    cw_order_refresh(m, policy, now_ns);
    *p = (struct plan){
        .t = cw_timeline_create(m, now_ns),
        .stop_ns = cw_clock_mono_ns() + budget_ms * NS_PER_MS,
    };
}

static void end(struct plan *p)
{
    cw_timeline_destroy(p->t);
    cw_picks_fini(&p->picks);
}

void cw_pass_estimates(struct cw_model *m, const struct cw_pass_policy *policy, int64_t now_ns,
                       uint32_t max_jobs, uint32_t budget_ms, cw_pass_estimate_fn fn, void *arg)
{
    struct plan p;
    begin(&p, m, policy, now_ns, budget_ms);
    cw_list_each(pos, cw_model_queue(m)) {
        struct cw_job *j = cw_list_entry(pos, struct cw_job, in_queue);
        struct cw_shape s;
        int64_t start_ns;
        if (max_jobs-- == 0 || out_of_time(&p))
            break;
        if (!cw_job_eligible(j)) /* at its throttle: it waits for its own elements */
            continue;
        if (!cw_shape_of_job(m, j, &s) || !plan_one(&p, &s, cw_timeline_length(j), &start_ns))
            continue;
        if (!fn(j, start_ns, &p.picks, arg))
            break;
    }
    end(&p);
}

bool cw_pass_estimate_spec(struct cw_model *m, const struct cw_pass_policy *policy,
                           const Cw__JobSpec *spec, const struct cw_partition *part, int64_t now_ns,
                           uint32_t budget_ms, int64_t *ret_ns)
{
    struct plan p;
    struct cw_shape s;
    int64_t at;
    bool found = false;
    begin(&p, m, policy, now_ns, budget_ms);
    cw_list_each(pos, cw_model_queue(m)) {
        struct cw_job *j = cw_list_entry(pos, struct cw_job, in_queue);
        if (out_of_time(&p))
            break;
        if (cw_shape_of_job(m, j, &s))
            (void)plan_one(&p, &s, cw_timeline_length(j), &at);
    }
    struct cw_want *w = cw_want_make(spec);
    cw_shape_of_want(w, part, &s);
    uint64_t limit = spec->has_time_limit_s ? spec->time_limit_s : UINT64_MAX;
    int64_t len = limit > INT64_MAX / CW_NS_PER_S ? INT64_MAX : (int64_t)limit * CW_NS_PER_S;
    if (!out_of_time(&p))
        found = plan_one(&p, &s, len, ret_ns);
    cw_want_free(w);
    end(&p);
    return found;
}
