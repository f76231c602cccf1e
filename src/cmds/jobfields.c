/* See jobfields.h. */
#include "cmds/jobfields.h"

#include <ctype.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/idset.h"
#include "base/quantity.h"
#include "cmds/cli.h"
#include "cmds/jobtext.h"
#include "spec/check.h"
#include "spec/outcome.h"

/* ---- facts ---------------------------------------------------------------------------------- */

static const Cw__AttemptRecord *attempt(const struct cw_fieldrow *r)
{
    return r->job->attempt;
}

static const Cw__Usage *usage(const struct cw_fieldrow *r)
{
    if (r->step != NULL)
        return r->step->usage;
    return attempt(r) != NULL ? attempt(r)->usage : NULL;
}

static Cw__State state(const struct cw_fieldrow *r)
{
    return r->step != NULL                      ? r->step->state
           : r->acct && attempt(r) != NULL && !r->whole ? attempt(r)->state
                                                : r->job->state;
}

static uint64_t grant_cores(const Cw__Grant *g)
{
    struct cw_idset s = {0};
    uint64_t n = 0;
    if (g->cores != NULL && cw_idset_parse(g->cores, strlen(g->cores), UINT64_MAX, &s, NULL) == 0)
        n = cw_idset_count(&s);
    cw_idset_fini(&s);
    return n;
}

uint64_t cw_jobfield_cores(const Cw__JobInfo *j)
{
    const Cw__AttemptRecord *a = j->attempt;
    if (a == NULL || a->grant == NULL)
        return cw_spec_cores(j->spec);
    uint64_t n = grant_cores(a->grant);
    for (size_t i = 0; i < a->n_more_grants; i++)
        n += grant_cores(a->more_grants[i]);
    return n;
}

uint32_t cw_jobfield_nodes(const Cw__JobInfo *j)
{
    if (j->attempt != NULL && j->attempt->grant != NULL)
        return 1 + (uint32_t)j->attempt->n_more_grants;
    return j->spec->has_nodes_min && j->spec->nodes_min > 0 ? j->spec->nodes_min : 1;
}

uint64_t cw_jobfield_mem(const Cw__JobInfo *j)
{
    const Cw__AttemptRecord *a = j->attempt;
    const Cw__Settings *s = j->spec->settings;
    if (a != NULL && a->grant != NULL) {
        uint64_t sum = a->grant->mem_bytes;
        for (size_t i = 0; i < a->n_more_grants; i++)
            sum += a->more_grants[i]->mem_bytes;
        return sum;
    }
    if (s == NULL)
        return 0;
    if (s->has_mem_bytes)
        return s->mem_bytes * cw_jobfield_nodes(j);
    if (s->has_mem_per_cpu_bytes)
        return s->mem_per_cpu_bytes * cw_spec_cores(j->spec);
    return s->has_mem_per_gpu_bytes ? s->mem_per_gpu_bytes * cw_spec_gpus(j->spec) : 0;
}

static bool start_ns(const struct cw_fieldrow *r, int64_t *ret)
{
    if (r->step != NULL) {
        *ret = r->step->start_ns;
        return r->step->has_start_ns;
    }
    const Cw__AttemptRecord *a = attempt(r);
    bool waits = r->job->state == CW__STATE__PENDING && !r->acct;
    if (a != NULL && a->has_start_ns && !waits) {
        *ret = a->start_ns;
        return true;
    }
    *ret = r->job->start_ns;
    return r->job->has_start_ns;
}

static bool end_ns(const struct cw_fieldrow *r, int64_t *ret)
{
    if (r->step != NULL) {
        *ret = r->step->end_ns;
        return r->step->has_end_ns;
    }
    const Cw__AttemptRecord *a = attempt(r);
    if (a != NULL && a->has_end_ns) {
        *ret = a->end_ns;
        return true;
    }
    *ret = r->job->end_ns;
    return r->job->has_end_ns;
}

bool cw_jobfield_ran_ns(const struct cw_fieldrow *r, int64_t *ret)
{
    int64_t start, end;
    *ret = 0;
    if ((r->step == NULL && (attempt(r) == NULL || !attempt(r)->has_start_ns)) ||
        !start_ns(r, &start))
        return false;
    if (r->step == NULL && r->job->state == CW__STATE__PENDING && !r->acct)
        return false;
    if (!end_ns(r, &end))
        end = r->now_ns;
    *ret = end > start ? end - start : 0;
    return true;
}

