/* Checks of a request (contract: check.h). Strings are checked as the options are (fieldrule.c);
 * the controller runs this on what peers send. Test: check_test.c. */
#include "spec/check.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/idset.h"
#include "base/mem.h"
#include "spec/constraint.h"
#include "spec/fieldrule.h"
#include "spec/outpath.h"
#include "spec/retryrule.h"
#include "spec/selector.h"
#include "spec/sigspec.h"

uint32_t cw_spec_ntasks(const Cw__JobSpec *s)
{
    uint32_t nodes = s->has_nodes_min && s->nodes_min > 0 ? s->nodes_min : 1, n;
    if (s->has_ntasks)
        return s->ntasks;
    if (!s->has_ntasks_per_node)
        return nodes;
    return __builtin_mul_overflow(nodes, s->ntasks_per_node, &n) ? UINT32_MAX : n;
}

uint32_t cw_spec_cpus_per_task(const Cw__JobSpec *s)
{
    return s->settings != NULL && s->settings->has_cpus_per_task ? s->settings->cpus_per_task : 1;
}

uint32_t cw_spec_cores(const Cw__JobSpec *s)
{
    uint32_t cores;
    bool over = __builtin_mul_overflow(cw_spec_ntasks(s), cw_spec_cpus_per_task(s), &cores);
    return over ? UINT32_MAX : cores;
}

uint32_t cw_spec_gpus(const Cw__JobSpec *s)
{
    const Cw__Settings *t = s->settings;
    uint32_t nodes = s->has_nodes_min && s->nodes_min > 0 ? s->nodes_min : 1, n = 0;
    bool over = false;
    if (t == NULL)
        return 0;
    if (t->gpus_per_task != 0)
        over = __builtin_mul_overflow(t->gpus_per_task, cw_spec_ntasks(s), &n);
    else if (t->gpus_per_node != 0)
        over = __builtin_mul_overflow(t->gpus_per_node, nodes, &n);
    else
        n = t->gpus;
    return over ? UINT32_MAX : n;
}

/* ---- single fields ---- */
typedef int rule_fn(const char *text, struct cw_error *err);

static int check_text(const char *what, const char *text, rule_fn *rule, struct cw_error *err)
{
    if (text == NULL)
        return 0;
    int r = rule(text, err);
    return r < 0 ? cw_wrap(err, r, "%s", what) : 0;
}

static int check_texts(const Cw__JobSpec *s, struct cw_error *err)
{
    const struct {
        const char *what, *text;
        rule_fn *rule;
    } rows[] = {
        {"job name", s->name, cw_field_name},
        {"partition", s->partition, cw_field_word},
        {"account", s->account, cw_field_word},
        {"comment", s->comment, cw_field_note},
        {"working directory", s->workdir, cw_field_path},
        {"output file", s->stdout_path, cw_outpath_check},
        {"error file", s->stderr_path, cw_outpath_check},
        {"input file", s->stdin_path, cw_outpath_check},
        {"submit host", s->submit_host, cw_field_name},
    };
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        int r = check_text(rows[i].what, rows[i].text, rows[i].rule, err);
        if (r < 0)
            return r;
    }
    if (s->workdir == NULL || s->workdir[0] != '/')
        return cw_fail(err, -EINVAL, "working directory: '%s' is not an absolute path",
                       s->workdir != NULL ? s->workdir : "");
    return 0;
}

static int check_range(const char *what, uint64_t v, uint64_t min, uint64_t max,
                       struct cw_error *err)
{
    if (v >= min && v <= max)
        return 0;
    return cw_fail(err, -EINVAL, "%s: %" PRIu64 " is not from %" PRIu64 " to %" PRIu64, what, v,
                   min, max);
}

