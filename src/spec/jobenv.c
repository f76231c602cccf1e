/* The environment of a task (contract: jobenv.h). A variable is one line here, with its Slurm twin
 * beside it. The leader is one process on the job's node 0, so its rank is 0; the tasks of the other
 * nodes are started by steps. Test: jobenv_test.c. */
#include "spec/jobenv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/idset.h"
#include "base/mem.h"
#include "spec/check.h"

#define NS_PER_S 1000000000

struct build {
    struct cw_strv own;
    bool slurm;
};

/* crun and slurm: names without prefix; slurm may hold several, separated by blanks, or be NULL. */
static void put(struct build *b, const char *crun, const char *slurm, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void put(struct build *b, const char *crun, const char *slurm, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cw_autofree char *value = cw_xvasprintf(fmt, ap);
    va_end(ap);
    if (crun != NULL)
        cw_strv_add_take(&b->own, cw_xasprintf("CRUN_%s=%s", crun, value));
    for (const char *p = b->slurm ? slurm : NULL; p != NULL && *p != '\0';) {
        size_t n = strcspn(p, " ");
        cw_strv_add_take(&b->own, cw_xasprintf("SLURM_%.*s=%s", (int)n, p, value));
        p += n + (p[n] == ' ');
    }
}

static void put_text(struct build *b, const char *crun, const char *slurm, const char *value)
{
    if (value != NULL)
        put(b, crun, slurm, "%s", value);
}

static const char *user_value(const Cw__Payload *p, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < p->n_env; i++)
        if (strncmp(p->env[i], name, n) == 0 && p->env[i][n] == '=')
            return p->env[i] + n + 1;
    return NULL;
}

static void put_job(struct build *b, const Cw__TaskStart *t, const struct cw_jobenv_node *n)
{
    const Cw__JobSpec *s = t->spec;
    const char *submit_dir = user_value(t->payload, "CRUN_SUBMIT_DIR");
    put(b, "JOB_ID", "JOB_ID JOBID", "%" PRIu64, t->key->id);
    put_text(b, "JOB_NAME", "JOB_NAME", s->name);
    put(b, "ATTEMPT", NULL, "%u", t->key->attempt);
    put(b, "RESTART_COUNT", "RESTART_COUNT", "%u", t->key->attempt > 0 ? t->key->attempt - 1 : 0);
    put_text(b, "CLUSTER", "CLUSTER_NAME", t->cluster);
    put_text(b, "PARTITION", "JOB_PARTITION", t->partition != NULL ? t->partition : s->partition);
    put_text(b, "ACCOUNT", "JOB_ACCOUNT", s->account);
    put_text(b, "USER", "JOB_USER", n->user != NULL ? n->user : t->owner->name);
    put(b, NULL, "JOB_UID", "%u", t->owner->uid);
    put(b, NULL, "JOB_GID", "%u", t->owner->gid);
    put_text(b, "SUBMIT_DIR", "SUBMIT_DIR", submit_dir != NULL ? submit_dir : s->workdir);
    put_text(b, "SUBMIT_HOST", "SUBMIT_HOST", s->submit_host);
}

static uint64_t count_of(const char *idset)
{
    struct cw_idset set = {0};
    uint64_t n = 0;
    if (cw_idset_parse(idset, strlen(idset), UINT64_MAX - 1, &set, NULL) == 0)
        n = cw_idset_count(&set);
    cw_idset_fini(&set);
    return n;
}

/* ---- the nodes of the job ---- */
static Cw__Grant *const *grants_of(const Cw__TaskStart *t, size_t *ret_n)
{
    *ret_n = t->n_grants > 0 ? t->n_grants : 1;
    return t->n_grants > 0 ? t->grants : &t->grant;
}

static uint64_t tasks_of(const Cw__TaskStart *t, const Cw__Grant *g)
{
    return g->has_ntasks || t->n_grants > 0 ? (g->has_ntasks ? g->ntasks : 1)
                                            : cw_spec_ntasks(t->spec);
}

static uint64_t cpus_of(const Cw__TaskStart *t, const Cw__Grant *g)
{
    (void)t;
    return count_of(g->cpus);
}

/* One number a node, runs folded as "2(x3),1". */
static void fold(const Cw__TaskStart *t, uint64_t (*number)(const Cw__TaskStart *, const Cw__Grant *),
                 struct cw_buf *out)
{
    size_t n;
    Cw__Grant *const *g = grants_of(t, &n);
    for (size_t i = 0, k; i < n; i = k) {
        uint64_t v = number(t, g[i]);
        for (k = i + 1; k < n && number(t, g[k]) == v;)
            k++;
        cw_buf_addf(out, "%s%" PRIu64, i > 0 ? "," : "", v);
        if (k - i > 1)
            cw_buf_addf(out, "(x%zu)", k - i);
    }
}