static uint64_t ran_s(const struct cw_fieldrow *r)
{
    int64_t ns;
    cw_jobfield_ran_ns(r, &ns);
    /* to the nearest second, so that a job ended by its limit of 2 s shows 2 s */
    return (uint64_t)(ns + CW_NS_PER_S / 2) / CW_NS_PER_S;
}

static uint64_t limit_s(const struct cw_fieldrow *r) /* CW_DURATION_UNLIMITED: none */
{
    if (attempt(r) != NULL && attempt(r)->has_time_limit_s)
        return attempt(r)->time_limit_s;
    return r->job->spec->has_time_limit_s ? r->job->spec->time_limit_s : CW_DURATION_UNLIMITED;
}

/* ---- ways of printing ----------------------------------------------------------------------- */

char *cw_jobfield_elapsed_text(uint64_t s, char *text, size_t cap)
{
    uint64_t d = s / 86400, h = s / 3600 % 24, m = s / 60 % 60;
    if (d > 0)
        snprintf(text, cap, "%" PRIu64 "-%02u:%02u:%02u", d, (unsigned)h, (unsigned)m,
                 (unsigned)(s % 60));
    else
        snprintf(text, cap, "%02u:%02u:%02u", (unsigned)h, (unsigned)m, (unsigned)(s % 60));
    return text;
}

char *cw_jobfield_cpu_text(uint64_t cpu_ns, char *text, size_t cap)
{
    uint64_t ms = cpu_ns / 1000000u, s = ms / 1000;
    if (s >= 3600)
        return cw_jobfield_elapsed_text(s, text, cap);
    snprintf(text, cap, "%02u:%02u.%03u", (unsigned)(s / 60), (unsigned)(s % 60),
             (unsigned)(ms % 1000));
    return text;
}

/* squeue's form: M:SS, H:MM:SS, D-HH:MM:SS. */
static void short_time(uint64_t s, struct cw_buf *out)
{
    uint64_t d = s / 86400, h = s / 3600 % 24, m = s / 60 % 60;
    if (d > 0)
        cw_buf_addf(out, "%" PRIu64 "-%02u:%02u:%02u", d, (unsigned)h, (unsigned)m,
                    (unsigned)(s % 60));
    else if (h > 0)
        cw_buf_addf(out, "%u:%02u:%02u", (unsigned)h, (unsigned)m, (unsigned)(s % 60));
    else
        cw_buf_addf(out, "%u:%02u", (unsigned)m, (unsigned)(s % 60));
}

static void long_time(const struct cw_fieldrow *r, uint64_t s, struct cw_buf *out)
{
    char text[40];
    if (r->acct)
        cw_buf_add_str(out, cw_jobfield_elapsed_text(s, text, sizeof(text)));
    else
        short_time(s, out);
}

static void moment(const struct cw_fieldrow *r, bool has, int64_t ns, struct cw_buf *out)
{
    char text[32];
    struct tm tm;
    time_t t = (time_t)(ns / CW_NS_PER_S);
    if (!has || localtime_r(&t, &tm) == NULL)
        cw_buf_add_str(out, r->acct ? "Unknown" : "N/A");
    else if (strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) > 0)
        cw_buf_add_str(out, text);
}

static void word(const struct cw_fieldrow *r, const char *s, const char *none, struct cw_buf *out)
{
    (void)r;
    cw_buf_add_str(out, s != NULL && s[0] != '\0' ? s : none);
}

static void number(struct cw_buf *out, uint64_t v)
{
    cw_buf_addf(out, "%" PRIu64, v);
}

static const char *none_of(const struct cw_fieldrow *r) /* what stands for nothing */
{
    return r->acct ? "" : "(null)";
}

