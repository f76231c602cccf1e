/* Partitions: a named set of nodes with defaults. They come from the configuration before any job;
 * a job refers to its partition by index, never by pointer, so that one that vanished is a value
 * (UINT16_MAX) and not a crash. Test: node_test.c. */
#include "model/model.h"

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

void cw_partitions_destroy(struct cw_model *m)
{
    for (uint16_t i = 0; i < m->n_parts; i++) {
        struct cw_partition *p = &m->parts[i].part;
        cw_names_put(m, p->name);
        cw_names_put(m, p->isolation);
        if (p->nodes != NULL) {
            cw_strtable_each(p->nodes, free_name, NULL);
            cw_strtable_destroy(p->nodes);
        }
    }
    free(m->parts);
    m->parts = NULL;
    m->n_parts = 0;
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
