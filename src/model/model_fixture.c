/* See model_fixture.h. */
#include "model/model_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spec/outcome.h"

#define MAX_REQUEUES 2

static const char *const words[] = {
    [CW_EFFECT_PUT_JOB] = "put-job",     [CW_EFFECT_PUT_ATTEMPT] = "put-attempt",
    [CW_EFFECT_PUT_NODE] = "put-node",   [CW_EFFECT_EVENT] = "event",
    [CW_EFFECT_DONE] = "done",           [CW_EFFECT_SEND_START] = "send-start",
    [CW_EFFECT_SEND_KILL] = "send-kill", [CW_EFFECT_SEND_LIMIT] = "send-limit", [CW_EFFECT_SEND_SIGNAL] = "send-signal",
    [CW_EFFECT_JOB_FINAL] = "final",     [CW_EFFECT_RUN_CYCLE] = "cycle",
};

static struct cw_buf *row(struct cw_idtable *t, uint64_t key)
{
    struct cw_buf *b = cw_idtable_find(t, key);
    if (b == NULL) {
        b = cw_xcalloc(1, sizeof(*b));
        cw_idtable_set(t, key, b);
    }
    cw_buf_clear(b);
    return b;
}

static void store_attempt(struct fix *f, const struct cw_attempt *a)
{
    size_t n = cw__attempt_record__get_packed_size(a->rec);
    struct cw_buf *b = row(f->attempts, a->id << 20 | a->attempt);
    b->len += cw__attempt_record__pack(a->rec, cw_buf_reserve(b, n));
}

static void on_effect(const struct cw_effect *e, void *arg)
{
    struct fix *f = arg;
    f->n_effects++;
    cw_buf_addf(&f->trail, "%s%s", f->trail.len > 0 ? " " : "", words[e->kind]);
    switch (e->kind) {
    case CW_EFFECT_PUT_JOB: cw_job_row(e->job, row(f->jobs, e->job->id)); break;
    case CW_EFFECT_PUT_ATTEMPT: store_attempt(f, e->attempt); break;
    case CW_EFFECT_EVENT: cw_buf_addf(&f->trail, ":%s", e->event); break;
    case CW_EFFECT_DONE: f->n_done++; break;
    case CW_EFFECT_SEND_START: f->n_start++; break;
    case CW_EFFECT_JOB_FINAL:
        f->n_final++;
        f->last_final = e->job->id;
        f->last_final_state = e->job->state;
        snprintf(f->last_reason, sizeof(f->last_reason), "%s",
                 e->job->end_reason != NULL ? e->job->end_reason : "");
        break;
    default: break;
    }
}

void fix_init(struct fix *f)
{
    memset(f, 0, sizeof(*f));
    f->m = cw_model_create(on_effect, f);
    f->jobs = cw_idtable_create();
    f->attempts = cw_idtable_create();
}

static bool free_row(uint64_t key, void *value, void *arg)
{
    (void)key;
    (void)arg;
    cw_buf_fini(value);
    free(value);
    return true;
}

void fix_fini(struct fix *f)
{
    cw_model_destroy(f->m);
    cw_idtable_each(f->jobs, free_row, NULL);
    cw_idtable_each(f->attempts, free_row, NULL);
    cw_idtable_destroy(f->jobs);
    cw_idtable_destroy(f->attempts);
    cw_buf_fini(&f->trail);
    cw_buf_fini(&f->taken);
}

const char *fix_trail(struct fix *f)
{
    struct cw_buf taken = f->trail;
    f->trail = f->taken;
    f->taken = taken;
    cw_buf_clear(&f->trail);
    return cw_buf_str(&f->taken);
}

void fix_partition(struct fix *f, const struct cw_partition *p)
{
    if (cw_model_partition_add(f->m, p) != 0)
        abort();
}

