#pragma once
/* What will be free where and when, as far as is known: the running attempts end at their time
 * limits (or at the estimate that their jobs gave, until that has passed), and reservations take
 * room from a moment on. Exact in cores, memory and GPUs of each node. Made for one pass, from the
 * model, node by node when first asked. Test: pass_test.c with the cases easy-*,
 * conservative. */
#include "sched/gangpick.h"
#include "sched/placement.h"

struct cw_timeline;
struct cw_timeline *cw_timeline_create(struct cw_model *m, int64_t now_ns);
void cw_timeline_destroy(struct cw_timeline *t); /* NULL allowed */

/* The least room of n from t0_ns for len_ns (INT64_MAX: for ever). */
void cw_timeline_room(struct cw_timeline *t, const struct cw_shape *s, struct cw_node *n,
                      int64_t t0_ns, int64_t len_ns, struct cw_room *ret);
/* Some reservation is on n: what is free now may not be free for long. */
bool cw_timeline_reserved(const struct cw_timeline *t, const struct cw_node *n);
/* Tells that an attempt just got part of n: its room is gone until end_ns. Called after a grant,
 * before the next question. */
void cw_timeline_forget(struct cw_timeline *t, const struct cw_node *n);
/* The first moment from now on at which the shape could start and stay for len_ns, and where. False:
 * none is known. budget_ns (monotonic end, 0: none): gives up then. Nothing is charged. */
bool cw_timeline_earliest(struct cw_timeline *t, const struct cw_shape *s, int64_t len_ns,
                          int64_t budget_ns, int64_t *ret_ns, struct cw_picks *ret);
void cw_timeline_reserve(struct cw_timeline *t, const struct cw_shape *s,
                         const struct cw_picks *picks, int64_t start_ns, int64_t len_ns);
/* When an attempt ends at the latest, as of now_ns; in the future. */
int64_t cw_timeline_end(const struct cw_attempt *a, int64_t now_ns);
/* For how long a job has to be planned for: its estimate, else its time limit; INT64_MAX. */
int64_t cw_timeline_length(const struct cw_job *j);
