/* Runs the case files of testsuite/sched (format: its README), then what needs numbers too large
 * for a file: the cost of passes. */
#include "sched/pass.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "model/model_fixture.h"

#define S INT64_C(1000000000)
#define MAX_WORDS 24

struct cases {
    struct fix f;
    const char *path;
    int line;
    char text[512];         /* the line, for messages */
    char *words[MAX_WORDS]; /* words[n] is NULL */
    char *rest;             /* behind the second word */
    struct cw_pass_policy policy;
    struct cw_strtable *jobs; /* name -> id */
    struct cw_strv names;     /* owns the keys */
    struct cw_strv grants;    /* of the last pass */
    size_t n_seen;            /* of them matched */
    size_t n_starts;          /* a start is one line per node */
    int64_t now;
    bool has_partition;
};

#define CASE_FAIL(c, ...)                                                \
    do {                                                                 \
        print_message("# %s:%d: %s\n", (c)->path, (c)->line, (c)->text); \
        fail_msg(__VA_ARGS__);                                           \
    } while (0)

/* The value of KEY=VALUE, "" for a bare KEY, NULL when it is not there. */
static const char *opt(struct cases *c, const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 1; c->words[i] != NULL; i++) {
        if (strncmp(c->words[i], key, n) == 0 && c->words[i][n] == '=')
            return c->words[i] + n + 1;
        if (i > 1 && strcmp(c->words[i], key) == 0)
            return "";
    }
    return NULL;
}

static uint32_t opt_number(struct cases *c, const char *key)
{
    const char *v = opt(c, key);
    return v != NULL ? (uint32_t)strtoul(v, NULL, 10) : 0;
}

static uint64_t opt_size(struct cases *c, const char *key)
{
    const char *v = opt(c, key);
    uint64_t bytes = 0;
    if (v != NULL && cw_size_parse(v, 1, &bytes, NULL) < 0)
        CASE_FAIL(c, "%s is not a size", v);
    return bytes;
}

static uint64_t opt_time(struct cases *c, const char *key)
{
    const char *v = opt(c, key);
    uint64_t s = 0;
    if (v != NULL && cw_duration_parse(v, &s, NULL) < 0)
        CASE_FAIL(c, "%s is not a duration", v);
    return s;
}

static uint64_t job_id(struct cases *c, const char *name)
{
    void *id = cw_strtable_find(c->jobs, name);
    if (id == NULL)
        CASE_FAIL(c, "no job %s", name);
    return (uintptr_t)id;
}

static struct cw_job *job(struct cases *c, const char *name)
{
    struct cw_job *j = cw_model_job(c->f.m, job_id(c, name));
    if (j == NULL)
        CASE_FAIL(c, "job %s is not live", name);
    return j;
}

/* "a" or "a_3" to an element. */
static uint64_t element(struct cases *c, const char *name)
{
    char base[64];
    snprintf(base, sizeof(base), "%s", name);
    char *index = strchr(base, '_');
    if (index == NULL)
        return job_id(c, base);
    *index++ = '\0';
    struct cw_job *j = job(c, base);
    return cw_job_element_id(j, cw_idset_rank(&j->array->indices, strtoull(index, NULL, 10)));
}

static struct cw_node *node(struct cases *c)
{
    struct cw_node *n = cw_model_node(c->f.m, c->words[1]);
    if (n == NULL)
        CASE_FAIL(c, "no node %s", c->words[1]);
    return n;
}

/* ---- directives ------------------------------------------------------------------------------ */

static int64_t shortest_first(void *ctx, const struct cw_sched_job *j)
{
    (void)ctx;
    return -(int64_t)(j->time_limit_s / 60);
}
static const struct cw_sched_ops shortest = {.priority = shortest_first};

static void do_policy(struct cases *c)
{
    const char *word = c->words[1];
    c->policy.depth = opt_number(c, "depth");
    c->policy.backfill = strcmp(word, "easy") == 0           ? CW_BACKFILL_EASY
                         : strcmp(word, "conservative") == 0 ? CW_BACKFILL_CONSERVATIVE
                                                             : CW_BACKFILL_NONE;
    bool strict = strcmp(word, "strict") == 0 || c->policy.backfill != CW_BACKFILL_NONE;
    c->policy.caps = strict ? CW_SCHED_CAP_STRICT : 0;
    c->policy.ops = strcmp(c->words[1], "shortest") == 0 ? &shortest : NULL;
}

