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
/* Adds to env what a plan says of it. */
void cw_planning_env_lines(const struct cw_plan *plan, struct cw_strv *env);
/* What the gpu plugins say of t->start->grant, as lines of t->plan (made here). */
int cw_planning_gpus(struct cw_herd *h, struct cw_task *t, struct cw_error *err);
/* The processors of a list when they are this machine's, all of them. */
bool cw_planning_cpu_set(const struct cw_herd *h, const char *cpus, cpu_set_t *ret);
void cw_planning_limits(const struct cw_task *t, struct cw_spawn *s);
/* The grant's processors when they are this machine's, all of them. */
bool cw_planning_cpus(const struct cw_herd *h, const struct cw_task *t, cpu_set_t *ret);
