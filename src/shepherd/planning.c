/* Views, plans and environments of tasks; see planning.h. */
#include "shepherd/planning.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/idset.h"
#include "spec/jobenv.h"

bool cw_planning_cpus(const struct cw_herd *h, const struct cw_task *t, cpu_set_t *ret)
{
    return cw_planning_cpu_set(h, t->start->grant->cpus, ret);
}

bool cw_planning_cpu_set(const struct cw_herd *h, const char *text, cpu_set_t *ret)
{
    struct cw_idset set = { 0 };
    cpu_set_t have, both;
    if (h->unbound || text == NULL || *text == '\0' ||
        cw_idset_parse(text, strlen(text), CPU_SETSIZE - 1, &set, NULL) < 0)
        return false;
    CPU_ZERO(ret);
    for (size_t i = 0; i < set.n; i++)
        for (uint64_t c = set.r[i].first; c <= set.r[i].last; c++)
            CPU_SET(c, ret);
    cw_idset_fini(&set);
    if (sched_getaffinity(0, sizeof have, &have) < 0)
        return false;
    CPU_AND(&both, ret, &have);
    return CPU_COUNT(ret) > 0 && CPU_EQUAL(&both, ret);
}

struct cw_task_view cw_planning_view(const struct cw_herd *h, const struct cw_task *t)
{
    struct cw_task_view v = { .size = sizeof v,
                              .id = t->id,
                              .job_id = t->id,
                              .attempt = t->attempt,
                              .uid = t->uid,
                              .gid = t->gid,
                              .mem_bytes = t->mem_bytes,
                              .key = t->key };
    const Cw__TaskStart *s = t->start;
    if (s == NULL)
        return v;
    cpu_set_t cpus;
    v.job_id = s->job_id;
    v.user = t->as->name;
    v.name = s->spec->name;
    v.partition = s->partition;
    v.workdir = s->spec->workdir;
    v.cpus = cw_planning_cpus(h, t, &cpus) ? s->grant->cpus : NULL;
    v.n_gpus = (uint32_t)s->grant->n_gpus;
    uint32_t *gpus = cw_arena_alloc(t->arena, (s->grant->n_gpus + 1) * sizeof *gpus);
    for (size_t i = 0; i < s->grant->n_gpus; i++)
        gpus[i] = s->grant->gpus[i]->index;
    v.gpus = gpus;
    return v;
}

static int classify(int rc, const char *who, const struct cw_plugin_err *perr, struct cw_error *err)
{
    const char *text = perr->text[0] != '\0' ? perr->text : strerror(-rc);
    if (rc == -EINVAL)
        return cw_fail(err, rc, "%s: %s", who, text);
    return cw_fail_node(err, rc, "%s: %s", who, text);
}

struct adding {
    struct cw_herd *h;
    struct cw_task *t;
    struct cw_task_view view;
    struct cw_error *err;
    const Cw__VolumeUse *use; /* volume being placed */
    int rc;                   /* 0; -ENOTSUP: nobody took it so far */
};

static void add_gpu(struct cw_plug *p, void *arg)
{
    struct adding *a = arg;
    struct cw_plugin_err perr = { "" };
    if (a->rc < 0 || !CW_PLUG_HAS(gpu, p, plan))
        return;
    a->rc = CW_PLUG_OPS(gpu, p)->plan(cw_plug_ctx(p), cw_plug_host(p), &a->view, a->t->plan, &perr);
    if (a->rc < 0)
        classify(a->rc, "gpu", &perr, a->err);
}

static void add_volume(struct cw_plug *p, void *arg)
{
    struct adding *a = arg;
    struct cw_plugin_err perr = { "" };
    if (a->rc != -ENOTSUP || !CW_PLUG_HAS(volume, p, plan))
        return;
    a->rc = CW_PLUG_OPS(volume, p)->plan(cw_plug_ctx(p), cw_plug_host(p), &a->view, a->use->source,
                                         a->use->target, a->use->has_read_only && a->use->read_only,
                                         a->t->plan, &perr);
    if (a->rc < 0 && a->rc != -ENOTSUP)
        classify(a->rc, "volume", &perr, a->err);
    if (a->rc < 0)
        return;
    struct cw_task_volume *v = &a->t->volumes[a->t->n_volumes++];
    v->plug = p;
    v->source = cw_xstrdup(a->use->source);
}

static int add_volumes(struct adding *a)
{
    const Cw__Settings *set = a->t->start->spec->settings;
    if (set == NULL || set->n_volumes == 0)
        return 0;
    a->t->volumes = cw_xcalloc(set->n_volumes, sizeof *a->t->volumes);
    for (size_t i = 0; i < set->n_volumes; i++) {
        a->use = set->volumes[i];
        a->rc = -ENOTSUP;
        cw_plug_each(a->h->plugs, "volume", add_volume, a);
        if (a->rc == -ENOTSUP)
            return cw_fail(a->err, -EINVAL, "volume %s: no volume plugin of node %s takes it",
                           a->use->source != NULL ? a->use->source : "", a->h->node);
        if (a->rc < 0)
            return a->rc;
    }
    return 0;
}