static void do_partition(struct cases *c)
{
    struct cw_partition p = {
        .name = c->words[1],
        .is_default = opt(c, "default") != NULL,
        .all_nodes = opt(c, "nodes") == NULL,
        .default_mem_bytes = opt_size(c, "mem"),
        .max_time_s = opt_time(c, "max_time"),
        .isolation = opt(c, "isolation"),
    };
    if (!p.all_nodes) {
        p.nodes = cw_strtable_create();
        for (char *w = strtok_r((char *)opt(c, "nodes"), ",", &c->rest); w != NULL;
             w = strtok_r(NULL, ",", &c->rest))
            cw_strtable_set(p.nodes, w, w);
    }
    fix_partition(&c->f, &p);
    if (p.nodes != NULL)
        cw_strtable_destroy(p.nodes);
    c->has_partition = true;
}

static void need_partition(struct cases *c)
{
    if (!c->has_partition)
        fix_partition(
            &c->f, &(struct cw_partition){.name = "main", .is_default = true, .all_nodes = true});
    c->has_partition = true;
}

static void do_node(struct cases *c)
{
    need_partition(c);
    struct cw_node *n = fix_node(&c->f, c->words[1], opt_number(c, "cores"), opt_size(c, "mem"),
                                 opt_number(c, "gpus"), opt(c, "gpu"));
    if (opt(c, "labels") != NULL)
        fix_labels(&c->f, n, opt(c, "labels"));
}

static struct fix_job job_of_words(struct cases *c)
{
    struct fix_job j = {
        .array = opt(c, "array"),
        .partition = opt(c, "partition"),
        .isolation = opt(c, "isolation"),
        .gpu_type = opt(c, "gpu"),
        .cores = opt_number(c, "cores"),
        .gpus = opt_number(c, "gpus"),
        .throttle = opt_number(c, "throttle"),
        .mem_bytes = opt_size(c, "mem"),
        .time_limit_s = opt_time(c, "time"),
        .time_est_s = opt_time(c, "est"),
        .ntasks = opt_number(c, "tasks"),
        .nodes_min = opt_number(c, "nodes"),
        .nodes_max = opt_number(c, "most_nodes"),
        .per_node = opt_number(c, "per_node"),
        .gpus_node = opt_number(c, "gpus_node"),
        .gpus_task = opt_number(c, "gpus_task"),
        .mem_cpu = opt_size(c, "mem_cpu"),
        .nodelist = opt(c, "nodelist"),
        .exclude = opt(c, "exclude"),
        .constraint = opt(c, "constraint"),
        .prefer = opt(c, "prefer"),
        .exclusive = opt(c, "exclusive") != NULL,
        .hold = opt(c, "hold") != NULL,
    };
    const char *ok = opt(c, "afterok"), *any = opt(c, "afterany");
    if (ok != NULL || any != NULL) {
        j.deps[0].kind = ok != NULL ? CW__DEPENDENCY_KIND__AFTEROK : CW__DEPENDENCY_KIND__AFTERANY;
        j.deps[0].id = job_id(c, ok != NULL ? ok : any);
    }
    return j;
}

static void do_job(struct cases *c)
{
    need_partition(c);
    struct fix_job j = job_of_words(c);
    j.name = c->words[1];
    cw_strv_add(&c->names, c->words[1]);
    cw_strtable_set(c->jobs, c->names.v[c->names.n - 1],
                    (void *)(uintptr_t)fix_submit(&c->f, &j)->id);
}

static void do_down(struct cases *c) { cw_model_node_up(c->f.m, node(c), false, c->now); }
static void do_up(struct cases *c) { cw_model_node_up(c->f.m, node(c), true, c->now); }
static void do_drain(struct cases *c)
{
    cw_model_node_drain(c->f.m, node(c), true, c->rest, 0, c->now);
}
static void do_resume(struct cases *c)
{
    cw_model_node_drain(c->f.m, node(c), false, NULL, 0, c->now);
}
static void do_hold(struct cases *c)
{
    cw_model_hold(c->f.m, job(c, c->words[1]), true, 0, false, c->now);
}
static void do_release(struct cases *c)
{
    cw_model_hold(c->f.m, job(c, c->words[1]), false, 0, false, c->now);
}
static void do_cancel(struct cases *c)
{
    cw_model_cancel(c->f.m, job(c, c->words[1]), NULL, 0, c->now);
}

