/* ctl_jobs.c: crun-ctl's verbs that change jobs or stop the scheduling: requeue, pause. See
 * ctl_jobs.h. */
#include "ctld/ctl_jobs.h"

#include <string.h>

#include "base/clock.h"
#include "ctld/jobfilter.h"
#include "ctld/jobview.h"
#include "ctld/turn.h"
#include "ctld/users.h"
#include "spec/outcome.h"

#define JOBS_MAX 100000u /* of one selector */

/* Which elements of j the selector names; false: none. */
static bool named(const struct cw_job *j, const struct cw_selector *sel, uint64_t id,
                  struct cw_idset *ret)
{
    uint64_t ordinal;
    if (!j->is_array)
        return !sel->has_indices;
    if (id == j->id)
        return cw_jobfilter_ordinals(sel, &j->array->indices, ret);
    if (!cw_job_ordinal(j, id, &ordinal))
        return false;
    cw_idset_add(ret, ordinal, ordinal);
    return true;
}

static int requeue_job(struct cw_ctld *c, struct cw_job *j, const struct cw_selector *sel,
                       uint64_t id, const struct cw_requeue *how, struct cw_error *err)
{
    struct cw_idset ordinals = {0};
    uint64_t n = 0;
    bool any = named(j, sel, id, &ordinals);
    if (any)
        n = cw_model_requeue(c->model, j, j->is_array ? &ordinals : NULL, how->hold, how->who->uid,
                             cw_clock_real_ns());
    cw_idset_fini(&ordinals);
    if (!any)
        return cw_fail(err, -ENOENT, "job %llu has no such element", (unsigned long long)id);
    return n > 0 || sel->first != sel->last
               ? 0
               : cw_fail(err, -ESRCH, "job %llu: nothing of it runs", (unsigned long long)id);
}

/* One that is not live: it has ended, or is not there for the caller. */
static int not_live(struct cw_ctld *c, uint64_t id, const struct cw_requeue *how,
                    struct cw_error *err)
{
    struct cw_jobsrc s;
    int rc = cw_jobview_find(c, id, how->arena, &s, NULL, NULL, err);
    if (rc < 0)
        return rc;
    bool mine = cw_users_may(c, how->who, s.rec->owner->uid);
    rc = mine ? cw_fail(err, -ESRCH, "job %llu has ended already (%s): submit it again",
                        (unsigned long long)id, cw_state_name(s.rec->state))
              : cw_fail(err, -ENOENT, "job %llu does not exist", (unsigned long long)id);
    cw_jobsrc_fini(&s);
    return rc;
}

int cw_ctl_requeue(struct cw_ctld *c, const char *text, const struct cw_requeue *how,
                   struct cw_error *err)
{
    struct cw_selector sel = {0};
    int rc = cw_selector_parse(text, &sel, err);
    if (rc < 0)
        return rc;
    if (sel.last - sel.first >= JOBS_MAX)
        rc = cw_fail(err, -E2BIG, "'%s' names too many jobs", text);
    for (uint64_t id = sel.first; rc == 0 && id <= sel.last; id++) {
        struct cw_job *j = cw_model_job(c->model, id);
        if (j != NULL && cw_users_may(c, how->who, j->uid))
            rc = requeue_job(c, j, &sel, id, how, err);
        else if (sel.first == sel.last)
            rc = not_live(c, id, how, err);
    }
    cw_selector_fini(&sel);
    return rc;
}

/* ---- pause ----------------------------------------------------------------------------------- */

void cw_ctl_pause(struct cw_ctld *c, bool pause)
{
    struct cw_batch *b = cw_turn_batch(c->turn);
    if (pause)
        cw_batch_put(b, CW_TABLE_META, CW_META_PAUSED, strlen(CW_META_PAUSED), "1", 1);
    else
        cw_batch_del(b, CW_TABLE_META, CW_META_PAUSED, strlen(CW_META_PAUSED));
    c->paused = pause;
    cw_cycle_want(c->cycle);
}

int cw_ctl_pause_load(struct cw_ctld *c, struct cw_error *err)
{
    cw_autobuf struct cw_buf b = {0};
    int rc = cw_store_get(c->store, CW_TABLE_META, CW_META_PAUSED, strlen(CW_META_PAUSED), &b, err);
    c->paused = rc == 1;
    return rc < 0 ? rc : 0;
}