static int check_numbers(const Cw__JobSpec *s, struct cw_error *err)
{
    const Cw__Settings *t = s->settings;
    const struct {
        const char *what;
        bool has;
        uint64_t v, min, max;
    } rows[] = {
        {"number of tasks", s->has_ntasks, s->ntasks, 1, CW_FIELD_MAX_TASKS},
        {"time limit in seconds", s->has_time_limit_s, s->time_limit_s, 1, UINT64_MAX},
        {"kill grace in seconds", s->has_kill_grace_s, s->kill_grace_s, 0, CW_FIELD_MAX_GRACE_S},
        {"cores per task", t && t->has_cpus_per_task, t ? t->cpus_per_task : 0, 1,
         CW_FIELD_MAX_CPUS},
        {"memory in bytes", t && t->has_mem_bytes, t ? t->mem_bytes : 0, CW_CHECK_MIN_MEM,
         INT64_MAX},
        {"memory per core in bytes", t && t->has_mem_per_cpu_bytes, t ? t->mem_per_cpu_bytes : 0,
         1, INT64_MAX},
        {"memory per GPU in bytes", t && t->has_mem_per_gpu_bytes, t ? t->mem_per_gpu_bytes : 0, 1,
         INT64_MAX},
        {"GPUs of a node", t && t->has_gpus_per_node, t ? t->gpus_per_node : 0, 0,
         CW_FIELD_MAX_GPUS},
        {"GPUs of a task", t && t->has_gpus_per_task, t ? t->gpus_per_task : 0, 0,
         CW_FIELD_MAX_GPUS},
        {"least number of nodes", s->has_nodes_min, s->nodes_min, 1, CW_FIELD_MAX_NODES},
        {"most nodes", s->has_nodes_max, s->nodes_max, 1, CW_FIELD_MAX_NODES},
        {"tasks of a node", s->has_ntasks_per_node, s->ntasks_per_node, 1, CW_FIELD_MAX_TASKS},
        {"early signal", s->has_signal, s->signal, 1, CW_SIGSPEC_MAX},
        {"seconds from the early signal to the limit", s->has_signal_before_s, s->signal_before_s, 0,
         CW_SIGSPEC_MAX_BEFORE_S},
        {"estimate in seconds", s->has_time_est_s, s->time_est_s, 1, UINT32_MAX},
        {"number of GPUs", t && t->has_gpus, t ? t->gpus : 0, 0, CW_FIELD_MAX_GPUS},
        {"number of cores", true, cw_spec_cores(s), 1, CW_CHECK_MAX_CORES},
    };
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        int r =
            rows[i].has ? check_range(rows[i].what, rows[i].v, rows[i].min, rows[i].max, err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- settings ---- */
static int check_volume(const Cw__VolumeUse *v, struct cw_error *err)
{
    if (v->source == NULL || v->target == NULL)
        return cw_fail(err, -EINVAL, "volume: source and target are both needed");
    int r =
        check_text("volume", v->source, v->source[0] == '/' ? cw_field_target : cw_field_word, err);
    return r < 0 ? r : check_text("volume", v->target, cw_field_target, err);
}

static int check_settings(const Cw__Settings *t, struct cw_error *err)
{
    if (t == NULL)
        return 0;
    if (t->image != NULL)
        return cw_fail(err, -EINVAL, "image: '%s': images are not carried out", t->image);
    if (t->network != NULL)
        return cw_fail(err, -EINVAL, "network: '%s': networks are not carried out", t->network);
    if (t->n_secrets > 0)
        return cw_fail(err, -EINVAL, "secret: '%s': secrets are not carried out", t->secrets[0]);
    int r = check_text("GPU type", t->gpu_type, cw_field_word, err);
    if (r == 0)
        r = check_text("isolation", t->isolation, cw_field_word, err);
    for (size_t i = 0; r == 0 && i < t->n_volumes; i++)
        r = check_volume(t->volumes[i], err);
    for (size_t i = 0; r == 0 && i < t->n_volumes; i++)
        for (size_t k = 0; r == 0 && k < i; k++)
            if (strcmp(t->volumes[i]->target, t->volumes[k]->target) == 0)
                r = cw_fail(err, -EINVAL, "volume: two have the target %s", t->volumes[i]->target);
    return r;
}

/* ---- places ---- */
static int check_hosts(const char *what, const char *list, struct cw_error *err)
{
    struct cw_strv hosts = {0};
    if (list == NULL)
        return 0;
    if (strlen(list) > CW_FIELD_MAX_HOSTS)
        return cw_fail(err, -E2BIG, "%s: a list of %zu bytes, at most %u are allowed", what,
                       strlen(list), CW_FIELD_MAX_HOSTS);
    int r = cw_hostlist_parse(list, &hosts, err);
    cw_strv_fini(&hosts);
    return r < 0 ? cw_wrap(err, r, "%s", what) : 0;
}

static int check_counts(const Cw__JobSpec *s, struct cw_error *err)
{
    uint32_t tasks = cw_spec_ntasks(s), lo = s->has_nodes_min ? s->nodes_min : 1;
    uint32_t hi = s->has_nodes_max ? s->nodes_max : UINT32_MAX;
    if (hi < lo)
        return cw_fail(err, -EINVAL, "nodes: at least %u and at most %u", lo, hi);
    if (tasks < lo)
        return cw_fail(err, -EINVAL, "nodes: %u of them, but only %u tasks: each node gets one", lo,
                       tasks);
    if (s->has_ntasks_per_node && (uint64_t)hi * s->ntasks_per_node < tasks)
        return cw_fail(err, -EINVAL, "tasks: %u do not fit on %u nodes at %u each", tasks, hi,
                       s->ntasks_per_node);
    return 0;
}

static int check_places(const Cw__JobSpec *s, struct cw_error *err)
{
    const Cw__Settings *t = s->settings;
    int r = check_counts(s, err);
    if (r == 0)
        r = check_hosts("node list", s->nodelist, err);
    if (r == 0)
        r = check_hosts("excluded nodes", s->exclude, err);
    if (r == 0)
        r = check_text("constraint", s->constraint, cw_constraint_check, err);
    if (r == 0)
        r = check_text("preference", s->prefer, cw_constraint_check, err);
    if (r < 0 || t == NULL)
        return r;
    if ((t->mem_bytes != 0) + (t->mem_per_cpu_bytes != 0) + (t->mem_per_gpu_bytes != 0) > 1)
        return cw_fail(err, -EINVAL, "memory: only one of a node, a core, a GPU can be said");
    if ((t->gpus != 0) + (t->gpus_per_node != 0) + (t->gpus_per_task != 0) > 1)
        return cw_fail(err, -EINVAL, "GPUs: only one of the job, a node, a task can be said");
    if (t->mem_per_gpu_bytes != 0 && cw_spec_gpus(s) == 0)
        return cw_fail(err, -EINVAL, "memory per GPU: the job asks for no GPU");
    return 0;
}

/* What the record can say and nothing carries out. */
static int check_undone(const Cw__JobSpec *s, struct cw_error *err)
{
    const Cw__Settings *t = s->settings;
    const struct {
        const char *what;
        bool asked;
    } rows[] = {
        {"cpu-bind", t != NULL && t->cpu_bind != NULL},
        {"mem-bind", t != NULL && t->mem_bind != NULL},
        {"gpu-bind", t != NULL && t->gpu_bind != NULL},
        {"distribution", s->distribution != NULL},
        {"licenses", s->licenses != NULL},
        {"reservation", s->reservation != NULL},
        {"qos", s->qos != NULL},
        {"a shorter time limit", s->has_time_min_s},
        {"mail", s->mail_type != NULL || s->mail_user != NULL},
    };
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        if (rows[i].asked)
            return cw_fail(err, -EINVAL, "%s cannot be asked for yet", rows[i].what);
    return 0;
}

/* ---- arrays, dependencies, labels ---- */
static int check_array(const Cw__ArraySpec *a, struct cw_error *err)
{
    struct cw_idset set = {0};
    cw_autobuf struct cw_buf text = {0};
    if (a == NULL)
        return 0;
    if (a->has_throttle && a->throttle == 0)
        return cw_fail(err, -EINVAL, "array: 0 elements at once would never end");
    int r = cw_idset_parse(a->indices, strlen(a->indices), CW_CHECK_MAX_ARRAY_INDEX, &set, err);
    if (r < 0)
        return cw_wrap(err, r, "array");
    cw_idset_format(&set, &text);
    bool empty = cw_idset_empty(&set);
    cw_idset_fini(&set);
    if (empty)
        return cw_fail(err, -EINVAL, "array: there is no index");
    if (strcmp(cw_buf_str(&text), a->indices) != 0)
        return cw_fail(err, -EINVAL, "array: '%s' is not in its shortest form '%s'", a->indices,
                       cw_buf_str(&text));
    return 0;
}

int cw_check_dependency_kind(Cw__DependencyKind k, struct cw_error *err)
{
    switch (k) {
    case CW__DEPENDENCY_KIND__AFTEROK:
    case CW__DEPENDENCY_KIND__AFTERANY:
    case CW__DEPENDENCY_KIND__AFTERNOTOK:
    case CW__DEPENDENCY_KIND__AFTER:
    case CW__DEPENDENCY_KIND__SINGLETON:
        return 0;
    case CW__DEPENDENCY_KIND__AFTERCORR:
        return cw_fail(err, -EINVAL, "aftercorr is not carried out: use afterok");
    default:
        return cw_fail(err, -EINVAL, "kind %d is not known", (int)k);
    }
}

static int check_dependencies(const Cw__JobSpec *s, struct cw_error *err)
{
    if (s->dependency_rule != NULL && strcmp(s->dependency_rule, "any") != 0)
        return cw_fail(err, -EINVAL, "dependency: rule '%.40s' is not known", s->dependency_rule);
    for (size_t i = 0; i < s->n_dependencies; i++) {
        const Cw__Dependency *d = s->dependencies[i];
        bool names = d->kind != CW__DEPENDENCY_KIND__SINGLETON;
        int r = cw_check_dependency_kind(d->kind, err);
        if (r == 0 && names && (!d->has_job_id || d->job_id == 0))
            r = cw_fail(err, -EINVAL, "a job id is missing");
        if (r == 0 && (d->has_satisfied || d->has_never))
            r = cw_fail(err, -EINVAL, "whether it is satisfied is for the controller to say");
        if (r == 0 && d->has_delay_s && d->delay_s > 60 * (uint64_t)CW_SELECTOR_MAX_DELAY_MIN)
            r = cw_fail(err, -EINVAL, "a delay of more than a year");
        if (r < 0)
            return cw_wrap(err, r, "dependency");
    }
    return 0;
}

static int check_when(const Cw__JobSpec *s, struct cw_error *err)
{
    if (s->has_begin_ns && s->has_deadline_ns && s->begin_ns >= s->deadline_ns)
        return cw_fail(err, -EINVAL, "begin: not before the deadline");
    if (s->has_retries && s->retries > CW_FIELD_MAX_RETRIES)
        return cw_fail(err, -EINVAL, "retries: %u, at most %u are allowed", s->retries,
                       CW_FIELD_MAX_RETRIES);
    if (s->has_retry_delay_s && s->retry_delay_s > CW_FIELD_MAX_RETRY_DELAY_S)
        return cw_fail(err, -EINVAL, "retry delay: %u s, at most an hour", s->retry_delay_s);
    if (s->retry_on != NULL && !s->has_retries)
        return cw_fail(err, -EINVAL, "retry-on: without --retries there are none");
    return check_text("retry-on", s->retry_on, cw_retryrule_check, err);
}

static int check_labels(const Cw__JobSpec *s, struct cw_error *err)
{
    for (size_t i = 0; i < s->n_labels; i++) {
        cw_autofree char *pair = cw_xasprintf("%s=%s", s->labels[i]->key, s->labels[i]->value);
        int r = check_text("label", pair, cw_field_label, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- payload ---- */
static int check_entries(const Cw__JobSpec *s, const Cw__Payload *p, struct cw_error *err)
{
    struct cw_idset set = {0};
    if (p->n_entries == 0)
        return 0;
    if (s->array == NULL)
        return cw_fail(err, -EINVAL, "entries: only arrays have some");
    int r = cw_idset_parse(s->array->indices, strlen(s->array->indices), CW_CHECK_MAX_ARRAY_INDEX,
                           &set, err);
    uint64_t n = cw_idset_count(&set);
    cw_idset_fini(&set);
    if (r < 0 || n == p->n_entries)
        return r;
    return cw_fail(err, -EINVAL, "entries: %zu of them for an array of %" PRIu64, p->n_entries, n);
}

static int check_payload(const Cw__Payload *p, struct cw_error *err)
{
    size_t bytes = cw__payload__get_packed_size(p);
    if (!p->has_script && p->n_argv == 0)
        return cw_fail(err, -EINVAL, "nothing to run: there is neither a script nor a command");
    if (p->has_script && p->script.len == 0)
        return cw_fail(err, -EINVAL, "script: it is empty");
    if (!p->has_script && p->argv[0][0] == '\0')
        return cw_fail(err, -EINVAL, "command: its name is empty");
    if (p->n_env > CW_CHECK_MAX_ENV)
        return cw_fail(err, -E2BIG, "environment: %zu variables, at most %u", p->n_env,
                       CW_CHECK_MAX_ENV);
    if (bytes > CW_CHECK_MAX_PAYLOAD)
        return cw_fail(err, -E2BIG,
                       "script, arguments and environment: %zu bytes together, at most %u", bytes,
                       CW_CHECK_MAX_PAYLOAD);
    for (size_t i = 0; i < p->n_env; i++) {
        const char *eq = strchr(p->env[i], '=');
        if (eq == NULL || eq == p->env[i])
            return cw_fail(err, -EINVAL, "environment: '%.40s' is not NAME=VALUE", p->env[i]);
    }
    return 0;
}

/* Nothing of it is run by the controller: its steps are. */
static int check_allocation(const Cw__JobSpec *s, const Cw__Payload *p, struct cw_error *err)
{
    if (s->array != NULL)
        return cw_fail(err, -EINVAL, "an allocation cannot be an array");
    if (p->has_script || p->n_argv > 0)
        return cw_fail(err, -EINVAL, "an allocation has no command of its own");
    if (s->has_alloc_lease_s && (s->alloc_lease_s < 1 || s->alloc_lease_s > 86400))
        return cw_fail(err, -EINVAL, "lease of %u s: from 1 s to a day", s->alloc_lease_s);
    return 0;
}

int cw_check_spec(const Cw__JobSpec *s, const Cw__Payload *p, struct cw_error *err)
{
    if (s->has_shape && s->shape != CW__SHAPE__SHAPE_BATCH)
        return cw_fail(err, -EINVAL, "shape: only batch is carried out");
    int r = check_texts(s, err);
    if (r == 0)
        r = check_numbers(s, err);
    if (r == 0)
        r = check_settings(s->settings, err);
    if (r == 0)
        r = check_places(s, err);
    if (r == 0)
        r = check_undone(s, err);
    if (r == 0)
        r = check_array(s->array, err);
    if (r == 0)
        r = check_dependencies(s, err);
    if (r == 0)
        r = check_when(s, err);
    if (r == 0)
        r = check_labels(s, err);
    if (r == 0 && s->has_allocation && s->allocation)
        return check_allocation(s, p, err);
    if (r < 0 || p == NULL)
        return r;
    r = check_entries(s, p, err);
    return r < 0 ? r : check_payload(p, err);
}
