/* Partitions: a named set of nodes with defaults. They come from the configuration before any job;
 * a job refers to its partition by index, never by pointer, so that one that vanished is a value
 * (UINT16_MAX) and not a crash. Test: node_test.c, testsuite/t2700-admin.t. */
#include "model/model.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

static bool copy_name(const char *key, void *value, void *arg)
{
    (void)value;
    struct cw_strtable *t = arg;
    if (cw_strtable_find(t, key) == NULL) {
        char *k = cw_xstrdup(key);
        cw_strtable_set(t, k, k);
    }
    return true;
}

static bool free_name(const char *key, void *value, void *arg)
{
    (void)key;
    (void)arg;
    free(value);
    return true;
}

int cw_model_partition_add(struct cw_model *m, const struct cw_partition *p)
{
    for (uint16_t i = 0; i < m->n_parts; i++)
        if (strcmp(m->parts[i].part.name, p->name) == 0)
            return -EEXIST;
    if (m->n_parts == UINT16_MAX)
        return -ENOSPC;
    m->parts = cw_xrealloc(m->parts, (size_t)m->n_parts + 1, sizeof(*m->parts));
    struct cw_partslot *s = &m->parts[m->n_parts];
    *s = (struct cw_partslot){.part = *p};
    s->part.index = m->n_parts++;
    s->part.name = cw_names_get(m, p->name);
    s->part.isolation = cw_names_get(m, p->isolation);
    s->part.nodes = NULL;
    if (p->nodes != NULL) {
        s->part.nodes = cw_strtable_create();
        cw_strtable_each(p->nodes, copy_name, s->part.nodes);
    }
    return 0;
}

static void free_slots(struct cw_model *m, struct cw_partslot *slots, uint16_t n)
{
    for (uint16_t i = 0; i < n; i++) {
        struct cw_partition *p = &slots[i].part;
        cw_names_put(m, p->name);
        cw_names_put(m, p->isolation);
        if (p->nodes != NULL) {
            cw_strtable_each(p->nodes, free_name, NULL);
            cw_strtable_destroy(p->nodes);
        }
    }
    free(slots);
}

void cw_partitions_destroy(struct cw_model *m)
{
    free_slots(m, m->parts, m->n_parts);
    m->parts = NULL;
    m->n_parts = 0;
}

/* ---- all of them anew ----------------------------------------------------------------------- */

struct remap {
    struct cw_model *m;
    uint16_t *to; /* old index -> new one, UINT16_MAX: gone */
};

static void move_job(struct cw_model *m, struct cw_job *j, uint16_t partition)
{
    cw_queue_leave(m, j);
    j->partition = partition;
    cw_queue_place(m, j);
}

/* Before the change: the queue still counts by the old indices. */
static bool park_orphan(struct cw_job *j, void *arg)
{
    const struct remap *r = arg;
    if (j->partition != UINT16_MAX && r->to[j->partition] == UINT16_MAX)
        move_job(r->m, j, UINT16_MAX);
    return true;
}

/* A job without partition finds it again by the name in its stored part. */
static void adopt(struct cw_model *m, struct cw_job *j)
{
    Cw__JobRecord *rec = cw_job_record(j);
    const struct cw_partition *p = cw_model_partition_find(m, rec->spec->partition);
    cw__job_record__free_unpacked(rec, NULL);
    if (p != NULL)
        move_job(m, j, p->index);
}

static bool follow(struct cw_job *j, void *arg)
{
    const struct remap *r = arg;
    if (j->partition == UINT16_MAX) {
        adopt(r->m, j);
        return true;
    }
    j->partition = r->to[j->partition];
    if (j->in_queue.next != NULL && !j->parked && r->m->parts[j->partition].n_queued++ == 0)
        r->m->n_queued_parts++;
    return true;
}

static uint16_t index_in(const struct cw_partition *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return (uint16_t)i;
    return UINT16_MAX;
}

int cw_model_partitions_set(struct cw_model *m, const struct cw_partition *list, size_t n)
{
    if (n >= UINT16_MAX)
        return -ENOSPC;
    uint16_t n_old = m->n_parts;
    struct remap r = {m, cw_xcalloc((size_t)n_old + 1, sizeof(*r.to))};
    for (uint16_t i = 0; i < n_old; i++)
        r.to[i] = index_in(list, n, m->parts[i].part.name);
    cw_model_each_job(m, park_orphan, &r);
    struct cw_partslot *old = m->parts;
    m->parts = NULL;
    m->n_parts = 0;
    m->n_queued_parts = 0;
    for (size_t i = 0; i < n; i++)
        cw_model_partition_add(m, &list[i]); /* the caller's names differ */
    cw_model_each_job(m, follow, &r);
    free_slots(m, old, n_old); /* last: the names that both have stay interned */
    free(r.to);
    cw_emit_cycle(m);
    return 0;
}

const struct cw_partition *cw_model_partition(const struct cw_model *m, uint16_t index)
{
    return index < m->n_parts ? &m->parts[index].part : NULL;
}

const struct cw_partition *cw_model_partition_find(const struct cw_model *m, const char *name)
{
    for (uint16_t i = 0; i < m->n_parts; i++)
        if (name == NULL ? m->parts[i].part.is_default : strcmp(m->parts[i].part.name, name) == 0)
            return &m->parts[i].part;
    return name == NULL && m->n_parts > 0 ? &m->parts[0].part : NULL;
}

bool cw_partition_has(const struct cw_partition *p, const struct cw_node *n)
{
    return p->all_nodes || (p->nodes != NULL && cw_strtable_find(p->nodes, n->name) != NULL);
}