struct cw_node *fix_node(struct fix *f, const char *name, uint32_t cores, uint64_t mem,
                         uint32_t gpus, const char *gpu_model)
{
    Cw__NodeRecord rec = CW__NODE_RECORD__INIT;
    Cw__Inventory inv = CW__INVENTORY__INIT;
    Cw__Core *c = cw_xcalloc(cores + 1, sizeof(*c)), **cp = cw_xcalloc(cores + 1, sizeof(*cp));
    uint32_t *pus = cw_xcalloc((size_t)cores * 2 + 1, sizeof(*pus));
    Cw__Gpu *g = cw_xcalloc(gpus + 1, sizeof(*g)), **gp = cw_xcalloc(gpus + 1, sizeof(*gp));
    char *isolations[] = {(char *)"none", (char *)"cgroup"};
    for (uint32_t i = 0; i < cores; i++) {
        cw__core__init(&c[i]);
        pus[2 * i] = 2 * i;
        pus[2 * i + 1] = 2 * i + 1;
        c[i].logical = i;
        c[i].pus = &pus[2 * i];
        c[i].n_pus = 2;
        c[i].has_numa = c[i].has_l3 = c[i].has_package = true;
        c[i].l3 = i / 4;
        c[i].numa = c[i].package = i / 8;
        cp[i] = &c[i];
    }
    for (uint32_t i = 0; i < gpus; i++) {
        cw__gpu__init(&g[i]);
        g[i].index = i;
        g[i].uuid = (char *)"GPU-0";
        g[i].model = (char *)gpu_model;
        g[i].has_numa = true;
        g[i].numa = cores > 8 ? i % 2 : 0;
        gp[i] = &g[i];
    }
    inv.n_cores = cores;
    inv.cores = cp;
    inv.mem_bytes = mem;
    inv.n_gpus = gpus;
    inv.gpus = gp;
    inv.n_isolations = 2;
    inv.isolations = isolations;
    rec.name = (char *)name;
    rec.inventory = &inv;
    struct cw_node *n = cw_model_node_set(f->m, &rec, true, 1);
    cw_model_node_up(f->m, n, true, 1);
    free(c);
    free(cp);
    free(pus);
    free(g);
    free(gp);
    return n;
}

static void fill_places(const struct fix_job *j, Cw__JobSpec *s, Cw__Settings *t)
{
    t->has_gpus_per_node = (t->gpus_per_node = j->gpus_node) != 0;
    t->has_gpus_per_task = (t->gpus_per_task = j->gpus_task) != 0;
    t->has_mem_per_cpu_bytes = (t->mem_per_cpu_bytes = j->mem_cpu) != 0;
    s->has_ntasks = (s->ntasks = j->ntasks) != 0;
    s->has_nodes_min = (s->nodes_min = j->nodes_min) != 0;
    s->has_nodes_max = (s->nodes_max = j->nodes_max) != 0;
    s->has_ntasks_per_node = (s->ntasks_per_node = j->per_node) != 0;
    s->has_time_est_s = (s->time_est_s = j->time_est_s) != 0;
    s->has_exclusive = s->exclusive = j->exclusive;
    s->has_begin_ns = (s->begin_ns = j->begin_ns) != 0;
    s->has_deadline_ns = (s->deadline_ns = j->deadline_ns) != 0;
    s->has_retries = (s->retries = j->retries) != 0;
    s->has_retry_delay_s = (s->retry_delay_s = j->retry_delay_s) != 0;
    s->dependency_rule = (char *)(j->any ? CW_DEPS_ANY : NULL);
    s->nodelist = (char *)j->nodelist;
    s->exclude = (char *)j->exclude;
    s->constraint = (char *)j->constraint;
    s->prefer = (char *)j->prefer;
}

void fix_spec(const struct fix_job *j, Cw__JobSpec *s, Cw__Settings *t)
{
    s->settings = t;
    t->has_cpus_per_task = true;
    t->cpus_per_task = j->cores != 0 ? j->cores : 1;
    t->has_mem_bytes = j->mem_bytes != 0;
    t->mem_bytes = j->mem_bytes;
    t->has_gpus = j->gpus != 0;
    t->gpus = j->gpus;
    t->gpu_type = (char *)j->gpu_type;
    t->isolation = (char *)j->isolation;
    s->has_time_limit_s = j->time_limit_s != 0;
    s->time_limit_s = j->time_limit_s;
    fill_places(j, s, t);
}

