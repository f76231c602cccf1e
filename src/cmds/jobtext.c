/* See jobtext.h. */
#include "cmds/jobtext.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "cmds/cli.h"
#include "spec/check.h"
#include "spec/outcome.h"
#include "spec/selector.h"

char *cw_jobtext_id(const Cw__JobInfo *j, size_t max, struct cw_buf *out)
{
    const char *list = j->pending_indices;
    char id[48];
    if (list == NULL || list[0] == '\0') {
        cw_buf_add_str(out, cw_selector_format(j->id, j->has_array_id ? j->array_id : 0, j->index,
                                               id, sizeof(id)));
        return out->data;
    }
    size_t n = strlen(list);
    bool cut = max != 0 && n > max;
    cw_buf_addf(out, "%" PRIu64 "_[%.*s%s", j->id, (int)(cut ? max : n), list, cut ? "..." : "");
    if (j->spec->array != NULL && j->spec->array->throttle > 0)
        cw_buf_addf(out, "%%%u", j->spec->array->throttle);
    cw_buf_add_str(out, "]");
    return out->data;
}

char *cw_jobtext_elapsed(const Cw__JobInfo *j, int64_t now_ns, char *buf, size_t cap)
{
    const Cw__AttemptRecord *a = j->attempt;
    uint64_t s = 0;
    if (a != NULL && a->has_start_ns) {
        int64_t end = a->has_end_ns ? a->end_ns : now_ns;
        /* to the nearest second, so that a job ended by its limit of 2 s shows 2 s */
        s = end > a->start_ns ? (uint64_t)(end - a->start_ns + CW_NS_PER_S / 2) / CW_NS_PER_S : 0;
    }
    uint64_t d = s / 86400, h = s / 3600 % 24, m = s / 60 % 60, sec = s % 60;
    if (d > 0)
        snprintf(buf, cap, "%" PRIu64 "-%02u:%02u:%02u", d, (unsigned)h, (unsigned)m,
                 (unsigned)sec);
    else if (h > 0)
        snprintf(buf, cap, "%u:%02u:%02u", (unsigned)h, (unsigned)m, (unsigned)sec);
    else
        snprintf(buf, cap, "%u:%02u", (unsigned)m, (unsigned)sec);
    return buf;
}

void cw_jobtext_place(const Cw__JobInfo *j, struct cw_buf *out)
{
    if (j->state == CW__STATE__PENDING)
        cw_buf_addf(out, "(%s)", j->reason != NULL ? j->reason : "Scheduling");
    else if (j->attempt != NULL && j->attempt->grant != NULL)
        cw_buf_add_str(out, j->attempt->grant->node);
    else if (j->reason != NULL)
        cw_buf_addf(out, "(%s)", j->reason);
}

static void add_str(json_t *o, const char *key, const char *value)
{
    if (value != NULL)
        json_object_set_new(o, key, json_string(value));
}

static void add_int(json_t *o, const char *key, uint64_t value)
{
    json_object_set_new(o, key, json_integer((json_int_t)value));
}

static void add_time(json_t *o, const char *key, bool has, int64_t ns)
{
    char buf[40];
    if (has)
        add_str(o, key, cw_clock_format(ns, buf, sizeof(buf)));
}

static json_t *lower(const char *name)
{
    cw_autobuf struct cw_buf b = {0};
    for (; *name != '\0'; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        cw_buf_add(&b, &c, 1);
    }
    return json_string(cw_buf_str(&b));
}

json_t *cw_jobtext_usage_json(const Cw__Usage *u)
{
    json_t *o = json_object();
    if (u->has_cpu_user_ns)
        add_int(o, "cpu_user_ns", u->cpu_user_ns);
    if (u->has_cpu_sys_ns)
        add_int(o, "cpu_sys_ns", u->cpu_sys_ns);
    if (u->has_mem_peak_bytes)
        add_int(o, "mem_peak_bytes", u->mem_peak_bytes);
    if (u->has_maxrss_bytes)
        add_int(o, "maxrss_bytes", u->maxrss_bytes);
    if (u->has_mem_anon_peak_bytes)
        add_int(o, "mem_anon_peak_bytes", u->mem_anon_peak_bytes);
    if (u->has_throttled_ns)
        add_int(o, "throttled_ns", u->throttled_ns);
    add_str(o, "source", u->source);
    return o;
}

