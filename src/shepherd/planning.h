#pragma once
/* From a TaskStart to what the plugins need and say: the task view, the plan (gpu, volume), and the
 * environment that results. -EINVAL from a plugin is the user's fault, anything else the node's.
 * Test: shepherd_test.c. */
#include "shepherd/spawn.h"
#include "shepherd/task.h"

/* Filled from t->start (or, once that is gone, with what is left: ids and key); pointers live as
 * long as the task's arena. */
struct cw_task_view cw_planning_view(const struct cw_herd *h, const struct cw_task *t);
int cw_planning_make(struct cw_herd *h, struct cw_task *t,
                     struct cw_error *err); /* t->plan, t->volumes */
void cw_planning_drop(struct cw_herd *h, struct cw_task *t);
void cw_planning_env(const struct cw_herd *h, struct cw_task *t); /* t->env */
void cw_planning_limits(const struct cw_task *t, struct cw_spawn *s);
/* The grant's processors when they are this machine's, all of them. */
bool cw_planning_cpus(const struct cw_herd *h, const struct cw_task *t, cpu_set_t *ret);