static void nodes_text(const struct cw_fieldrow *r, struct cw_buf *out)
{
    cw_autostrv struct cw_strv v = {0};
    const Cw__AttemptRecord *a = attempt(r);
    if (r->step != NULL) {
        cw_hostlist_format(r->step->nodes, r->step->n_nodes, out);
        return;
    }
    if (a == NULL || a->grant == NULL || (r->job->state == CW__STATE__PENDING && !r->acct))
        return;
    if (a->n_more_grants == 0) {
        cw_buf_add_str(out, a->grant->node);
        return;
    }
    cw_strv_add(&v, a->grant->node);
    for (size_t i = 0; i < a->n_more_grants; i++)
        cw_strv_add(&v, a->more_grants[i]->node);
    cw_hostlist_format(v.v, v.n, out);
}

/* One word: programs split lines at blanks. */
static void reason_text(const struct cw_fieldrow *r, struct cw_buf *out)
{
    size_t from = out->len;
    const char *s = r->job->reason;
    if (s == NULL || s[0] == '\0')
        s = r->job->state == CW__STATE__PENDING ? "Scheduling" : "None";
    cw_buf_add_str(out, s);
    for (size_t i = from; i < out->len; i++)
        if (isspace((unsigned char)out->data[i]))
            out->data[i] = '_';
}

/* ---- fields --------------------------------------------------------------------------------- */

#define FIELD(name) static void f_##name(const struct cw_fieldrow *r, struct cw_buf *out)
#define WORD(name, value, none)                                                                    \
    FIELD(name)                                                                                    \
    {                                                                                              \
        word(r, value, none, out);                                                                 \
    }
#define NUMBER(name, value)                                                                        \
    static bool n_##name(const struct cw_fieldrow *r, int64_t *ret)                                                     \
    {                                                                                              \
        uint64_t v = value;                                                                        \
        *ret = v > INT64_MAX ? INT64_MAX : (int64_t)v;                                             \
        return r != NULL;                                                                          \
    }
#define COUNT(name, value)                                                                         \
    NUMBER(name, value)                                                                            \
    FIELD(name)                                                                                    \
    {                                                                                              \
        number(out, value);                                                                        \
    }

FIELD(array_form) /* 12, 12_3, 12_[0-9%2], 12.0 */
{
    cw_jobtext_id(r->job, r->id_max, out);
    if (r->step != NULL)
        cw_buf_addf(out, ".%u", r->step->step);
}
FIELD(raw_id)
{
    number(out, r->job->id);
    if (r->step != NULL)
        cw_buf_addf(out, ".%u", r->step->step);
}
NUMBER(id, r->job->id)
FIELD(job_id)
{
    if (r->acct)
        f_array_form(r, out);
    else
        f_raw_id(r, out);
}
COUNT(array_id, r->job->has_array_id ? r->job->array_id : r->job->id)
FIELD(array_task)
{
    if (r->job->has_index)
        number(out, r->job->index);
    else
        word(r, r->job->pending_indices, "N/A", out);
}
WORD(name, r->step != NULL ? r->step->name : r->job->spec->name, "")
WORD(user, cw_cli_user(r->job->owner), "")
COUNT(uid, r->job->owner->uid)
COUNT(gid, r->job->owner->gid)
FIELD(group)
{
    struct group *g = getgrgid(r->job->owner->gid);
    if (g != NULL)
        cw_buf_add_str(out, g->gr_name);
    else
        number(out, r->job->owner->gid);
}
WORD(account, r->job->spec->account, none_of(r))
WORD(partition, r->job->spec->partition, "")
WORD(qos, r->job->spec->qos, r->acct ? "" : "normal")
WORD(state, cw_state_name(state(r)), "")
WORD(state_letters, cw_state_letters(state(r)), "")
FIELD(reason)
{
    reason_text(r, out);
}
FIELD(nodelist)
{
    size_t before = out->len;
    nodes_text(r, out);
    if (out->len == before && r->acct)
        cw_buf_add_str(out, "None assigned");
}
FIELD(place)
{
    size_t before = out->len;
    if (r->step != NULL || r->job->state != CW__STATE__PENDING)
        nodes_text(r, out);
    if (out->len > before || (r->job->state != CW__STATE__PENDING && r->job->reason == NULL))
        return;
    cw_buf_add_str(out, "(");
    reason_text(r, out);
    cw_buf_add_str(out, ")");
}
WORD(host, attempt(r) != NULL && attempt(r)->grant != NULL && r->job->state != CW__STATE__PENDING
               ? attempt(r)->grant->node
               : NULL, "n/a")