void cw_jobenv_names(char *const *names, size_t n, struct cw_buf *out)
{
    cw_autostrv struct cw_strv folded = {0};
    cw_hostlist_format(names, n, out);
    bool same = cw_hostlist_parse(cw_buf_str(out), &folded, NULL) == 0 && folded.n == n;
    for (size_t i = 0; same && i < n; i++)
        same = strcmp(folded.v[i], names[i]) == 0;
    if (same)
        return;
    cw_buf_clear(out);
    for (size_t i = 0; i < n; i++)
        cw_buf_addf(out, "%s%s", i > 0 ? "," : "", names[i]);
}

static void node_names(const Cw__TaskStart *t, struct cw_buf *out)
{
    size_t n;
    Cw__Grant *const *g = grants_of(t, &n);
    cw_autostrv struct cw_strv names = {0};
    for (size_t i = 0; i < n; i++)
        cw_strv_add(&names, g[i]->node);
    cw_jobenv_names(names.v, n, out);
}

void cw_jobenv_hostfile(const Cw__TaskStart *t, struct cw_buf *out)
{
    size_t n;
    Cw__Grant *const *g = grants_of(t, &n);
    for (size_t i = 0; i < n; i++)
        cw_buf_addf(out, "%s slots=%" PRIu64 "\n", g[i]->node, tasks_of(t, g[i]));
}

static void put_nodes(struct build *b, const Cw__TaskStart *t, const struct cw_jobenv_node *n)
{
    cw_autobuf struct cw_buf names = {0}, tasks = {0}, cpus = {0};
    size_t k;
    Cw__Grant *const *g = grants_of(t, &k);
    uint64_t sum = 0;
    for (size_t i = 0; i < k; i++)
        sum += tasks_of(t, g[i]);
    node_names(t, &names);
    fold(t, tasks_of, &tasks);
    fold(t, cpus_of, &cpus);
    put(b, "NODELIST", "JOB_NODELIST NODELIST", "%s", cw_buf_str(&names));
    put(b, "NNODES", "JOB_NUM_NODES NNODES", "%zu", k);
    put(b, "NODEID", "NODEID", "%u", t->node);
    put(b, "NTASKS", "NTASKS NPROCS", "%" PRIu64, sum);
    put(b, "TASKS_PER_NODE", "TASKS_PER_NODE", "%s", cw_buf_str(&tasks));
    put(b, "CPUS_ON_NODE", "CPUS_ON_NODE", "%" PRIu64, count_of(t->grant->cpus));
    put(b, NULL, "JOB_CPUS_PER_NODE", "%s", cw_buf_str(&cpus));
    put_text(b, "HOSTFILE", NULL, n->hostfile);
}

static void put_place(struct build *b, const Cw__TaskStart *t, const struct cw_jobenv_node *n)
{
    const char *node = n->name != NULL ? n->name : t->grant->node;
    put_nodes(b, t, n);
    put_text(b, "NODENAME", NULL, node);
    if (b->slurm)
        cw_strv_add_take(&b->own, cw_xasprintf("SLURMD_NODENAME=%s", node));
    put(b, "PROCID", "PROCID", "0");
    put(b, "LOCALID", "LOCALID", "0");
    put(b, "CPUS_PER_TASK", "CPUS_PER_TASK", "%u", cw_spec_cpus_per_task(t->spec));
    put(b, "CPUSET", NULL, "%s", t->grant->cpus);
    put(b, "MEM_BYTES", NULL, "%" PRIu64, t->grant->mem_bytes);
    put(b, NULL, "MEM_PER_NODE", "%" PRIu64, t->grant->mem_bytes / (1024 * 1024));
    put_text(b, "TMPDIR", NULL, n->tmpdir);
}

static void put_gpus(struct build *b, const Cw__Grant *g)
{
    cw_autobuf struct cw_buf numbers = {0};
    cw_autobuf struct cw_buf names = {0};
    for (size_t i = 0; i < g->n_gpus; i++) {
        cw_buf_addf(&numbers, "%s%u", i > 0 ? "," : "", g->gpus[i]->index);
        if (g->gpus[i]->uuid != NULL)
            cw_buf_addf(&names, "%s%s", i > 0 ? "," : "", g->gpus[i]->uuid);
        else
            cw_buf_addf(&names, "%s%u", i > 0 ? "," : "", g->gpus[i]->index);
    }
    put(b, "GPUS", "GPUS_ON_NODE", "%zu", g->n_gpus);
    if (g->n_gpus > 0) {
        put(b, "JOB_GPUS", NULL, "%s", cw_buf_str(&names));
        put(b, NULL, "JOB_GPUS", "%s", cw_buf_str(&numbers));
    }
}