/* Every node of it says so, the head first. */
static void do_end(struct cases *c)
{
    uint64_t id = element(c, c->words[1]);
    const struct cw_node *nodes[16];
    const struct cw_attempt *a = cw_model_attempt(c->f.m, id);
    uint32_t n = a != NULL ? a->n_parts : 0, attempt = a != NULL ? a->attempt : 0;
    assert_true(n <= CW_ARRAY_LEN(nodes));
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = a->parts[i].node;
    for (uint32_t i = 0; i < n || n == 0; i++)
        if (n == 0 || fix_part_ended(&c->f, nodes[i], id, attempt, CW__CAUSE__CAUSE_EXIT, 0, true,
                                     c->now) != 0)
            CASE_FAIL(c, "%s does not run", c->words[1]);
}

static void do_fault(struct cases *c)
{
    uint64_t id = element(c, c->words[1]);
    const struct cw_attempt *a = cw_model_attempt(c->f.m, id);
    if (a == NULL ||
        fix_ended(&c->f, id, a->attempt, CW__CAUSE__CAUSE_LAUNCH_NODE, 0, true, c->now) != 0)
        CASE_FAIL(c, "%s does not run", c->words[1]);
}

/* One line a node: "JOB[_INDEX] NODE tasks=N cores=... ". */
static void note_part(struct cases *c, const struct cw_job *j, uint64_t ordinal,
                      const struct cw_partgrant *part)
{
    const struct cw_node *n = part->node;
    const Cw__Grant *g = part->grant;
    char index[32] = "", mem[32];
    cw_autobuf struct cw_buf gpus = {0};
    struct cw_idset set = {0};
    for (size_t i = 0; i < g->n_gpus; i++)
        cw_idset_add(&set, g->gpus[i]->index, g->gpus[i]->index);
    cw_idset_format(&set, &gpus);
    cw_idset_fini(&set);
    if (j->is_array)
        snprintf(index, sizeof(index), "_%llu", (unsigned long long)cw_job_index(j, ordinal));
    cw_strv_add_take(&c->grants, cw_xasprintf("%s%s %s tasks=%u cores=%s cpus=%s gpus=%s mem=%s ",
                                              j->name, index, n->name, g->ntasks, g->cores, g->cpus,
                                              cw_buf_str(&gpus),
                                              cw_size_format(g->mem_bytes, mem, sizeof(mem))));
}

static void on_grant(struct cw_job *j, uint64_t ordinal, const struct cw_partgrant *parts,
                     size_t n_parts, void *arg)
{
    struct cases *c = arg;
    for (size_t i = 0; i < n_parts; i++)
        note_part(c, j, ordinal, &parts[i]);
    c->n_starts++;
    cw_model_grant(c->f.m, j, ordinal, parts, n_parts, c->now);
}

static void nothing_left(struct cases *c)
{
    if (c->n_seen < c->grants.n)
        CASE_FAIL(c, "the pass also started: %s", c->grants.v[c->n_seen]);
}

static void do_pass(struct cases *c)
{
    cw_strv_fini(&c->grants);
    memset(&c->grants, 0, sizeof(c->grants));
    c->n_seen = c->n_starts = 0;
    c->now += 2 * S;
    struct cw_pass_stats stats;
    cw_pass_run(c->f.m, &c->policy, c->now, opt_number(c, "max"), on_grant, c, &stats);
    assert_int_equal(stats.started, c->n_starts);
    cw_autobuf struct cw_buf b = {0};
    if (cw_model_selfcheck(c->f.m, &b) != 0)
        CASE_FAIL(c, "%s", cw_buf_str(&b));
}

static void do_start(struct cases *c)
{
    if (c->n_seen == c->grants.n)
        CASE_FAIL(c, "the pass started nothing more");
    const char *grant = c->grants.v[c->n_seen++];
    for (size_t i = 1; c->words[i] != NULL; i++) {
        cw_autofree char *want = cw_xasprintf("%s%s ", i == 1 ? "" : " ", c->words[i]);
        const char *at = strstr(grant, want);
        if (at == NULL || (i == 1 && at != grant))
            CASE_FAIL(c, "the pass started: %s", grant);
    }
}

static void do_running(struct cases *c)
{
    uint64_t id = element(c, c->words[1]);
    const struct cw_attempt *a = cw_model_attempt(c->f.m, id);
    if (a == NULL || fix_started(&c->f, id, a->attempt, c->now) != 0)
        CASE_FAIL(c, "%s was not granted", c->words[1]);
}