COUNT(nodes, r->step != NULL ? r->step->n_nodes : cw_jobfield_nodes(r->job))
COUNT(cores, cw_jobfield_cores(r->job))
COUNT(req_cores, cw_spec_cores(r->job->spec))
COUNT(tasks, r->step != NULL ? r->step->ntasks : cw_spec_ntasks(r->job->spec))
COUNT(cpus_per_task, cw_spec_cpus_per_task(r->job->spec))
COUNT(gpus, cw_spec_gpus(r->job->spec))
FIELD(gres)
{
    uint32_t n = cw_spec_gpus(r->job->spec);
    const Cw__Settings *s = r->job->spec->settings;
    if (n == 0)
        cw_buf_add_str(out, r->acct ? "" : "N/A");
    else
        cw_buf_addf(out, "gpu:%s%s%u", s->gpu_type != NULL ? s->gpu_type : "",
                    s->gpu_type != NULL ? ":" : "", n);
}
NUMBER(mem, cw_jobfield_mem(r->job))
FIELD(mem)
{
    char text[32];
    uint64_t v = cw_jobfield_mem(r->job);
    if (v == 0)
        cw_buf_add_str(out, r->acct ? "" : "0");
    else
        cw_buf_add_str(out, cw_size_format(v, text, sizeof(text)));
}
NUMBER(elapsed, ran_s(r))
FIELD(elapsed)
{
    long_time(r, ran_s(r), out);
}
FIELD(elapsed_raw)
{
    number(out, ran_s(r));
}
NUMBER(limit, limit_s(r))
FIELD(limit)
{
    if (limit_s(r) == CW_DURATION_UNLIMITED)
        cw_buf_add_str(out, "UNLIMITED");
    else
        long_time(r, limit_s(r), out);
}
FIELD(limit_raw)
{
    if (limit_s(r) == CW_DURATION_UNLIMITED)
        cw_buf_add_str(out, "UNLIMITED");
    else
        number(out, limit_s(r) / 60);
}
NUMBER(left, limit_s(r) > ran_s(r) ? limit_s(r) - ran_s(r) : 0)
FIELD(left)
{
    uint64_t limit = limit_s(r), ran = ran_s(r);
    if (limit == CW_DURATION_UNLIMITED)
        cw_buf_add_str(out, "UNLIMITED");
    else
        long_time(r, limit > ran ? limit - ran : 0, out);
}
FIELD(start)
{
    int64_t ns = 0;
    bool has = start_ns(r, &ns);
    moment(r, has, ns, out);
}
FIELD(end)
{
    int64_t ns = 0, start;
    bool has = end_ns(r, &ns);
    if (!has && !r->acct && limit_s(r) != CW_DURATION_UNLIMITED && start_ns(r, &start)) {
        has = true; /* at the latest, as squeue has it */
        ns = start + (int64_t)limit_s(r) * CW_NS_PER_S;
    }
    moment(r, has, ns, out);
}
FIELD(submit)
{
    moment(r, true, r->job->submit_ns, out);
}
NUMBER(submit, (uint64_t)r->job->submit_ns)
FIELD(eligible)
{
    moment(r, r->job->has_eligible_ns, r->job->eligible_ns, out);
}
static bool n_priority(const struct cw_fieldrow *r, int64_t *ret)
{
    *ret = r->job->priority;
    return r->job->has_priority;
}
FIELD(priority)
{
    if (r->job->has_priority)
        cw_buf_addf(out, "%" PRId64, r->job->priority);
    else
        cw_buf_add_str(out, r->acct ? "" : "N/A");
}
FIELD(nice)
{
    cw_buf_addf(out, "%d", r->job->spec->nice);
}
WORD(comment, r->job->spec->comment, none_of(r))
WORD(constraint, r->job->spec->constraint, none_of(r))
WORD(req_nodes, r->job->spec->nodelist, "")
WORD(exclude, r->job->spec->exclude, "")
WORD(licenses, r->job->spec->licenses, none_of(r))
WORD(reservation, r->job->spec->reservation, none_of(r))
WORD(workdir, r->job->spec->workdir, "")
WORD(std_in, r->job->spec->stdin_path, "/dev/null")
WORD(std_out, attempt(r) != NULL && attempt(r)->stdout_path != NULL ? attempt(r)->stdout_path
                                                                      : r->job->spec->stdout_path,
     "")
