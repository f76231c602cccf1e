/* Wishes of jobs, interned by a text that holds every field. See want.h. */
#include "model/want.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/hostlist.h"
#include "base/mem.h"
#include "base/table.h"
#include "model/model.h"
#include "spec/check.h"

static void add_text(struct cw_buf *b, const char *text)
{
    cw_buf_add_str(b, text != NULL ? text : "");
    cw_buf_add(b, "\n", 1); /* in none of these texts */
}

static const char *line(char **pos)
{
    char *text = *pos, *end = strchr(text, '\n');
    *end = '\0';
    *pos = end + 1;
    return text[0] != '\0' ? text : NULL;
}

/* Numbers, then one line a text. */
static void make_key(const Cw__JobSpec *s, struct cw_buf *b)
{
    static const Cw__Settings none = CW__SETTINGS__INIT;
    const Cw__Settings *t = s->settings != NULL ? s->settings : &none;
    const char *const texts[] = {t->gpu_type, t->isolation, s->nodelist,
                                 s->exclude,  s->constraint, s->prefer};
    cw_buf_addf(b,
                "%u %u %u %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %u %d\n",
                cw_spec_ntasks(s), cw_spec_cpus_per_task(s), s->has_nodes_min ? s->nodes_min : 0,
                s->has_nodes_max ? s->nodes_max : UINT32_MAX,
                s->has_ntasks_per_node ? s->ntasks_per_node : UINT32_MAX, t->mem_bytes,
                t->mem_per_cpu_bytes, t->mem_per_gpu_bytes, t->gpus, t->gpus_per_node,
                t->gpus_per_task, s->exclusive ? 1 : 0);
    for (size_t i = 0; i < CW_ARRAY_LEN(texts); i++)
        add_text(b, texts[i]);
}

static uint32_t count_hosts(const char *list)
{
    struct cw_strv hosts = {0};
    if (list == NULL)
        return 0;
    uint32_t n = cw_hostlist_parse(list, &hosts, NULL) == 0 ? (uint32_t)hosts.n : 0;
    cw_strv_fini(&hosts);
    return n;
}

/* key and then a second copy that is cut into the texts. */
static struct cw_want *make(const Cw__JobSpec *s, const struct cw_buf *key)
{
    static const Cw__Settings none = CW__SETTINGS__INIT;
    const Cw__Settings *t = s->settings != NULL ? s->settings : &none;
    size_t n = key->len + 1;
    struct cw_want *w = cw_xcalloc(1, sizeof(*w) + 2 * n);
    memcpy(w->key, cw_buf_str((struct cw_buf *)key), n);
    char *texts = w->key + n;
    memcpy(texts, w->key, n);
    w->ntasks = cw_spec_ntasks(s);
    w->cpus = cw_spec_cpus_per_task(s);
    w->nodes_min = s->has_nodes_min ? s->nodes_min : 0;
    w->nodes_max = s->has_nodes_max ? s->nodes_max : UINT32_MAX;
    w->per_node = s->has_ntasks_per_node ? s->ntasks_per_node : UINT32_MAX;
    w->mem_node = t->mem_bytes;
    w->mem_cpu = t->mem_per_cpu_bytes;
    w->mem_gpu = t->mem_per_gpu_bytes;
    w->gpus = t->gpus;
    w->gpus_node = t->gpus_per_node;
    w->gpus_task = t->gpus_per_task;
    w->exclusive = s->exclusive;
    (void)line(&texts); /* the numbers */
    w->gpu_type = line(&texts);
    w->isolation = line(&texts);
    w->nodelist = line(&texts);
    w->exclude = line(&texts);
    w->constraint = line(&texts);
    w->prefer = line(&texts);
    w->n_listed = count_hosts(w->nodelist);
    w->refs = 1;
    return w;
}

struct cw_want *cw_want_make(const Cw__JobSpec *s)
{
    cw_autobuf struct cw_buf key = {0};
    make_key(s, &key);
    return make(s, &key);
}

void cw_want_free(struct cw_want *w) { free(w); }

struct cw_want *cw_want_get(struct cw_model *m, const Cw__JobSpec *s)
{
    cw_autobuf struct cw_buf key = {0};
    make_key(s, &key);
    struct cw_want *w = cw_strtable_find(m->wants, cw_buf_str(&key));
    if (w != NULL) {
        w->refs++;
        return w;
    }
    w = make(s, &key);
    w->number = ++m->last_want;
    cw_strtable_set(m->wants, w->key, w);
    return w;
}

void cw_want_put(struct cw_model *m, struct cw_want *w)
{
    if (w == NULL || --w->refs > 0)
        return;
    cw_strtable_remove(m->wants, w->key);
    free(w);
}

uint32_t cw_want_cores(const struct cw_want *w)
{
    uint32_t cores;
    return __builtin_mul_overflow(w->ntasks, w->cpus, &cores) ? UINT32_MAX : cores;
}

uint32_t cw_want_gpus(const struct cw_want *w)
{
    uint32_t gpus;
    if (w->gpus_task != 0)
        return __builtin_mul_overflow(w->gpus_task, w->ntasks, &gpus) ? UINT32_MAX : gpus;
    uint32_t nodes = w->nodes_min > 0 ? w->nodes_min : 1;
    if (w->gpus_node != 0)
        return __builtin_mul_overflow(w->gpus_node, nodes, &gpus) ? UINT32_MAX : gpus;
    return w->gpus;
}
