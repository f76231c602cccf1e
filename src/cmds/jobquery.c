/* See jobquery.h. */
#include "cmds/jobquery.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spec/outcome.h"
#include "spec/selector.h"

void cw_jobquery_init(struct cw_jobquery *q)
{
    memset(q, 0, sizeof(*q));
    cw__job_filter__init(&q->filter);
}

void cw_jobquery_fini(struct cw_jobquery *q)
{
    cw_strv_fini(&q->ids);
    cw_strv_fini(&q->names);
    cw_strv_fini(&q->partitions);
}

/* Commas split, but not inside the brackets of 12_[1,3]. */
static void split(const char *text, struct cw_strv *out)
{
    int depth = 0;
    const char *start = text;
    for (const char *p = text;; p++) {
        depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
        if (*p != '\0' && (*p != ',' || depth > 0))
            continue;
        if (p > start)
            cw_strv_add_take(out, cw_xstrndup(start, (size_t)(p - start)));
        if (*p == '\0')
            return;
        start = p + 1;
    }
}

static int add_ids(struct cw_jobquery *q, const char *text, struct cw_error *err)
{
    cw_autostrv struct cw_strv words = {0};
    split(text, &words);
    for (size_t i = 0; i < words.n; i++) {
        struct cw_selector s;
        int rc = cw_selector_parse(words.v[i], &s, err);
        if (rc != 0)
            return rc;
        cw_selector_fini(&s);
        cw_strv_add(&q->ids, words.v[i]);
    }
    return 0;
}

static int add_users(struct cw_jobquery *q, const char *text, struct cw_error *err)
{
    cw_autostrv struct cw_strv words = {0};
    split(text, &words);
    for (size_t i = 0; i < words.n; i++) {
        if (q->filter.n_uids == CW_ARRAY_LEN(q->uids))
            return cw_fail(err, -E2BIG, "more than %zu users", CW_ARRAY_LEN(q->uids));
        int rc = cw_cli_uid(words.v[i], &q->uids[q->filter.n_uids], err);
        if (rc != 0)
            return rc;
        q->filter.n_uids++;
    }
    return 0;
}

static int add_states(struct cw_jobquery *q, const char *text, struct cw_error *err)
{
    cw_autostrv struct cw_strv words = {0};
    split(text, &words);
    for (size_t i = 0; i < words.n; i++) {
        if (strcmp(words.v[i], "all") == 0) {
            q->all_states = true;
            continue;
        }
        if (q->filter.n_states == CW_ARRAY_LEN(q->states))
            return cw_fail(err, -E2BIG, "more than %zu states", CW_ARRAY_LEN(q->states));
        Cw__State *s = &q->states[q->filter.n_states];
        if (!cw_state_parse(words.v[i], s))
            return cw_fail(err, -EINVAL,
                           "state '%s' is unknown, allowed: all, or PENDING PD, STARTING CF, "
                           "RUNNING R, COMPLETING CG, COMPLETED CD, FAILED F, CANCELLED CA, "
                           "TIMEOUT TO, OUT_OF_MEMORY OOM, NODE_FAIL NF, LAUNCH_FAILED LF, "
                           "DEADLINE DL, PREEMPTED PR",
                           words.v[i]);
        if (cw_state_terminal(*s))
            q->filter.has_include_finished = q->filter.include_finished = true;
        q->filter.n_states++;
    }
    return 0;
}

int cw_jobquery_option(struct cw_jobquery *q, const struct cw_arg *opt, const char *value,
                       struct cw_error *err)
{
    int rc = 0;
    if (strcmp(opt->name, "jobs") == 0) {
        rc = add_ids(q, value, err);
    } else if (strcmp(opt->name, "user") == 0) {
        rc = add_users(q, value, err);
    } else if (strcmp(opt->name, "me") == 0) {
        q->uids[0] = geteuid();
        q->filter.n_uids = 1;
    } else if (strcmp(opt->name, "name") == 0) {
        split(value, &q->names);
    } else if (strcmp(opt->name, "partition") == 0) {
        split(value, &q->partitions);
    } else if (strcmp(opt->name, "states") == 0) {
        rc = add_states(q, value, err);
    } else {
        return 0;
    }
    return rc != 0 ? rc : 1;
}

int cw_jobquery_operands(struct cw_jobquery *q, const struct cw_strv *operands,
                         struct cw_error *err)
{
    for (size_t i = 0; i < operands->n; i++) {
        int rc = add_ids(q, operands->v[i], err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

Cw__JobFilter *cw_jobquery_filter(struct cw_jobquery *q)
{
    Cw__JobFilter *f = &q->filter;
    f->n_ids = q->ids.n;
    f->ids = q->ids.v;
    f->n_names = q->names.n;
    f->names = q->names.v;
    f->n_partitions = q->partitions.n;
    f->partitions = q->partitions.v;
    f->uids = q->uids;
    f->states = q->states;
    if (q->all_states) {
        f->n_states = 0;
        f->has_include_finished = f->include_finished = true;
    }
    return f;
}

int cw_jobquery_unknown(const struct cw_cli *c, const struct cw_jobquery *q, size_t rows)
{
    bool narrowed = q->filter.n_uids + q->filter.n_states + q->names.n + q->partitions.n > 0;
    if (q->ids.n == 0 || rows > 0 || narrowed)
        return -1;
    for (size_t i = 0; i < q->ids.n; i++)
        fprintf(stderr, "%s: job %s does not exist\n", c->name, q->ids.v[i]);
    return CW_EXIT_REFUSED;
}

int cw_jobquery_check_ids(const struct cw_cli *c)
{
    for (size_t i = 0; i < c->operand.n; i++) {
        struct cw_selector s;
        struct cw_error err;
        if (cw_selector_parse(c->operand.v[i], &s, &err) != 0)
            return cw_cli_usage(c, "%s", err.text);
        cw_selector_fini(&s);
    }
    return -1;
}

int cw_jobquery_each(struct cw_cli *c, Cw__JobsRequest *req,
                     void (*fn)(const Cw__JobInfo *j, int64_t now_ns, void *arg), void *arg)
{
    for (;;) {
        ProtobufCMessage *m;
        int rc = cw_cli_call(c, CW_KIND_JOBS, &req->base, 0, &m);
        if (rc >= 0)
            return rc;
        const Cw__JobsReply *r = (const Cw__JobsReply *)m;
        for (size_t i = 0; i < r->n_jobs; i++)
            fn(r->jobs[i], r->now_ns, arg);
        if (!r->more || r->n_jobs == 0)
            return -1;
        const Cw__JobInfo *last = r->jobs[r->n_jobs - 1];
        req->has_after_id = req->has_after_attempt = true;
        req->after_id = last->id;
        req->after_attempt = last->attempt != NULL ? last->attempt->attempt : 0;
        cw_arena_reset(c->arena);
    }
}