void fix_labels(struct fix *f, struct cw_node *n, const char *labels)
{
    cw_autofree char *text = cw_xstrdup(labels);
    char *list[16], *save = NULL;
    Cw__NodeRecord rec = *n->rec;
    Cw__Inventory inv = *n->rec->inventory;
    inv.labels = list;
    inv.n_labels = 0;
    for (char *w = strtok_r(text, ",", &save); w != NULL && inv.n_labels < 16;
         w = strtok_r(NULL, ",", &save))
        list[inv.n_labels++] = w;
    rec.inventory = &inv;
    cw_model_node_set(f->m, &rec, true, 1);
}

int fix_try_submit(struct fix *f, const struct fix_job *j, struct cw_job **ret,
                   struct cw_error *err)
{
    static const uint8_t hash[32] = {7}, key[16] = {9};
    Cw__JobRecord rec = CW__JOB_RECORD__INIT;
    Cw__JobSpec s = CW__JOB_SPEC__INIT;
    Cw__Settings t = CW__SETTINGS__INIT;
    Cw__ArraySpec a = CW__ARRAY_SPEC__INIT;
    Cw__Owner o = CW__OWNER__INIT;
    Cw__Dependency d[4], *dp[4];
    o.uid = j->uid != 0 ? j->uid : 1000;
    o.gid = o.uid;
    o.name = (char *)"alice";
    s.name = (char *)(j->name != NULL ? j->name : "job");
    s.partition = (char *)j->partition;
    s.workdir = (char *)"/home/alice/project";
    fix_spec(j, &s, &t);
    s.has_hold = true;
    s.hold = j->hold;
    s.has_no_requeue = true;
    s.no_requeue = j->no_requeue;
    if (j->array != NULL) {
        a.indices = (char *)j->array;
        a.has_throttle = j->throttle != 0;
        a.throttle = j->throttle;
        s.array = &a;
    }
    for (; s.n_dependencies < 4 && j->deps[s.n_dependencies].kind != 0; s.n_dependencies++) {
        size_t i = s.n_dependencies;
        cw__dependency__init(&d[i]);
        d[i].kind = j->deps[i].kind;
        d[i].has_job_id = d[i].has_satisfied = true;
        d[i].job_id = j->deps[i].id;
        d[i].satisfied = j->deps[i].satisfied;
        d[i].has_delay_s = i == 0 && j->delay_s != 0;
        d[i].delay_s = d[i].has_delay_s ? j->delay_s : 0;
        dp[i] = &d[i];
    }
    s.dependencies = dp;
    rec.spec = &s;
    rec.owner = &o;
    rec.payload_hash = (ProtobufCBinaryData){sizeof(hash), (uint8_t *)hash};
    rec.request_key = (ProtobufCBinaryData){sizeof(key), (uint8_t *)key};
    rec.submit_ns = 1000;
    rec.state = CW__STATE__PENDING;
    return cw_model_submit(f->m, &rec, ret, err);
}

struct cw_job *fix_submit(struct fix *f, const struct fix_job *j)
{
    struct cw_job *ret = NULL;
    struct cw_error err = {0};
    if (fix_try_submit(f, j, &ret, &err) != 0) {
        fprintf(stderr, "submit: %s\n", err.text);
        abort();
    }
    return ret;
}

/* The first free cores of n; NULL when there are too few. */
static Cw__Grant *grant_on(const struct cw_job *j, struct cw_node *n, uint64_t *cores)
{
    uint64_t mem = j->want->mem_node != 0 ? j->want->mem_node : 1;
    uint32_t want = cw_want_cores(j->want);
    if (n->n_free < want || n->mem_free < mem)
        return NULL;
    struct cw_idset logical = {0};
    struct cw_buf text = {0};
    for (uint32_t i = 0, left = want; i < n->n_cores && left > 0; i++) {
        if (((n->core_free[i / 64] >> (i % 64)) & 1) == 0)
            continue;
        cores[i / 64] |= UINT64_C(1) << (i % 64);
        cw_idset_add(&logical, i, i);
        left--;
    }
    cw_idset_format(&logical, &text);
    Cw__Grant *g = cw_xmalloc(sizeof(*g));
    cw__grant__init(g);
    g->node = cw_xstrdup(n->name);
    g->cores = cw_xstrdup(cw_buf_str(&text));
    g->cpus = cw_xstrdup(g->cores);
    g->mem_bytes = mem;
    cw_idset_fini(&logical);
    cw_buf_fini(&text);
    return g;
}