static void put_array(struct build *b, const Cw__TaskStart *t)
{
    if (!t->has_index)
        return;
    put(b, "ARRAY_JOB_ID", "ARRAY_JOB_ID", "%" PRIu64, t->job_id);
    put(b, "ARRAY_TASK_ID", "ARRAY_TASK_ID", "%" PRIu64, t->index);
    if (t->has_array_count)
        put(b, "ARRAY_COUNT", "ARRAY_TASK_COUNT", "%" PRIu64, t->array_count);
    if (t->has_array_min)
        put(b, "ARRAY_MIN", "ARRAY_TASK_MIN", "%" PRIu64, t->array_min);
    if (t->has_array_max)
        put(b, "ARRAY_MAX", "ARRAY_TASK_MAX", "%" PRIu64, t->array_max);
    if (t->has_array_step)
        put(b, "ARRAY_STEP", "ARRAY_TASK_STEP", "%" PRIu64, t->array_step);
}

static void put_times(struct build *b, const Cw__TaskStart *t, int64_t now_ns)
{
    if (now_ns == 0)
        return;
    put(b, "START_TIME", "JOB_START_TIME", "%" PRId64, now_ns / NS_PER_S);
    if (t->has_time_left_ms && t->time_left_ms / 1000 < INT32_MAX)
        put(b, "END_TIME", "JOB_END_TIME", "%" PRId64,
            now_ns / NS_PER_S + (int64_t)(t->time_left_ms / 1000));
}

/* ---- merging ---- */
static bool has_name(const struct cw_strv *list, const char *pair, size_t n)
{
    for (size_t i = 0; i < list->n; i++)
        if (strncmp(list->v[i], pair, n) == 0 && list->v[i][n] == '=')
            return true;
    return false;
}

/* All owned names begin with one of these; others need no search. */
static bool may_be_owned(const char *pair)
{
    return strncmp(pair, "CRUN_", 5) == 0 || strncmp(pair, "SLURM", 5) == 0 ||
           strncmp(pair, "TMPDIR=", 7) == 0 || strncmp(pair, "PWD=", 4) == 0;
}

static void add_missing(struct cw_strv *ret, const Cw__Payload *p, const char *name,
                        const char *value)
{
    if (value != NULL && user_value(p, name) == NULL)
        cw_strv_add_take(ret, cw_xasprintf("%s=%s", name, value));
}

static void merge(const Cw__Payload *p, const struct build *b, struct cw_strv *ret)
{
    for (size_t i = 0; i < p->n_env; i++)
        if (!may_be_owned(p->env[i]) || !has_name(&b->own, p->env[i], strcspn(p->env[i], "=")))
            cw_strv_add(ret, p->env[i]);
    for (size_t i = 0; i < b->own.n; i++)
        cw_strv_add(ret, b->own.v[i]);
}

void cw_jobenv_build(const Cw__TaskStart *t, const struct cw_jobenv_node *n, struct cw_strv *ret)
{
    struct build b = {.slurm = t->spec->has_slurm_env && t->spec->slurm_env};
    put_job(&b, t, n);
    put_place(&b, t, n);
    put_gpus(&b, t->grant);
    put_array(&b, t);
    put_times(&b, t, n->now_ns);
    if (t->entry != NULL)
        cw_strv_add_take(&b.own, cw_xasprintf("CRUN_ENTRY=%s", t->entry));
    if (n->tmpdir != NULL)
        cw_strv_add_take(&b.own, cw_xasprintf("TMPDIR=%s", n->tmpdir));
    if (t->spec->workdir != NULL)
        cw_strv_add_take(&b.own, cw_xasprintf("PWD=%s", t->spec->workdir));
    merge(t->payload, &b, ret);
    cw_strv_fini(&b.own);
    add_missing(ret, t->payload, "HOME", n->home);
    add_missing(ret, t->payload, "USER", n->user);
    add_missing(ret, t->payload, "LOGNAME", n->user);
    add_missing(ret, t->payload, "SHELL", n->shell);
    add_missing(ret, t->payload, "PATH", "/usr/local/bin:/usr/bin:/bin");
}