static void grant_json(json_t *o, const Cw__Grant *g)
{
    add_str(o, "node", g->node);
    add_str(o, "cores", g->cores);
    add_str(o, "cpus", g->cpus);
    add_int(o, "mem_bytes", g->mem_bytes);
    json_t *gpus = json_array();
    for (size_t i = 0; i < g->n_gpus; i++)
        json_array_append_new(gpus, json_integer(g->gpus[i]->index));
    json_object_set_new(o, "gpus", gpus);
}

json_t *cw_jobtext_step_json(const Cw__StepRecord *s)
{
    json_t *o = json_object(), *nodes = json_array();
    add_int(o, "step", s->step);
    add_str(o, "name", s->name);
    json_object_set_new(o, "state", lower(cw_state_name(s->state)));
    if (s->has_ntasks)
        add_int(o, "ntasks", s->ntasks);
    for (size_t i = 0; i < s->n_nodes; i++)
        json_array_append_new(nodes, json_string(s->nodes[i]));
    json_object_set_new(o, "nodes", nodes);
    add_time(o, "create", s->has_create_ns, s->create_ns);
    add_time(o, "start", s->has_start_ns, s->start_ns);
    add_time(o, "end", s->has_end_ns, s->end_ns);
    if (s->has_exit_code)
        add_int(o, "exit_code", s->exit_code);
    if (s->has_signal)
        add_int(o, "signal", s->signal);
    if (s->has_cause)
        add_str(o, "cause", cw_cause_name(s->cause));
    if (s->usage != NULL)
        json_object_set_new(o, "usage", cw_jobtext_usage_json(s->usage));
    add_str(o, "message", s->message);
    add_str(o, "cores", s->cores);
    return o;
}

static json_t *attempt_json(const Cw__AttemptRecord *a)
{
    json_t *o = json_object();
    add_int(o, "attempt", a->attempt);
    json_object_set_new(o, "state", lower(cw_state_name(a->state)));
    if (a->grant != NULL)
        grant_json(o, a->grant);
    if (a->n_more_grants > 0) { /* node 0 is told above */
        json_t *more = json_array();
        for (size_t i = 0; i < a->n_more_grants; i++) {
            json_t *g = json_object();
            grant_json(g, a->more_grants[i]);
            json_array_append_new(more, g);
        }
        json_object_set_new(o, "more_nodes", more);
    }
    if (a->has_cpus_bound)
        json_object_set_new(o, "cpus_bound", json_boolean(a->cpus_bound));
    if (a->has_pid)
        add_int(o, "pid", a->pid);
    add_time(o, "start", a->has_start_ns, a->start_ns);
    add_time(o, "end", a->has_end_ns, a->end_ns);
    if (a->has_exit_code)
        add_int(o, "exit_code", a->exit_code);
    if (a->has_signal)
        add_int(o, "signal", a->signal);
    if (a->has_core_dumped)
        json_object_set_new(o, "core_dumped", json_boolean(a->core_dumped));
    if (a->has_cause)
        add_str(o, "cause", cw_cause_name(a->cause));
    if (a->usage != NULL)
        json_object_set_new(o, "usage", cw_jobtext_usage_json(a->usage));
    add_str(o, "message", a->message);
    add_str(o, "stdout_path", a->stdout_path);
    add_str(o, "stderr_path", a->stderr_path);
    return o;
}