struct cw_attempt *fix_grant_on(struct fix *f, struct cw_job *j, struct cw_node *const *nodes,
                                size_t n, int64_t now_ns)
{
    struct cw_partgrant parts[8];
    uint64_t ordinal, cores[8][64] = {{0}};
    Cw__Grant *grants[8] = {NULL};
    bool fits = n <= 8 && cw_job_next(j, &ordinal);
    for (size_t k = 0; fits && k < n; k++) {
        fits = (grants[k] = grant_on(j, nodes[k], cores[k])) != NULL;
        parts[k] =
            (struct cw_partgrant){.node = nodes[k], .cores = cores[k], .grant = grants[k]};
    }
    struct cw_attempt *a = fits ? cw_model_grant(f->m, j, ordinal, parts, n, now_ns) : NULL;
    for (size_t k = 0; k < n && grants[k] != NULL; k++)
        cw__grant__free_unpacked(grants[k], NULL);
    return a;
}

struct cw_attempt *fix_grant(struct fix *f, struct cw_job *j, struct cw_node *n, int64_t now_ns)
{
    return fix_grant_on(f, j, &n, 1, now_ns);
}

static const struct cw_node *head_of(struct fix *f, uint64_t id, uint32_t attempt)
{
    struct cw_attempt *a = cw_model_attempt_numbered(f->m, id, attempt);
    return a != NULL ? a->parts[0].node : cw_model_node_at(f->m, 0);
}

int fix_started(struct fix *f, uint64_t id, uint32_t attempt, int64_t now_ns)
{
    return fix_part_started(f, head_of(f, id, attempt), id, attempt, now_ns);
}

int fix_emptied(struct fix *f, uint64_t id, uint32_t attempt, int64_t now_ns)
{
    return cw_model_emptied(f->m, head_of(f, id, attempt), id, attempt, now_ns);
}

int fix_ended(struct fix *f, uint64_t id, uint32_t attempt, Cw__Cause cause, uint32_t code,
              bool empty, int64_t now_ns)
{
    return fix_part_ended(f, head_of(f, id, attempt), id, attempt, cause, code, empty, now_ns);
}

int fix_part_started(struct fix *f, const struct cw_node *n, uint64_t id, uint32_t attempt,
                     int64_t now_ns)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskStarted s = CW__TASK_STARTED__INIT;
    key.id = id;
    key.attempt = attempt;
    s.key = &key;
    s.pid = 4711;
    s.start_ns = now_ns;
    return cw_model_started(f->m, n, &s, now_ns);
}

int fix_part_ended(struct fix *f, const struct cw_node *n, uint64_t id, uint32_t attempt,
                   Cw__Cause cause, uint32_t code, bool empty, int64_t now_ns)
{
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__TaskEnd e = CW__TASK_END__INIT;
    Cw__Usage u = CW__USAGE__INIT;
    u.has_cpu_user_ns = true;
    u.cpu_user_ns = 5;
    key.id = id;
    key.attempt = attempt;
    e.key = &key;
    e.cause = cause;
    e.has_exit_code = cause == CW__CAUSE__CAUSE_EXIT;
    e.exit_code = code;
    e.end_ns = now_ns;
    e.empty = empty;
    e.usage = &u;
    return cw_model_ended(f->m, n, &e, now_ns, MAX_REQUEUES);
}

/* ---- restoring and comparing ----------------------------------------------------------------- */

struct keys {
    uint64_t *v;
    size_t n;
};

static bool add_key(uint64_t key, void *value, void *arg)
{
    (void)value;
    struct keys *k = arg;
    k->v[k->n++] = key;
    return true;
}

static int by_value(const void *pa, const void *pb)
{
    uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return a < b ? -1 : a > b;
}

static struct keys sorted(struct cw_idtable *t)
{
    struct keys k = {.v = cw_xcalloc(cw_idtable_count(t) + 1, sizeof(*k.v))};
    cw_idtable_each(t, add_key, &k);
    qsort(k.v, k.n, sizeof(*k.v), by_value);
    return k;
}

