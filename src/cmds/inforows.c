/* See inforows.h. */
#include "cmds/inforows.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "cmds/nodetext.h"

#define COLUMNS_MAX 64u
#define WIDTH_MAX 4096u

struct group { /* nodes that share a row; none: a partition without nodes */
    const Cw__PartitionInfo *part;
    const Cw__NodeInfo **node;
    size_t n;
    char *key;
};
struct column {
    char letter;
    const char *heading;
    bool of_group; /* says something of all its nodes together: does not part them */
    void (*text)(const struct group *g, struct cw_buf *out);
};

#define TEXT(name) static void name(const struct group *g, struct cw_buf *out)

static const Cw__NodeInfo *first(const struct group *g)
{
    return g->n > 0 ? g->node[0] : NULL;
}
static const Cw__Inventory *inventory(const struct group *g)
{
    return g->n > 0 ? g->node[0]->node->inventory : NULL;
}

TEXT(t_partition)
{
    cw_buf_addf(out, "%s%s", g->part->name, g->part->is_default ? "*" : "");
}
TEXT(t_plain_partition)
{
    cw_buf_add_str(out, g->part->name);
}
TEXT(t_avail)
{
    cw_buf_add_str(out, g->part->up ? "up" : "down");
}
static void limit(bool has, uint64_t s, struct cw_buf *out)
{
    char text[32];
    cw_buf_add_str(out, has && s != CW_DURATION_UNLIMITED
                            ? cw_duration_format(s, text, sizeof(text))
                            : "infinite");
}
TEXT(t_limit)
{
    limit(g->part->has_max_time_s, g->part->max_time_s, out);
}
TEXT(t_default_limit)
{
    limit(g->part->has_default_time_s, g->part->default_time_s, out);
}
TEXT(t_count)
{
    cw_buf_addf(out, "%zu", g->n);
}
TEXT(t_state)
{
    cw_buf_add_str(out, g->n > 0 ? cw_nodetext_state(first(g)) : "n/a");
}
TEXT(t_short_state)
{
    static const char *const names[][2] = {{"allocated", "alloc"}, {"mixed", "mix"},
                                           {"draining", "drng"},   {"drained", "drain"},
                                           {"unknown", "unk"}};
    const char *s = g->n > 0 ? cw_nodetext_state(first(g)) : "n/a";
    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++)
        if (strcmp(s, names[i][0]) == 0)
            s = names[i][1];
    cw_buf_add_str(out, s);
}
TEXT(t_nodes)
{
    cw_autostrv struct cw_strv v = {0};
    for (size_t i = 0; i < g->n; i++)
        cw_strv_add(&v, g->node[i]->node->name);
    cw_hostlist_format(v.v, v.n, out);
}
TEXT(t_hosts)
{
    for (size_t i = 0; i < g->n; i++)
        cw_buf_addf(out, "%s%s", i == 0 ? "" : ",", g->node[i]->node->name);
}
TEXT(t_gres)
{
    const Cw__Inventory *i = inventory(g);
    if (i == NULL || i->n_gpus == 0)
        cw_buf_add_str(out, "(null)");
    else if (i->gpus[0]->model != NULL)
        cw_buf_addf(out, "gpu:%s:%zu", i->gpus[0]->model, i->n_gpus);
    else
        cw_buf_addf(out, "gpu:%zu", i->n_gpus);
}
TEXT(t_priority)
{
    (void)g;
    cw_buf_add_str(out, "1");
}
TEXT(t_cpus)
{
    cw_buf_addf(out, "%u", g->n > 0 ? cw_nodetext_cores(first(g)) : 0);
}
TEXT(t_mem) /* MiB */
{
    const Cw__Inventory *i = inventory(g);
    cw_buf_addf(out, "%llu", (unsigned long long)(i != NULL ? i->mem_bytes >> 20 : 0));
}
TEXT(t_free_mem)
{
    const Cw__Inventory *i = inventory(g);
    uint64_t used = g->n > 0 ? first(g)->mem_used : 0;
    cw_buf_addf(out, "%llu",
                (unsigned long long)(i != NULL && i->mem_bytes > used ? (i->mem_bytes - used) >> 20
                                                                      : 0));
}
TEXT(t_cpu_states) /* allocated/idle/other/total */
{
    uint64_t used = 0, idle = 0, other = 0;
    for (size_t i = 0; i < g->n; i++) {
        const Cw__NodeInfo *n = g->node[i];
        uint32_t cores = cw_nodetext_cores(n), busy = n->cores_used < cores ? n->cores_used : cores;
        used += busy;
        if (n->up && !n->node->drained)
            idle += cores - busy;
        else
            other += cores - busy;
    }
    cw_buf_addf(out, "%llu/%llu/%llu/%llu", (unsigned long long)used, (unsigned long long)idle,
                (unsigned long long)other, (unsigned long long)(used + idle + other));
}
TEXT(t_features)
{
    const Cw__Inventory *i = inventory(g);
    if (i == NULL || i->n_labels == 0)
        cw_buf_add_str(out, "(null)");
    for (size_t k = 0; i != NULL && k < i->n_labels; k++)
        cw_buf_addf(out, "%s%s", k == 0 ? "" : ",", i->labels[k]);
}
TEXT(t_reason)
{
    const Cw__NodeInfo *n = first(g);
    bool has = n != NULL && n->node->drained && n->node->drain_reason != NULL;
    cw_buf_add_str(out, has ? n->node->drain_reason : "none");
}
TEXT(t_reason_time)
{
    const Cw__NodeInfo *n = first(g);
    char text[32];
    struct tm tm;
    time_t t = n != NULL ? (time_t)(n->node->drain_ns / CW_NS_PER_S) : 0;
    if (n != NULL && n->node->drained && localtime_r(&t, &tm) != NULL &&
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) > 0)
        cw_buf_add_str(out, text);
    else
        cw_buf_add_str(out, "Unknown");
}
TEXT(t_reason_user)
{
    const Cw__NodeInfo *n = first(g);
    struct passwd *pw = n != NULL && n->node->drained ? getpwuid(n->node->drain_uid) : NULL;
    if (pw != NULL)
        cw_buf_add_str(out, pw->pw_name);
    else if (n != NULL && n->node->drained)
        cw_buf_addf(out, "%u", n->node->drain_uid);
    else
        cw_buf_add_str(out, "Unknown");
}
TEXT(t_version)
{
    const Cw__Inventory *i = inventory(g);
    cw_buf_add_str(out, i != NULL && i->version != NULL ? i->version : "N/A");
}

