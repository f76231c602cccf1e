#pragma once
/* One scheduling pass over the model: which waiting elements start now and where. Pure: reads the
 * model, calls `grant` for each decision (which charges the ledger through cw_model_grant), sets
 * the reason of each job that it looked at and could not start. Work is bounded by the number of
 * jobs that can start plus the jobs that wait in front of them; with CW_SCHED_CAP_STRICT the first
 * job that does not fit ends the pass for its partition, and those behind it get reason Priority.
 * Test: pass_test.c with the case files of testsuite/sched. */
#include <crunwlm/plugin.h>

#include "model/job.h"
#include "model/node.h"
#include "sched/gangpick.h"

/* What may start behind a job that does not fit, under a strict policy. */
enum cw_backfill {
    CW_BACKFILL_NONE,        /* nothing of its partition */
    CW_BACKFILL_EASY,        /* what cannot delay the first job of each partition that waits */
    CW_BACKFILL_CONSERVATIVE /* what cannot delay the first `depth` of them */
};
struct cw_pass_policy {
    const struct cw_sched_ops *ops; /* NULL: submit order */
    void *ctx;
    uint64_t caps; /* CW_SCHED_CAP_STRICT or jobs behind one that does not fit may start */
    enum cw_backfill backfill;
    uint32_t depth; /* conservative: reservations of a partition */
};
struct cw_pass_stats {
    uint64_t looked_at, started;
};
typedef void (*cw_pass_grant_fn)(struct cw_job *j, uint64_t ordinal,
                                 const struct cw_partgrant *parts, size_t n_parts, void *arg);
/* max_starts 0: no bound. p NULL: strict, in submit order. grant is called with memory that is
 * valid during the call and must charge it (cw_model_grant). ret may be NULL. */
void cw_pass_run(struct cw_model *m, const struct cw_pass_policy *p, int64_t now_ns,
                 uint64_t max_starts, cw_pass_grant_fn grant, void *arg, struct cw_pass_stats *ret);
/* The estimated starts of the first max_jobs of the queue, planned in its order with a reservation
 * for each: fn gets the moment and the nodes; *where is valid during the call. Ends early after
 * budget_ms. What it says of a job never considers later submits. */
typedef bool (*cw_pass_estimate_fn)(struct cw_job *j, int64_t start_ns, const struct cw_picks *where,
                                    void *arg);
void cw_pass_estimates(struct cw_model *m, const struct cw_pass_policy *p, int64_t now_ns,
                       uint32_t max_jobs, uint32_t budget_ms, cw_pass_estimate_fn fn, void *arg);
/* When a job that is not in the queue (a test) would start behind all of it. False: not known. */
bool cw_pass_estimate_spec(struct cw_model *m, const struct cw_pass_policy *p,
                           const Cw__JobSpec *s, const struct cw_partition *part, int64_t now_ns,
                           uint32_t budget_ms, int64_t *ret_ns);
/* Every rule that blocks job j now, one line each, with numbers; last the place in the queue. Never
 * empty for a waiting job. */
void cw_pass_explain(struct cw_model *m, const struct cw_pass_policy *p, struct cw_job *j,
                     int64_t now_ns, struct cw_strv *ret);
/* Could this spec ever run on some node of its partition? -EINVAL with the term that fails on the
 * best node: "asked 56 cores, largest node in partition main (n3) offers 54". No node yet: 0. */
int cw_pass_feasible(struct cw_model *m, const Cw__JobSpec *s, const struct cw_partition *p,
                     struct cw_error *err);