static void restore_rows(const struct fix *f, struct fix *ret)
{
    struct cw_error err = {0};
    struct keys k = sorted(f->jobs);
    for (size_t i = 0; i < k.n; i++) {
        struct cw_buf *b = cw_idtable_find(f->jobs, k.v[i]);
        Cw__JobRecord *rec = cw__job_record__unpack(NULL, b->len, (uint8_t *)b->data);
        struct cw_job *j;
        if (rec == NULL || cw_model_restore_job(ret->m, rec, &j, &err) != 0)
            fprintf(stderr, "# job row: %s\n", err.text), abort();
        cw__job_record__free_unpacked(rec, NULL);
    }
    free(k.v);
    k = sorted(f->attempts);
    for (size_t i = 0; i < k.n; i++) {
        struct cw_buf *b = cw_idtable_find(f->attempts, k.v[i]);
        Cw__AttemptRecord *rec = cw__attempt_record__unpack(NULL, b->len, (uint8_t *)b->data);
        struct cw_attempt *a;
        if (rec == NULL || cw_model_restore_attempt(ret->m, rec, &a, &err) != 0)
            fprintf(stderr, "# attempt row: %s\n", err.text), abort();
        cw__attempt_record__free_unpacked(rec, NULL);
    }
    free(k.v);
}

static bool copy_row(uint64_t key, void *value, void *arg)
{
    const struct cw_buf *from = value;
    cw_buf_add(row(arg, key), from->data, from->len);
    return true;
}

void fix_restore(const struct fix *f, struct fix *ret)
{
    fix_init(ret);
    cw_idtable_each(f->jobs, copy_row, ret->jobs);
    cw_idtable_each(f->attempts, copy_row, ret->attempts);
    for (uint16_t i = 0; cw_model_partition(f->m, i) != NULL; i++)
        fix_partition(ret, cw_model_partition(f->m, i));
    for (uint32_t i = 0; i < cw_model_n_nodes(f->m); i++) {
        struct cw_node *n = cw_model_node_at(f->m, i);
        struct cw_node *copy = cw_model_node_set(ret->m, n->rec, false, 1);
        cw_model_node_up(ret->m, copy, n->up, 1);
    }
    restore_rows(f, ret);
    if (cw_model_next_id(ret->m) < cw_model_next_id(f->m))
        cw_model_set_next_id(ret->m, cw_model_next_id(f->m)); /* the owner stores it */
}

struct other {
    struct cw_model *m;
    struct cw_buf *ret;
    size_t n;
};

static bool same_job(struct cw_job *j, void *arg)
{
    struct other *o = arg;
    struct cw_job *k = cw_model_job(o->m, j->id);
    o->n++;
    if (k == NULL) {
        cw_buf_addf(o->ret, "job %llu is only in one", (unsigned long long)j->id);
        return false;
    }
    struct cw_buf a = {0}, b = {0};
    cw_job_row(j, &a);
    cw_job_row(k, &b);
    bool same = a.len == b.len && memcmp(a.data, b.data, a.len) == 0 && j->parked == k->parked &&
                (j->in_queue.next == NULL) == (k->in_queue.next == NULL) &&
                j->time_limit_s == k->time_limit_s;
    if (!same)
        cw_buf_addf(o->ret, "job %llu differs (%s, %s)", (unsigned long long)j->id,
                    cw_state_name(j->state), cw_state_name(k->state));
    cw_buf_fini(&a);
    cw_buf_fini(&b);
    return same;
}

static bool same_node(const struct cw_node *a, const struct cw_node *b, struct cw_buf *ret)
{
    if (a->words == b->words &&
        memcmp(a->core_free, b->core_free, a->words * sizeof(uint64_t)) == 0 &&
        a->mem_used == b->mem_used && a->gpu_free == b->gpu_free && a->n_free == b->n_free)
        return true;
    cw_buf_addf(ret, "ledger of node %s differs", a->name);
    return false;
}

bool fix_same(struct fix *a, struct fix *b, struct cw_buf *ret)
{
    struct other o = {.m = b->m, .ret = ret};
    cw_model_each_job(a->m, same_job, &o);
    for (uint32_t i = 0; i < cw_model_n_nodes(a->m); i++)
        if (!same_node(cw_model_node_at(a->m, i), cw_model_node_at(b->m, i), ret))
            return false;
    if (cw_model_n_jobs(a->m) != cw_model_n_jobs(b->m))
        cw_buf_addf(ret, "%zu jobs against %zu", cw_model_n_jobs(a->m), cw_model_n_jobs(b->m));
    return ret->len == 0;
}