WORD(std_err, attempt(r) != NULL && attempt(r)->stderr_path != NULL ? attempt(r)->stderr_path
                                                                      : r->job->spec->stderr_path,
     "")
WORD(exclusive, r->job->spec->exclusive ? "NO" : "OK", "")
FIELD(sched_nodes)
{
    if (r->job->n_start_nodes == 0)
        cw_buf_add_str(out, "(null)");
    else
        cw_hostlist_format(r->job->start_nodes, r->job->n_start_nodes, out);
}
FIELD(dependency)
{
    static const char *const kinds[] = {"", "afterok", "afterany", "afternotok", "after",
                                        "aftercorr", "singleton"};
    size_t before = out->len;
    for (size_t i = 0; i < r->job->spec->n_dependencies; i++) {
        const Cw__Dependency *d = r->job->spec->dependencies[i];
        if (d->satisfied || (size_t)d->kind >= CW_ARRAY_LEN(kinds))
            continue;
        cw_buf_addf(out, "%s%s", out->len > before ? "," : "", kinds[d->kind]);
        if (d->has_job_id)
            cw_buf_addf(out, ":%" PRIu64, d->job_id);
        if (d->has_index)
            cw_buf_addf(out, "_%" PRIu64, d->index);
    }
    if (out->len == before)
        cw_buf_add_str(out, none_of(r));
}
FIELD(labels)
{
    for (size_t i = 0; i < r->job->spec->n_labels; i++)
        cw_buf_addf(out, "%s%s=%s", i == 0 ? "" : ",", r->job->spec->labels[i]->key,
                    r->job->spec->labels[i]->value);
}
FIELD(exit_code)
{
    const Cw__AttemptRecord *a = attempt(r);
    if (r->step != NULL)
        cw_buf_addf(out, "%u:%u", r->step->exit_code, r->step->signal);
    else
        cw_buf_addf(out, "%u:%u", a != NULL ? a->exit_code : 0, a != NULL ? a->signal : 0);
}
FIELD(derived_exit)
{
    uint32_t code = 0, sig = 0;
    for (size_t i = 0; i < r->job->n_steps; i++)
        if (r->job->steps[i]->exit_code > code || (code == 0 && r->job->steps[i]->signal > 0)) {
            code = r->job->steps[i]->exit_code;
            sig = r->job->steps[i]->signal;
        }
    cw_buf_addf(out, "%u:%u", code, sig);
}
FIELD(exit_status)
{
    if (r->job->has_exit_status)
        cw_buf_addf(out, "%d", r->job->exit_status);
}
WORD(cause, r->step != NULL ? (r->step->has_cause ? cw_cause_name(r->step->cause) : NULL)
            : attempt(r) != NULL && attempt(r)->has_cause ? cw_cause_name(attempt(r)->cause)
                                                          : NULL,
     "")
WORD(message, r->step != NULL ? r->step->message : attempt(r) != NULL ? attempt(r)->message : NULL,
     "")
COUNT(attempt, attempt(r) != NULL ? attempt(r)->attempt : 0)
COUNT(restarts, attempt(r) != NULL && attempt(r)->attempt > 0 ? attempt(r)->attempt - 1 : 0)
static void cpu_set(const struct cw_fieldrow *r, struct cw_buf *out, bool cores)
{
    const Cw__AttemptRecord *a = attempt(r);
    if (a == NULL || a->grant == NULL)
        return;
    cw_buf_add_str(out, cores ? a->grant->cores : a->grant->cpus);
    for (size_t i = 0; i < a->n_more_grants; i++)
        cw_buf_addf(out, " %s:%s", a->more_grants[i]->node,
                    cores ? a->more_grants[i]->cores : a->more_grants[i]->cpus);
}
FIELD(core_set)
{
    cpu_set(r, out, true);
}
FIELD(processors)
{
    cpu_set(r, out, false);
}

