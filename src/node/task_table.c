/* The tasks of this node as reported by shepherds; see task_table.h. */
#include "node/task_table.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "node/stepreports.h"
#include "spec/outcome.h"

struct cw_tasktab {
    struct cw_list list;
    struct cw_strtable *by_key;
};

struct cw_tasktab *cw_tasktab_create(void)
{
    struct cw_tasktab *t = cw_xcalloc(1, sizeof *t);
    cw_list_init(&t->list);
    t->by_key = cw_strtable_create();
    return t;
}

void cw_tasktab_destroy(struct cw_tasktab *t)
{
    if (t == NULL)
        return;
    cw_list_each_safe(l, &t->list)
        cw_tasktab_remove(t, cw_list_entry(l, struct cw_tasktab_entry, link));
    cw_strtable_destroy(t->by_key);
    free(t);
}

static void format_key(char *buf, size_t cap, uint64_t id, uint32_t attempt)
{
    snprintf(buf, cap, "%llu.%u", (unsigned long long)id, attempt);
}

struct cw_tasktab_entry *cw_tasktab_find(struct cw_tasktab *t, uint64_t id, uint32_t attempt)
{
    char key[36];
    format_key(key, sizeof key, id, attempt);
    return cw_strtable_find(t->by_key, key);
}

struct cw_tasktab_entry *cw_tasktab_add(struct cw_tasktab *t, uint64_t id, uint32_t attempt)
{
    struct cw_tasktab_entry *e = cw_tasktab_find(t, id, attempt);
    if (e != NULL)
        return e;
    e = cw_xcalloc(1, sizeof *e);
    e->id = id;
    e->attempt = attempt;
    e->state = CW__STATE__STARTING;
    cw_list_init(&e->steps);
    format_key(e->key, sizeof e->key, id, attempt);
    cw_list_add_tail(&t->list, &e->link);
    cw_strtable_set(t->by_key, e->key, e);
    return e;
}

void cw_tasktab_remove(struct cw_tasktab *t, struct cw_tasktab_entry *e)
{
    cw_list_remove(&e->link);
    cw_strtable_remove(t->by_key, e->key);
    cw_stepreports_clear(e);
    cw_buf_fini(&e->started);
    cw_buf_fini(&e->end);
    free(e->stdout_path);
    free(e->stderr_path);
    free(e);
}

struct cw_list *cw_tasktab_list(struct cw_tasktab *t)
{
    return &t->list;
}

static void take_paths(struct cw_tasktab_entry *e, const char *out, const char *err)
{
    if (out != NULL && e->stdout_path == NULL)
        e->stdout_path = cw_xstrdup(out);
    if (err != NULL && e->stderr_path == NULL)
        e->stderr_path = cw_xstrdup(err);
}

bool cw_tasktab_started(struct cw_tasktab_entry *e, const Cw__TaskStarted *m, const void *packed,
                        size_t n)
{
    if (e->started.len > 0)
        return false;
    cw_buf_add(&e->started, packed, n);
    take_paths(e, m->stdout_path, m->stderr_path);
    if (e->end.len == 0)
        e->state = CW__STATE__RUNNING;
    return true;
}

bool cw_tasktab_ended(struct cw_tasktab_entry *e, const Cw__TaskEnd *m, const void *packed,
                      size_t n)
{
    if (e->end.len > 0)
        return false;
    cw_buf_add(&e->end, packed, n);
    take_paths(e, m->stdout_path, m->stderr_path);
    e->not_empty = !m->empty;
    e->state = cw_outcome_state(m);
    return true;
}

bool cw_tasktab_final(const struct cw_tasktab_entry *e)
{
    return e->end.len > 0 && (!e->not_empty || e->emptied);
}
