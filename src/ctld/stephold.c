/* stephold.c: sets of cores and GPUs by node of an attempt; see stephold.h. */
#include "ctld/stephold.h"

#include <string.h>

void cw_stephold_init(struct cw_stephold *h, const Cw__AttemptRecord *rec)
{
    h->rec = rec;
    h->n = (uint32_t)rec->n_more_grants + 1;
    h->cores = cw_xcalloc(h->n, sizeof *h->cores);
    h->gpus = cw_xcalloc(h->n, sizeof *h->gpus);
}

void cw_stephold_fini(struct cw_stephold *h)
{
    for (uint32_t k = 0; k < h->n; k++) {
        cw_idset_fini(&h->cores[k]);
        cw_idset_fini(&h->gpus[k]);
    }
    free(h->cores);
    free(h->gpus);
}

/* The part of one "NAME:SET". NULL: of no node of the attempt. */
static struct cw_idset *set_of(const struct cw_stephold *h, struct cw_idset *sets,
                               const char *word, size_t name_len)
{
    for (uint32_t k = 0; k < h->n; k++) {
        const char *name = cw_steplayout_grant(h->rec, k)->node;
        if (strlen(name) == name_len && memcmp(name, word, name_len) == 0)
            return &sets[k];
    }
    return NULL;
}

static void read_text(const struct cw_stephold *h, struct cw_idset *sets, const char *text,
                      void (*apply)(struct cw_idset *set, uint64_t first, uint64_t last))
{
    for (const char *p = text; p != NULL && *p != '\0';) {
        size_t n = strcspn(p, " ");
        const char *colon = memchr(p, ':', n);
        struct cw_idset some = {0};
        struct cw_idset *to =
            colon != NULL ? set_of(h, sets, p, (size_t)(colon - p)) : NULL;
        if (to != NULL && cw_idset_parse(colon + 1, n - (size_t)(colon + 1 - p), UINT32_MAX, &some,
                                         NULL) == 0)
            for (size_t i = 0; i < some.n; i++)
                apply(to, some.r[i].first, some.r[i].last);
        cw_idset_fini(&some);
        p += n;
        p += strspn(p, " ");
    }
}

void cw_stephold_add(struct cw_stephold *h, const Cw__StepRecord *s)
{
    read_text(h, h->cores, s->cores, cw_idset_add);
    read_text(h, h->gpus, s->gpus, cw_idset_add);
}

void cw_stephold_all_but(struct cw_stephold *h, const Cw__StepRecord *s)
{
    for (uint32_t k = 0; k < h->n; k++) {
        const Cw__Grant *g = cw_steplayout_grant(h->rec, k);
        cw_idset_parse(g->cores, strlen(g->cores), UINT32_MAX, &h->cores[k], NULL);
        for (size_t i = 0; s->gpus != NULL && i < g->n_gpus; i++)
            cw_idset_add(&h->gpus[k], g->gpus[i]->index, g->gpus[i]->index);
    }
    read_text(h, h->cores, s->cores, cw_idset_remove);
    read_text(h, h->gpus, s->gpus, cw_idset_remove);
}

static char *write_text(const struct cw_steplayout *l, const Cw__StepRecord *s, bool gpus,
                        struct cw_arena *a)
{
    cw_autobuf struct cw_buf b = {0};
    for (uint32_t i = 0; i < l->n_nodes; i++) {
        const char *set = gpus ? l->nodes[i].gpus : l->nodes[i].cores;
        if (set[0] != '\0')
            cw_buf_addf(&b, "%s%s:%s", b.len > 0 ? " " : "", s->nodes[i], set);
    }
    return cw_arena_strdup(a, cw_buf_str(&b));
}

void cw_stephold_write(const struct cw_steplayout *l, Cw__StepRecord *s, bool gpus,
                       struct cw_arena *a)
{
    s->cores = write_text(l, s, false, a);
    if (gpus)
        s->gpus = write_text(l, s, true, a);
}