static const struct column columns[] = {
    {'P', "PARTITION", false, t_partition},
    {'R', "PARTITION", false, t_plain_partition},
    {'a', "AVAIL", false, t_avail},
    {'l', "TIMELIMIT", false, t_limit},
    {'L', "DEFAULTTIME", false, t_default_limit},
    {'D', "NODES", true, t_count},
    {'t', "STATE", false, t_short_state},
    {'T', "STATE", false, t_state},
    {'N', "NODELIST", true, t_nodes},
    {'n', "HOSTNAMES", true, t_hosts},
    {'G', "GRES", false, t_gres},
    {'p', "PRIO_TIER", false, t_priority},
    {'c', "CPUS", false, t_cpus},
    {'m', "MEMORY", false, t_mem},
    {'e', "FREE_MEM", false, t_free_mem},
    {'C', "CPUS(A/I/O/T)", true, t_cpu_states},
    {'f', "AVAIL_FEATURES", false, t_features},
    {'b', "ACTIVE_FEATURES", false, t_features},
    {'E', "REASON", false, t_reason},
    {'H', "TIMESTAMP", false, t_reason_time},
    {'u', "USER", false, t_reason_user},
    {'v', "VERSION", false, t_version},
    /* without meaning here */
    {'O', "CPU_LOAD", false, NULL},
    {'w', "WEIGHT", false, NULL},
    {'d', "TMP_DISK", false, NULL},
    {'z', "S:C:T", false, NULL},
    {'X', "SOCKETS", false, NULL},
    {'Y', "CORES", false, NULL},
    {'Z', "THREADS", false, NULL},
    {'s', "JOB_SIZE", false, NULL},
    {'g', "GROUPS", false, NULL},
    {'h', "OVERSUBSCRIBE", false, NULL},
    {'r', "ROOT", false, NULL},
    {'o', "NODE_ADDR", false, NULL},
};

/* ---- format --------------------------------------------------------------------------------- */

struct used {
    const struct column *column;
    char *before;
    size_t width;
    bool right;
};
struct cw_infoformat {
    struct used v[COLUMNS_MAX];
    size_t n;
    char *behind;
};

void cw_infoformat_letters(void)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(columns); i++)
        printf("%%%c  %s%s\n", columns[i].letter, columns[i].heading,
               columns[i].text == NULL ? " (N/A)" : "");
}

void cw_infoformat_destroy(struct cw_infoformat *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < f->n; i++)
        free(f->v[i].before);
    free(f->behind);
    free(f);
}

static int take_column(const char **p, struct cw_infoformat *f, struct cw_buf *plain,
                       struct cw_error *err)
{
    struct used u = {0};
    (*p)++;
    u.right = **p == '.';
    *p += u.right;
    for (; **p >= '0' && **p <= '9'; (*p)++)
        if ((u.width = u.width * 10 + (size_t)(**p - '0')) > WIDTH_MAX)
            return cw_fail(err, -ERANGE, "a width is at most %u", WIDTH_MAX);
    for (size_t i = 0; i < CW_ARRAY_LEN(columns) && **p != '\0'; i++)
        if (columns[i].letter == **p)
            u.column = &columns[i];
    if (u.column == NULL)
        return cw_fail(err, -EINVAL, "format: letter '%.1s' is unknown (--helpformat lists all)", *p);
    if (f->n == COLUMNS_MAX)
        return cw_fail(err, -E2BIG, "more than %u columns", COLUMNS_MAX);
    (*p)++;
    u.before = plain->len > 0 ? cw_buf_steal(plain) : NULL;
    f->v[f->n++] = u;
    return 0;
}