static void do_reason(struct cases *c)
{
    const char *is = cw_reason_word(cw_job_reason(job(c, c->words[1])));
    if (strcmp(is, c->words[2]) != 0)
        CASE_FAIL(c, "the reason is %s", is);
}

static void do_why(struct cases *c)
{
    struct cw_strv lines = {0};
    bool found = false;
    cw_pass_explain(c->f.m, &c->policy, job(c, c->words[1]), c->now, &lines);
    for (size_t i = 0; i < lines.n; i++)
        found = found || strstr(lines.v[i], c->rest) != NULL;
    for (size_t i = 0; !found && i < lines.n; i++)
        print_message("# it says: %s\n", lines.v[i]);
    cw_strv_fini(&lines);
    if (!found)
        CASE_FAIL(c, "no line says so");
}

struct seen {
    const struct cw_job *j;
    int64_t start_ns;
    struct cw_buf nodes;
};

static bool on_estimate(struct cw_job *j, int64_t start_ns, const struct cw_picks *where, void *arg)
{
    struct seen *s = arg;
    if (s->j != j)
        return true;
    s->start_ns = start_ns;
    for (uint32_t i = 0; i < where->n; i++)
        cw_buf_addf(&s->nodes, "%s%s", i > 0 ? "," : "", where->v[i].node->name);
    return false;
}

/* estimate JOB SECONDS NODES: so long after the last pass it starts there. */
static void do_estimate(struct cases *c)
{
    struct seen s = {.j = job(c, c->words[1]), .start_ns = -1};
    cw_pass_estimates(c->f.m, &c->policy, c->now, 1000, 10000, on_estimate, &s);
    long long after = (long long)((s.start_ns - c->now) / S);
    if (s.start_ns < 0 || after != strtoll(c->words[2], NULL, 10) ||
        strcmp(c->words[3], cw_buf_str(&s.nodes)) != 0)
        CASE_FAIL(c, "it starts after %lld s on %s", after, cw_buf_str(&s.nodes));
    cw_buf_fini(&s.nodes);
}

static void do_refuse(struct cases *c)
{
    const char *text = strchr(c->text, ' ') + 1, *end = strstr(text, " : ");
    if (end == NULL)
        CASE_FAIL(c, "refuse TEXT : WORDS");
    size_t colon = 1, k = 1;
    while (c->words[colon] != NULL && strcmp(c->words[colon], ":") != 0)
        colon++;
    while (c->words[colon] != NULL)
        c->words[k++] = c->words[++colon];
    struct fix_job j = job_of_words(c);
    Cw__JobSpec s = CW__JOB_SPEC__INIT;
    Cw__Settings t = CW__SETTINGS__INIT;
    fix_spec(&j, &s, &t);
    struct cw_error err = {0};
    cw_autofree char *want = cw_xstrndup(text, (size_t)(end - text));
    if (cw_pass_feasible(c->f.m, &s, cw_model_partition_find(c->f.m, j.partition), &err) != -EINVAL)
        CASE_FAIL(c, "it is not refused");
    if (strstr(err.text, want) == NULL)
        CASE_FAIL(c, "it says: %s", err.text);
}

static const struct directive {
    const char *word;
    void (*fn)(struct cases *c);
    size_t min_words;
} directives[] = {
    {"policy", do_policy, 2},   {"partition", do_partition, 2}, {"node", do_node, 2},
    {"job", do_job, 2},         {"down", do_down, 2},           {"up", do_up, 2},
    {"drain", do_drain, 3},     {"resume", do_resume, 2},       {"hold", do_hold, 2},
    {"release", do_release, 2}, {"cancel", do_cancel, 2},       {"end", do_end, 2},
    {"pass", do_pass, 1},       {"start", do_start, 3},         {"reason", do_reason, 3},
    {"why", do_why, 3},         {"refuse", do_refuse, 3},       {"fault", do_fault, 2},
    {"running", do_running, 2}, {"estimate", do_estimate, 4},
};

