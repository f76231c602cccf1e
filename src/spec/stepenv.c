/* The environment of a task of a step; see stepenv.h. */
#include "spec/stepenv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spec/check.h"

struct build {
    struct cw_strv *env;
    bool slurm;
};

static void set(struct cw_strv *env, const char *prefix, const char *name, size_t n,
                const char *value)
{
    cw_autofree char *key = cw_xasprintf("%s%.*s=", prefix, (int)n, name);
    char *line = cw_xasprintf("%s%s", key, value);
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], key, strlen(key)) == 0) {
            free(env->v[i]);
            env->v[i] = line;
            return;
        }
    cw_strv_add_take(env, line);
}

/* crun: name without prefix, NULL none; slurm: as many, separated by blanks. */
static void put(struct build *b, const char *crun, const char *slurm, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void put(struct build *b, const char *crun, const char *slurm, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cw_autofree char *value = cw_xvasprintf(fmt, ap);
    va_end(ap);
    if (crun != NULL)
        set(b->env, "CRUN_", crun, strlen(crun), value);
    for (const char *p = b->slurm ? slurm : NULL; p != NULL && *p != '\0';) {
        size_t n = strcspn(p, " ");
        set(b->env, "SLURM_", p, n, value);
        p += n + (p[n] == ' ');
    }
}

/* "2(x3),1" */
static void fold(const Cw__StepLayout *l, struct cw_buf *out)
{
    for (size_t i = 0, k; i < l->n_tasks_per_node; i = k) {
        for (k = i + 1; k < l->n_tasks_per_node && l->tasks_per_node[k] == l->tasks_per_node[i];)
            k++;
        cw_buf_addf(out, "%s%u", i > 0 ? "," : "", l->tasks_per_node[i]);
        if (k - i > 1)
            cw_buf_addf(out, "(x%zu)", k - i);
    }
}

static void put_nodes(struct build *b, const Cw__StepLayout *l)
{
    cw_autobuf struct cw_buf names = { 0 }, tasks = { 0 }, ranks = { 0 };
    cw_jobenv_names(l->nodes, l->n_nodes, &names);
    fold(l, &tasks);
    for (size_t i = 0; i < l->n_ranks; i++)
        cw_buf_addf(&ranks, "%s%u", i > 0 ? "," : "", l->ranks[i]);
    put(b, "NODELIST", "NODELIST STEP_NODELIST", "%s", cw_buf_str(&names));
    put(b, "NNODES", "NNODES STEP_NUM_NODES", "%zu", l->n_nodes);
    put(b, "NODEID", "NODEID", "%u", l->node);
    put(b, "NTASKS", "NTASKS NPROCS STEP_NUM_TASKS", "%u", l->ntasks);
    put(b, "TASKS_PER_NODE", "TASKS_PER_NODE STEP_TASKS_PER_NODE", "%s", cw_buf_str(&tasks));
    put(b, NULL, "GTIDS", "%s", cw_buf_str(&ranks));
}

void cw_stepenv_build(const Cw__TaskStart *job, const Cw__StepSpec *spec,
                      const Cw__StepLayout *layout, const struct cw_stepenv_task *t,
                      const struct cw_jobenv_node *n, struct cw_strv *ret)
{
    Cw__TaskStart s = *job;
    Cw__JobSpec js = *job->spec;
    Cw__Payload p = CW__PAYLOAD__INIT;
    struct build b = { .env = ret, .slurm = spec->has_slurm_env ? spec->slurm_env : job->spec->slurm_env };
    p.n_env = spec->n_env;
    p.env = spec->env;
    js.has_slurm_env = 1;
    js.slurm_env = b.slurm;
    if (spec->workdir != NULL)
        js.workdir = spec->workdir;
    s.spec = &js;
    s.payload = &p;
    s.grant = layout->grant;
    cw_jobenv_build(&s, n, ret);
    put(&b, "STEP_ID", "STEP_ID STEPID", "%u", t->step);
    if (layout->has_exec && layout->exec)
        return;
    put_nodes(&b, layout);
    put(&b, "PROCID", "PROCID", "%u", t->rank);
    put(&b, "LOCALID", "LOCALID", "%u", t->local);
    put(&b, "CPUS_PER_TASK", "CPUS_PER_TASK", "%u",
        spec->has_cpus_per_task ? spec->cpus_per_task : cw_spec_cpus_per_task(job->spec));
    if (t->cpus != NULL)
        put(&b, "CPUSET", NULL, "%s", t->cpus);
}