int cw_infoformat_parse(const char *text, struct cw_infoformat **ret, struct cw_error *err)
{
    struct cw_infoformat *f = cw_xcalloc(1, sizeof *f);
    cw_autobuf struct cw_buf plain = {0};
    int rc = 0;
    for (const char *p = text; *p != '\0' && rc == 0;) {
        if (*p == '%' && p[1] != '%') {
            rc = take_column(&p, f, &plain, err);
            continue;
        }
        cw_buf_add(&plain, p, 1);
        p += *p == '%' ? 2 : 1;
    }
    if (rc == 0 && f->n == 0)
        rc = cw_fail(err, -EINVAL, "format '%.80s' names no column", text);
    if (rc < 0) {
        cw_infoformat_destroy(f);
        return rc;
    }
    f->behind = plain.len > 0 ? cw_buf_steal(&plain) : NULL;
    *ret = f;
    return 0;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void print_row(const struct cw_infoformat *f, const struct group *g)
{
    cw_autobuf struct cw_buf cell = {0};
    for (size_t i = 0; i < f->n; i++) {
        const struct used *u = &f->v[i];
        cw_buf_clear(&cell);
        if (g == NULL)
            cw_buf_add_str(&cell, u->column->heading);
        else if (u->column->text == NULL)
            cw_buf_add_str(&cell, "N/A");
        else
            u->column->text(g, &cell);
        int pad = u->width > cell.len ? (int)(u->width - cell.len) : 0;
        printf("%s%*s%s%*s", u->before != NULL ? u->before : "", u->right ? pad : 0, "",
               cw_buf_str(&cell), u->right ? 0 : pad, "");
    }
    printf("%s\n", f->behind != NULL ? f->behind : "");
}

static bool in_list(char *const *v, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(v[i], s) == 0)
            return true;
    return n == 0;
}

static bool wanted(const struct cw_inforows *r, const Cw__NodeInfo *n)
{
    if (r->reasons && !(n->node->drained && n->node->drain_reason != NULL))
        return false;
    struct group one = {.node = &n, .n = 1};
    cw_autobuf struct cw_buf letters = {0};
    t_short_state(&one, &letters);
    return in_list(r->states, r->n_states, cw_nodetext_state(n)) ||
           in_list(r->states, r->n_states, cw_buf_str(&letters));
}

/* What keeps nodes apart: their texts in the columns of single nodes. */
static char *key_of(const struct cw_infoformat *f, const struct cw_inforows *r,
                    const struct group *one)
{
    cw_autobuf struct cw_buf key = {0};
    for (size_t i = 0; i < f->n; i++) {
        if (f->v[i].column->text != NULL && !f->v[i].column->of_group)
            f->v[i].column->text(one, &key);
        cw_buf_add(&key, "\1", 1);
    }
    if (r->by_node)
        cw_buf_add_str(&key, one->node[0]->node->name);
    return cw_buf_steal(&key);
}

static void add_node(struct group **groups, size_t *n, const Cw__PartitionInfo *p,
                     const Cw__NodeInfo *node, char *key, size_t max)
{
    size_t i = 0;
    while (i < *n && strcmp((*groups)[i].key, key) != 0)
        i++;
    if (i == *n) {
        *groups = cw_xrealloc(*groups, ++*n, sizeof **groups);
        (*groups)[i] = (struct group){p, cw_xcalloc(max, sizeof(void *)), 0, key};
    } else {
        free(key);
    }
    (*groups)[i].node[(*groups)[i].n++] = node;
}

static void print_partition(const struct cw_infoformat *f, const struct cw_inforows *r,
                            const Cw__PartitionInfo *p)
{
    struct group *groups = NULL;
    size_t n = 0;
    for (size_t i = 0; i < r->reply->n_nodes; i++) {
        const Cw__NodeInfo *node = r->reply->nodes[i];
        struct group one = {.part = p, .node = &node, .n = 1};
        if (node->n_partitions == 0 || !in_list(node->partitions, node->n_partitions, p->name) ||
            !wanted(r, node))
            continue;
        add_node(&groups, &n, p, node, key_of(f, r, &one), r->reply->n_nodes);
    }
    if (n == 0 && !r->by_node && !r->reasons && r->n_states == 0)
        print_row(f, &(struct group){.part = p});
    for (size_t i = 0; i < n; i++) {
        print_row(f, &groups[i]);
        free(groups[i].key);
        free(groups[i].node);
    }
    free(groups);
}

void cw_inforows_print(const struct cw_infoformat *f, const struct cw_inforows *r)
{
    if (!r->no_header)
        print_row(f, NULL);
    for (size_t i = 0; i < r->reply->n_partitions; i++)
        if (in_list(r->partitions, r->n_partitions, r->reply->partitions[i]->name))
            print_partition(f, r, r->reply->partitions[i]);
}
