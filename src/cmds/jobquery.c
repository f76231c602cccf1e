/* See jobquery.h. */
#include "cmds/jobquery.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/hostlist.h"
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
    cw_strv_fini(&q->accounts);
    cw_strv_fini(&q->qos);
    cw_strv_fini(&q->nodes);
    cw_strv_fini(&q->label_text);
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

/* A word that stands for ids. */
static bool is_word(const char *text)
{
    return strcmp(text, "last") == 0 || (text[0] == '@' && text[1] != '\0');
}

static int check_id(const char *text, struct cw_error *err)
{
    struct cw_selector s;
    if (is_word(text))
        return 0;
    int rc = cw_selector_parse(text, &s, err);
    if (rc == 0)
        cw_selector_fini(&s);
    return rc;
}

static int add_ids(struct cw_jobquery *q, const char *text, struct cw_error *err)
{
    cw_autostrv struct cw_strv words = {0};
    split(text, &words);
    for (size_t i = 0; i < words.n; i++) {
        int rc = check_id(words.v[i], err);
        if (rc != 0)
            return rc;
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
        if (strcasecmp(words.v[i], "all") == 0) {
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

static int add_label(struct cw_jobquery *q, const char *text, struct cw_error *err)
{
    const char *eq = strchr(text, '=');
    size_t n = q->filter.n_labels;
    if (eq == NULL || eq == text)
        return cw_fail(err, -EINVAL, "label '%s' is not KEY=VALUE", text);
    if (n == CW_ARRAY_LEN(q->labels))
        return cw_fail(err, -E2BIG, "more than %zu labels", n);
    cw__key_value__init(&q->labels[n]);
    cw_strv_add_take(&q->label_text, cw_xstrndup(text, (size_t)(eq - text)));
    q->labels[n].key = q->label_text.v[q->label_text.n - 1];
    cw_strv_add(&q->label_text, eq + 1);
    q->labels[n].value = q->label_text.v[q->label_text.n - 1];
    q->filter.n_labels++;
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
    } else if (strcmp(opt->name, "states") == 0 || strcmp(opt->name, "state") == 0) {
        rc = add_states(q, value, err);
    } else if (strcmp(opt->name, "account") == 0 || strcmp(opt->name, "accounts") == 0) {
        split(value, &q->accounts);
    } else if (strcmp(opt->name, "qos") == 0) {
        split(value, &q->qos);
    } else if (strcmp(opt->name, "nodelist") == 0) {
        rc = cw_hostlist_parse(value, &q->nodes, err);
    } else if (strcmp(opt->name, "label") == 0) {
        rc = add_label(q, value, err);
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
    f->n_accounts = q->accounts.n;
    f->accounts = q->accounts.v;
    f->n_qos = q->qos.n;
    f->qos = q->qos.v;
    f->n_nodes = q->nodes.n;
    f->nodes = q->nodes.v;
    for (size_t i = 0; i < f->n_labels; i++)
        q->label_rows[i] = &q->labels[i];
    f->labels = q->label_rows;
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
    bool narrowed = q->filter.n_uids + q->filter.n_states + q->filter.n_labels + q->names.n +
                        q->partitions.n + q->accounts.n + q->qos.n + q->nodes.n >
                    0;
    if (q->ids.n == 0 || rows > 0 || narrowed)
        return -1;
    for (size_t i = 0; i < q->ids.n; i++)
        fprintf(stderr, "%s: job %s does not exist\n", c->name, q->ids.v[i]);
    return CW_EXIT_REFUSED;
}

/* ---- last, @NAME ---------------------------------------------------------------------------- */

static void take_id(const Cw__JobInfo *j, int64_t now_ns, void *arg)
{
    (void)now_ns;
    uint64_t id = j->has_array_id ? j->array_id : j->id;
    struct cw_strv *ids = arg;
    cw_autofree char *text = cw_xasprintf("%llu", (unsigned long long)id);
    if (ids->n == 0 || strcmp(ids->v[ids->n - 1], text) != 0)
        cw_strv_add_take(ids, cw_steal(text));
}

/* My jobs of that name (NULL: any): those that live, or the newest. */
static int ask_ids(struct cw_cli *c, const char *name, bool newest, struct cw_strv *ret)
{
    uint32_t uid = geteuid();
    char *names[] = {(char *)name};
    Cw__JobFilter f = CW__JOB_FILTER__INIT;
    Cw__JobsRequest req = CW__JOBS_REQUEST__INIT;
    ProtobufCMessage *m;
    f.n_uids = 1;
    f.uids = &uid;
    f.n_names = name != NULL ? 1 : 0;
    f.names = names;
    req.filter = &f;
    if (!newest)
        return cw_jobquery_each(c, &req, take_id, ret);
    f.has_include_finished = f.include_finished = true;
    req.has_newest_first = req.newest_first = true;
    req.has_limit = true;
    req.limit = 1;
    int rc = cw_cli_call(c, CW_KIND_JOBS, &req.base, 0, &m);
    if (rc < 0 && ((const Cw__JobsReply *)m)->n_jobs > 0)
        take_id(((const Cw__JobsReply *)m)->jobs[0], 0, ret);
    return rc;
}

int cw_jobquery_resolve(struct cw_cli *c, struct cw_strv *ids, size_t from)
{
    cw_autostrv struct cw_strv out = {0};
    size_t i = from;
    while (i < ids->n && !is_word(ids->v[i]))
        i++;
    if (i == ids->n)
        return -1;
    for (i = 0; i < ids->n; i++) {
        const char *name = ids->v[i][0] == '@' ? ids->v[i] + 1 : NULL;
        size_t before = out.n;
        int rc = -1;
        if (i < from || !is_word(ids->v[i])) {
            cw_strv_add(&out, ids->v[i]);
            continue;
        }
        if (name != NULL)
            rc = ask_ids(c, name, false, &out);
        if (rc < 0 && out.n == before)
            rc = ask_ids(c, name, true, &out);
        if (rc >= 0)
            return rc;
        if (out.n == before) {
            fprintf(stderr, "%s: %s: you have no such job\n", c->name, ids->v[i]);
            return CW_EXIT_REFUSED;
        }
    }
    cw_strv_fini(ids);
    *ids = out;
    out = (struct cw_strv){0};
    return -1;
}

int cw_jobquery_check_ids(const struct cw_cli *c)
{
    for (size_t i = 0; i < c->operand.n; i++) {
        struct cw_error err;
        if (check_id(c->operand.v[i], &err) != 0)
            return cw_cli_usage(c, "%s", err.text);
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