static void one_line(struct cases *c, char *line)
{
    char *save = NULL;
    size_t n = 0;
    snprintf(c->text, sizeof(c->text), "%s", line);
    if (line[0] == '#' || line[0] == '\0')
        return;
    for (char *w = strtok_r(line, " ", &save); w != NULL && n < MAX_WORDS - 1;
         w = strtok_r(NULL, " ", &save))
        c->words[n++] = w;
    c->words[n] = NULL;
    char *behind = strchr(c->text, ' ');
    behind = behind != NULL ? strchr(behind + 1, ' ') : NULL;
    c->rest = behind != NULL ? behind + 1 : c->text + strlen(c->text);
    for (size_t i = 0; i < CW_ARRAY_LEN(directives); i++) {
        const struct directive *d = &directives[i];
        if (n == 0 || strcmp(c->words[0], d->word) != 0)
            continue;
        if (n < d->min_words)
            break;
        bool looks = d->fn == do_start || d->fn == do_reason || d->fn == do_why ||
                     d->fn == do_estimate;
        if (!looks)
            nothing_left(c);
        d->fn(c);
        return;
    }
    CASE_FAIL(c, "unknown directive, or words are missing");
}

static void case_holds(void **state)
{
    struct cases c = {.path = *state, .policy = {.caps = CW_SCHED_CAP_STRICT}, .now = 1000 * S};
    cw_autobuf struct cw_buf text = {0};
    struct cw_error err = {0};
    if (cw_file_read(c.path, 1 << 20, &text, &err) < 0)
        fail_msg("%s", err.text);
    fix_init(&c.f);
    c.jobs = cw_strtable_create();
    char *next = text.data;
    for (char *line; (line = strsep(&next, "\n")) != NULL;) {
        c.line++;
        one_line(&c, line);
    }
    nothing_left(&c);
    cw_strtable_destroy(c.jobs);
    cw_strv_fini(&c.names);
    cw_strv_fini(&c.grants);
    fix_fini(&c.f);
}

/* ---- cost ------------------------------------------------------------------------------------ */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void plain_grant(struct cw_job *j, uint64_t ordinal, const struct cw_partgrant *parts,
                        size_t n_parts, void *arg)
{
    cw_model_grant(arg, j, ordinal, parts, n_parts, 5);
}

static struct fix big_cluster(uint32_t nodes)
{
    static const struct cw_partition main_part = {
        .name = "main", .is_default = true, .all_nodes = true};
    struct fix f = {.m = cw_model_create(NULL, NULL)};
    assert_int_equal(cw_model_partition_add(f.m, &main_part), 0);
    for (uint32_t i = 0; i < nodes; i++) {
        char name[32];
        snprintf(name, sizeof(name), "n%u", i);
        fix_node(&f, name, 16, UINT64_C(1) << 34, 0, NULL);
    }
    return f;
}

static void a_pass_behind_a_full_cluster_looks_at_one_job(void **state)
{
    (void)state;
    enum { N = 100000 };
    struct fix f = big_cluster(4);
    for (int i = 0; i < N; i++)
        fix_submit(&f, &(struct fix_job){.cores = 16, .mem_bytes = 1 << 30});
    static const uint64_t caps[] = {CW_SCHED_CAP_STRICT, 0};
    struct cw_pass_stats st;
    cw_pass_run(f.m, NULL, 5, 0, plain_grant, f.m, &st);
    assert_int_equal(st.started, 4);
    for (size_t i = 0; i < 2; i++) {
        cw_pass_run(f.m, &(struct cw_pass_policy){.caps = caps[i]}, 5, 0, plain_grant, f.m, &st);
        assert_int_equal(st.looked_at, 1);
        assert_int_equal(st.started, 0);
    }
    cw_model_destroy(f.m);
}

static void equal_jobs_that_do_not_fit_cost_a_look_up_each(void **state)
{
    (void)state;
    enum { N = 100000 };
    struct fix f = big_cluster(4);
    fix_submit(&f, &(struct fix_job){.cores = 15, .array = "0-3", .mem_bytes = 1 << 30});
    for (int i = 0; i < N; i++)
        fix_submit(&f, &(struct fix_job){.cores = 2, .mem_bytes = 1 << 30});
    struct cw_pass_stats st;
    struct cw_pass_policy open = {0};
    cw_pass_run(f.m, &open, 5, 0, plain_grant, f.m, &st);
    assert_int_equal(st.started, 4);
    double t = seconds();
    cw_pass_run(f.m, &open, 5, 0, plain_grant, f.m, &st);
    t = seconds() - t;
    print_message("# %d equal jobs behind one core free on each node: %.1f ms\n", N, t * 1e3);
    assert_int_equal(st.looked_at, N);
    assert_true(t < 0.5);
    cw_model_destroy(f.m);
}

