/* req_wait.c: a long poll until the named jobs have ended. */
#include "ctld/requests.h"

#include "ctld/answer.h"
#include "ctld/jobfilter.h"
#include "ctld/jobpick.h"
#include "ctld/waiter.h"

#define TIMEOUT_DEFAULT_MS 30000u

struct items {
    struct cw_wait_item *v;
    size_t n, cap;
};

static int items_add(struct items *l, uint64_t id, bool is_element, struct cw_error *err)
{
    if (l->n >= CW_WAITS_ITEMS_MAX)
        return cw_fail(err, -E2BIG,
                       "too many jobs to wait for, at most %u are allowed in one request",
                       CW_WAITS_ITEMS_MAX);
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 16;
        l->v = cw_xrealloc(l->v, l->cap, sizeof *l->v);
    }
    l->v[l->n++] = (struct cw_wait_item){id, is_element};
    return 0;
}

static int add_elements(struct items *l, const struct cw_jobsrc *s, const struct cw_selector *sel,
                        const char *text, struct cw_error *err)
{
    struct cw_idset ordinals = {0};
    int rc = 0;
    if (!s->is_array || !cw_jobfilter_ordinals(sel, &s->indices, &ordinals))
        rc = cw_fail(err, -ENOENT, "job %s does not exist", text);
    for (size_t r = 0; rc == 0 && r < ordinals.n; r++)
        for (uint64_t k = ordinals.r[r].first; rc == 0 && k <= ordinals.r[r].last; k++)
            rc = items_add(l, cw_jobsrc_element_id(s, k), true, err);
    cw_idset_fini(&ordinals);
    return rc;
}

/* "5-9" waits for those of them that exist; a single one has to. */
static int add_selector(struct cw_ctld *c, struct items *l, const char *text, struct cw_error *err)
{
    struct cw_selector sel = {0};
    int rc = cw_selector_parse(text, &sel, err);
    if (rc < 0)
        return rc;
    struct cw_arena *a = cw_arena_create();
    if (sel.last - sel.first >= CW_WAITS_ITEMS_MAX)
        rc = cw_fail(err, -E2BIG, "'%s' names too many jobs, at most %u are allowed in one request",
                     text, CW_WAITS_ITEMS_MAX);
    for (uint64_t id = sel.first; rc == 0 && id <= sel.last; id++) {
        struct cw_jobsrc s;
        bool is_element;
        rc = cw_jobview_find(c, id, a, &s, &is_element, NULL, err);
        if (rc == -ENOENT && sel.first != sel.last) {
            rc = 0;
            continue;
        }
        if (rc < 0)
            break;
        if (sel.has_indices)
            rc = add_elements(l, &s, &sel, text, err);
        else
            rc = items_add(l, id, is_element, err);
        cw_jobsrc_fini(&s);
        cw_arena_reset(a);
    }
    cw_arena_destroy(a);
    cw_selector_fini(&sel);
    return rc;
}

void cw_req_wait(struct cw_ctld *c, struct cw_rpc_call *call, const ProtobufCMessage *msg)
{
    const Cw__WaitRequest *m = (const Cw__WaitRequest *)msg;
    struct cw_error err = {0};
    struct items l = {0};
    int rc = m->n_ids == 0 ? cw_fail(&err, -EINVAL, "no job to wait for was named") : 0;
    for (size_t i = 0; rc == 0 && i < m->n_ids; i++)
        rc = add_selector(c, &l, m->ids[i], &err);
    if (rc == 0)
        rc = cw_waits_add(c->waits, call, l.v, l.n,
                          m->has_timeout_ms ? m->timeout_ms : TIMEOUT_DEFAULT_MS, &err);
    if (rc < 0)
        cw_answer_failure(c, call, &err);
    free(l.v);
}
