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
    cw_buf_addf(out, "%" PRIu64 "_[%.*s%s]", j->id, (int)(cut ? max : n), list, cut ? "..." : "");
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

static json_t *usage_json(const Cw__Usage *u)
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
    add_str(o, "source", u->source);
    return o;
}

static json_t *attempt_json(const Cw__AttemptRecord *a)
{
    json_t *o = json_object();
    add_int(o, "attempt", a->attempt);
    json_object_set_new(o, "state", lower(cw_state_name(a->state)));
    if (a->grant != NULL) {
        add_str(o, "node", a->grant->node);
        add_str(o, "cores", a->grant->cores);
        add_str(o, "cpus", a->grant->cpus);
        add_int(o, "mem_bytes", a->grant->mem_bytes);
        json_t *gpus = json_array();
        for (size_t i = 0; i < a->grant->n_gpus; i++)
            json_array_append_new(gpus, json_integer(a->grant->gpus[i]->index));
        json_object_set_new(o, "gpus", gpus);
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
        json_object_set_new(o, "usage", usage_json(a->usage));
    add_str(o, "message", a->message);
    add_str(o, "stdout_path", a->stdout_path);
    add_str(o, "stderr_path", a->stderr_path);
    return o;
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
    add_int(o, "cores", cw_spec_cores(j->spec));
    if (j->spec->settings != NULL && j->spec->settings->has_mem_bytes)
        add_int(o, "mem_bytes", j->spec->settings->mem_bytes);
    if (cw_spec_gpus(j->spec) > 0)
        add_int(o, "gpus", cw_spec_gpus(j->spec));
    if (j->spec->has_time_limit_s && j->spec->time_limit_s != CW_DURATION_UNLIMITED)
        add_int(o, "time_limit_s", j->spec->time_limit_s);
    add_str(o, "workdir", j->spec->workdir);
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
    return o;
}