/* Lines that are the shepherd's own, before those of plugins. */
static int add_own(struct cw_task *t, const struct cw_task_view *view)
{
    struct cw_plan_line l = {
        .size = sizeof l, .kind = CW_PLAN_CPUS, .a = view->cpus, .b = view->mems
    };
    return view->cpus == NULL ? 0 : cw_plan_add(t->plan, "crun-shepherd", &l);
}

/* A line that nobody carries out must not be dropped silently. */
static int refuse_hooks(const struct cw_task *t, struct cw_error *err)
{
    uint32_t count = cw_plan_count(t->plan);
    for (uint32_t i = 0; i < count; i++) {
        const struct cw_plan_line *l = cw_plan_get(t->plan, i);
        if (l->kind == CW_PLAN_HOOK)
            return cw_fail_node(err, -ENOTSUP, "plugin %s: hook %s: this shepherd runs no hooks",
                                l->origin, l->b);
    }
    return 0;
}

int cw_planning_make(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    struct adding a = { .h = h, .t = t, .view = cw_planning_view(h, t), .err = err };
    t->plan = cw_plan_create();
    a.rc = add_own(t, &a.view);
    cw_plug_each(h->plugs, "gpu", add_gpu, &a);
    if (a.rc < 0)
        return a.rc;
    int rc = add_volumes(&a);
    return rc < 0 ? rc : refuse_hooks(t, err);
}

void cw_planning_drop(struct cw_herd *h, struct cw_task *t)
{
    struct cw_task_view view = cw_planning_view(h, t);
    for (size_t i = 0; i < t->n_volumes; i++) {
        struct cw_plug *p = t->volumes[i].plug;
        if (CW_PLUG_HAS(volume, p, release))
            CW_PLUG_OPS(volume, p)->release(cw_plug_ctx(p), &view, t->volumes[i].source);
        free(t->volumes[i].source);
    }
    free(t->volumes);
    t->volumes = NULL;
    t->n_volumes = 0;
    cw_plan_destroy(t->plan);
    t->plan = NULL;
}

/* Replaces name=... or adds it: what a plan says wins over what the user asked for. */
static void env_set(struct cw_strv *env, const char *name, const char *value)
{
    size_t len = strlen(name);
    char *line = cw_xasprintf("%s=%s", name, value);
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], name, len) == 0 && env->v[i][len] == '=') {
            free(env->v[i]);
            env->v[i] = line;
            return;
        }
    cw_strv_add_take(env, line);
}

void cw_planning_env(const struct cw_herd *h, struct cw_task *t)
{
    struct cw_jobenv_node n = { .name = h->node,
                                .hostname = h->hostname,
                                .tmpdir = "/tmp",
                                .home = t->as->home,
                                .user = t->as->name,
                                .shell = t->as->shell,
                                .hostfile = t->hostfile,
                                .now_ns = cw_clock_real_ns() };
    cw_jobenv_build(t->start, &n, &t->env);
    cw_planning_env_lines(t->plan, &t->env);
}

void cw_planning_env_lines(const struct cw_plan *plan, struct cw_strv *env)
{
    uint32_t count = cw_plan_count(plan);
    for (uint32_t i = 0; i < count; i++) {
        const struct cw_plan_line *l = cw_plan_get(plan, i);
        if (l->kind == CW_PLAN_ENV && l->a != NULL)
            env_set(env, l->a, l->b != NULL ? l->b : "");
    }
}

int cw_planning_gpus(struct cw_herd *h, struct cw_task *t, struct cw_error *err)
{
    struct adding a = { .h = h, .t = t, .view = cw_planning_view(h, t), .err = err };
    t->plan = cw_plan_create();
    cw_plug_each(h->plugs, "gpu", add_gpu, &a);
    return a.rc;
}

void cw_planning_limits(const struct cw_task *t, struct cw_spawn *s)
{
    static const struct {
        const char *name;
        int resource;
    } known[] = { { "nofile", RLIMIT_NOFILE }, { "core", RLIMIT_CORE } };
    uint32_t count = cw_plan_count(t->plan);
    for (uint32_t i = 0; i < count; i++) {
        const struct cw_plan_line *l = cw_plan_get(t->plan, i);
        if (l->kind != CW_PLAN_LIMIT || l->a == NULL)
            continue; /* memory and pids are the box's */
        for (size_t k = 0; k < CW_ARRAY_LEN(known); k++)
            if (strcmp(l->a, known[k].name) == 0 && s->n_limits < CW_SPAWN_LIMITS_MAX)
                s->limits[s->n_limits++] = (struct cw_spawn_limit){ known[k].resource,
                                                                    (rlim_t)l->n1 };
    }
}