static void a_big_cluster_is_filled_in_one_pass(void **state)
{
    (void)state;
    struct fix f = big_cluster(2000);
    fix_submit(&f, &(struct fix_job){.cores = 2, .mem_bytes = 1 << 20, .array = "1-1000000"});
    struct cw_pass_stats st;
    double t = seconds();
    cw_pass_run(f.m, NULL, 5, 0, plain_grant, f.m, &st);
    t = seconds() - t;
    assert_int_equal(st.started, 16000);
    print_message("# %llu starts on 2,000 nodes: %.1f ms, %.0f a second with their records\n",
                  (unsigned long long)st.started, t * 1e3, (double)st.started / t);
    t = seconds();
    cw_pass_run(f.m, NULL, 5, 0, plain_grant, f.m, &st);
    print_message("# the next pass: %.3f ms\n", (seconds() - t) * 1e3);
    cw_model_destroy(f.m);
}

/* 10,000 nodes, nearly full, and 100,000 jobs of 1,000 different wishes behind one that waits. */
static void backfill_on_a_big_cluster_is_bounded(void **state)
{
    (void)state;
    enum { NODES = 10000, JOBS = 100000 };
    struct fix f = big_cluster(NODES);
    struct cw_pass_policy easy = {.caps = CW_SCHED_CAP_STRICT, .backfill = CW_BACKFILL_EASY};
    struct cw_pass_stats st;
    fix_submit(&f, &(struct fix_job){.cores = 15,
                                     .mem_bytes = 1 << 20,
                                     .array = "1-10000",
                                     .time_limit_s = 3600});
    double t = seconds();
    cw_pass_run(f.m, &easy, 5, 0, plain_grant, f.m, &st);
    t = seconds() - t;
    print_message("# %llu starts on %d nodes: %.1f ms, %.0f a second\n",
                  (unsigned long long)st.started, NODES, t * 1e3, (double)st.started / t);
    fix_submit(&f, &(struct fix_job){.ntasks = 64, .nodes_min = 4, .nodes_max = 4, .mem_bytes = 1 << 20,
                                     .time_limit_s = 3600});
    for (uint32_t i = 0; i < JOBS; i++)
        fix_submit(&f, &(struct fix_job){.cores = 2 + i % 14,
                                         .mem_bytes = ((uint64_t)i % 71 + 1) << 20,
                                         .time_limit_s = 600 + 60 * (i % 100)});
    t = seconds();
    cw_pass_run(f.m, &easy, 6, 0, plain_grant, f.m, &st);
    t = seconds() - t;
    print_message("# a pass over %d waiting jobs with EASY backfill: %.1f ms, %llu looked at\n", JOBS,
                  t * 1e3, (unsigned long long)st.looked_at);
    assert_int_equal(st.started, 0);
    assert_true(t < 5); /* the bar is 0.1 s; this holds under sanitizers on a busy machine */
    cw_model_destroy(f.m);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The sentence in the first line of the file. */
static char *title(const char *path)
{
    cw_autobuf struct cw_buf text = {0};
    if (cw_file_read(path, 1 << 20, &text, NULL) < 0 || text.len < 3 || text.data[0] != '#')
        return cw_xstrdup(path);
    return cw_xstrndup(text.data + 2, strcspn(text.data + 2, "\n"));
}

int main(void)
{
    static const struct CMUnitTest cost[] = {
        cmocka_unit_test(a_pass_behind_a_full_cluster_looks_at_one_job),
        cmocka_unit_test(equal_jobs_that_do_not_fit_cost_a_look_up_each),
        cmocka_unit_test(a_big_cluster_is_filled_in_one_pass),
        cmocka_unit_test(backfill_on_a_big_cluster_is_bounded),
    };
    glob_t g;
    if (glob(CASES_DIR "/*.case", 0, NULL, &g) != 0) {
        fprintf(stderr, "no case in %s\n", CASES_DIR);
        return 1;
    }
    size_t n = g.gl_pathc + CW_ARRAY_LEN(cost);
    struct CMUnitTest *tests = cw_xcalloc(n, sizeof(*tests));
    for (size_t i = 0; i < g.gl_pathc; i++)
        tests[i] = (struct CMUnitTest){
            .name = title(g.gl_pathv[i]), .test_func = case_holds, .initial_state = g.gl_pathv[i]};
    memcpy(tests + g.gl_pathc, cost, sizeof(cost));
    int r = _cmocka_run_group_tests("pass", tests, n, NULL, NULL);
    for (size_t i = 0; i < g.gl_pathc; i++)
        free((char *)tests[i].name);
    free(tests);
    globfree(&g);
    return r;
}