static uint64_t cpu_ns(const struct cw_fieldrow *r)
{
    const Cw__Usage *u = usage(r);
    return u != NULL ? u->cpu_user_ns + u->cpu_sys_ns : 0;
}
static void cpu_text(const struct cw_fieldrow *r, uint64_t ns, struct cw_buf *out)
{
    char text[40];
    cw_buf_add_str(out, usage(r) != NULL ? cw_jobfield_cpu_text(ns, text, sizeof(text)) : "");
}
NUMBER(total_cpu, cpu_ns(r))
FIELD(total_cpu)
{
    cpu_text(r, cpu_ns(r), out);
}
FIELD(user_cpu)
{
    cpu_text(r, usage(r) != NULL ? usage(r)->cpu_user_ns : 0, out);
}
FIELD(system_cpu)
{
    cpu_text(r, usage(r) != NULL ? usage(r)->cpu_sys_ns : 0, out);
}
FIELD(cpu_time)
{
    long_time(r, ran_s(r) * cw_jobfield_cores(r->job), out);
}
COUNT(cpu_time_raw, ran_s(r) * cw_jobfield_cores(r->job))
static void kib(bool has, uint64_t bytes, struct cw_buf *out)
{
    if (has)
        cw_buf_addf(out, "%" PRIu64 "K", (bytes + 1023) / 1024);
}
/* What belongs to the processes alone: anonymous memory of the whole job where it was measured. */
static uint64_t rss(const struct cw_fieldrow *r)
{
    const Cw__Usage *u = usage(r);
    return u == NULL                    ? 0
           : u->has_mem_anon_peak_bytes ? u->mem_anon_peak_bytes
           : u->has_maxrss_bytes        ? u->maxrss_bytes
                                        : u->mem_peak_bytes;
}
NUMBER(max_rss, rss(r))
FIELD(max_rss)
{
    kib(usage(r) != NULL, rss(r), out);
}
NUMBER(mem_peak, usage(r) != NULL ? usage(r)->mem_peak_bytes : 0)
FIELD(mem_peak)
{
    kib(usage(r) != NULL && usage(r)->has_mem_peak_bytes,
        usage(r) != NULL ? usage(r)->mem_peak_bytes : 0, out);
}
FIELD(throttled)
{
    if (usage(r) != NULL && usage(r)->has_throttled_ns)
        cpu_text(r, usage(r)->throttled_ns, out);
}

/* ---- the table ------------------------------------------------------------------------------ */

#define L false
#define R true
static const struct cw_jobfield fields[] = {
#define NA(name, letter, heading) {name, letter, heading, L, NULL, NULL}
#include "cmds/jobfieldtable.h"
#undef NA
};
#undef L
#undef R

size_t cw_jobfield_count(void)
{
    return CW_ARRAY_LEN(fields);
}

const struct cw_jobfield *cw_jobfield_nth(size_t i)
{
    return &fields[i];
}

const struct cw_jobfield *cw_jobfield_find(const char *name, size_t len)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(fields); i++)
        if (strlen(fields[i].name) == len && strncasecmp(fields[i].name, name, len) == 0)
            return &fields[i];
    return NULL;
}

const struct cw_jobfield *cw_jobfield_letter(char letter)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(fields); i++)
        if (fields[i].letter == letter && letter != 0)
            return &fields[i];
    return NULL;
}

int cw_jobfield_unknown(const char *name, size_t len, struct cw_error *err)
{
    for (size_t n = len; n >= 3; n--) /* one that begins alike */
        for (size_t i = 0; i < CW_ARRAY_LEN(fields); i++)
            if (strncasecmp(fields[i].name, name, n) == 0)
                return cw_fail(err, -EINVAL, "field '%.*s' is unknown, did you mean %s?",
                               (int)(len < 64 ? len : 64), name, fields[i].name);
    return cw_fail(err, -EINVAL, "field '%.*s' is unknown (--helpformat lists all)",
                   (int)(len < 64 ? len : 64), name);
}

void cw_jobfield_text(const struct cw_jobfield *f, const struct cw_fieldrow *r, struct cw_buf *out)
{
    if (f->text != NULL)
        f->text(r, out);
    else
        cw_buf_add_str(out, "N/A");
}