/* What it asks for: where, when, how often. */
static void add_wishes(json_t *o, const Cw__JobSpec *s)
{
    const Cw__Settings *t = s->settings;
    add_int(o, "cores", cw_spec_cores(s));
    add_int(o, "ntasks", cw_spec_ntasks(s));
    if (s->has_nodes_min)
        add_int(o, "nodes_min", s->nodes_min);
    if (s->has_nodes_max)
        add_int(o, "nodes_max", s->nodes_max);
    if (t != NULL && t->has_mem_bytes)
        add_int(o, "mem_bytes", t->mem_bytes);
    if (t != NULL && t->has_mem_per_cpu_bytes)
        add_int(o, "mem_per_cpu_bytes", t->mem_per_cpu_bytes);
    if (t != NULL && t->has_mem_per_gpu_bytes)
        add_int(o, "mem_per_gpu_bytes", t->mem_per_gpu_bytes);
    if (cw_spec_gpus(s) > 0)
        add_int(o, "gpus", cw_spec_gpus(s));
    if (s->has_exclusive && s->exclusive)
        json_object_set_new(o, "exclusive", json_true());
    add_str(o, "nodelist", s->nodelist);
    add_str(o, "exclude", s->exclude);
    add_str(o, "constraint", s->constraint);
    add_str(o, "prefer", s->prefer);
    if (s->has_time_limit_s && s->time_limit_s != CW_DURATION_UNLIMITED)
        add_int(o, "time_limit_s", s->time_limit_s);
    if (s->has_time_est_s)
        add_int(o, "time_est_s", s->time_est_s);
    add_time(o, "begin", s->has_begin_ns, s->begin_ns);
    add_time(o, "deadline", s->has_deadline_ns, s->deadline_ns);
    if (s->has_retries)
        add_int(o, "retries", s->retries);
    add_str(o, "retry_on", s->retry_on);
    if (s->has_nice)
        json_object_set_new(o, "nice", json_integer(s->nice));
    add_str(o, "comment", s->comment);
}

json_t *cw_jobtext_json(const Cw__JobInfo *j)
{
    cw_autobuf struct cw_buf id = {0};
    json_t *o = json_object();
    add_int(o, "job_id", j->id);
    add_str(o, "id", cw_jobtext_id(j, 0, &id));
    if (j->has_index) {
        add_int(o, "array_id", j->array_id);
        add_int(o, "array_index", j->index);
    }
    add_str(o, "name", j->spec->name);
    add_str(o, "partition", j->spec->partition);
    add_str(o, "user", cw_cli_user(j->owner));
    add_int(o, "uid", j->owner->uid);
    json_object_set_new(o, "state", lower(cw_state_name(j->state)));
    if (j->state == CW__STATE__PENDING || cw_state_terminal(j->state)) {
        add_str(o, "reason", j->reason);
        add_str(o, "reason_text", j->reason_text);
    }
    add_wishes(o, j->spec);
    add_str(o, "workdir", j->spec->workdir);
    add_str(o, "account", j->spec->account);
    add_str(o, "qos", j->spec->qos);
    if (j->spec->n_labels > 0) {
        json_t *labels = json_object();
        for (size_t i = 0; i < j->spec->n_labels; i++)
            add_str(labels, j->spec->labels[i]->key, j->spec->labels[i]->value);
        json_object_set_new(o, "labels", labels);
    }
    if (j->has_priority)
        json_object_set_new(o, "priority", json_integer((json_int_t)j->priority));
    add_time(o, "start_estimate", j->has_start_ns, j->start_ns);
    if (j->n_start_nodes > 0) {
        json_t *nodes = json_array();
        for (size_t i = 0; i < j->n_start_nodes; i++)
            json_array_append_new(nodes, json_string(j->start_nodes[i]));
        json_object_set_new(o, "start_nodes", nodes);
    }
    add_time(o, "eligible", j->has_eligible_ns, j->eligible_ns);
    add_time(o, "submit", true, j->submit_ns);
    add_time(o, "end", j->has_end_ns, j->end_ns);
    if (j->has_count && j->spec->array != NULL && !j->has_index) {
        add_int(o, "array_count", j->count);
        add_int(o, "array_running", j->n_running);
        add_int(o, "array_completed", j->n_completed);
        add_int(o, "array_failed", j->n_failed);
        add_int(o, "array_cancelled", j->n_cancelled);
    }
    if (j->has_exit_status)
        json_object_set_new(o, "exit_status", json_integer(j->exit_status));
    if (j->attempt != NULL)
        json_object_set_new(o, "attempt", attempt_json(j->attempt));
    if (j->n_steps > 0) {
        json_t *steps = json_array();
        for (size_t i = 0; i < j->n_steps; i++)
            json_array_append_new(steps, cw_jobtext_step_json(j->steps[i]));
        json_object_set_new(o, "steps", steps);
    }
    return o;
}
