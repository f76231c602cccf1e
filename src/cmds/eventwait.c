/* See eventwait.h. The history is read first, from the submit of the oldest of the jobs; the cursor
 * then goes on to what comes, so that nothing between both is lost. */
#include "cmds/eventwait.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cmds/eventquery.h"
#include "cmds/jobquery.h"
#include "cmds/jobtext.h"
#include "spec/outcome.h"

struct target {
    uint64_t first, last; /* ids: a job or an element, or an array with its elements */
    bool had, ended;
};
struct eventwait {
    const char *kind;
    struct target *v;
    size_t n, cap, n_left;
    bool fixed;        /* all targets are known */
    bool following;    /* stop to look at the jobs when something ended */
    int64_t oldest_ns; /* submit */
};

static struct target *find(struct eventwait *w, uint64_t id)
{
    for (size_t i = 0; i < w->n; i++)
        if (id >= w->v[i].first && id <= w->v[i].last)
            return &w->v[i];
    return NULL;
}

static void on_job(const Cw__JobInfo *j, int64_t now_ns, void *arg)
{
    struct eventwait *w = arg;
    (void)now_ns;
    /* A live element among the rows of its whole array is part of that. */
    struct target *t = find(w, j->id);
    bool whole = j->has_count && !j->has_index, ended = cw_state_terminal(j->state);
    for (size_t i = 0; i < w->n && whole && ended; i++)
        if (w->v[i].first >= j->id && w->v[i].last <= j->id + j->count)
            w->v[i].ended = true;
    if (t == NULL && w->fixed)
        return;
    if (t == NULL) {
        if (w->n == w->cap) {
            w->cap = w->cap ? w->cap * 2 : 16;
            w->v = cw_xrealloc(w->v, w->cap, sizeof *w->v);
        }
        t = &w->v[w->n++];
        *t = (struct target){j->id, j->id + (whole ? j->count : 0), false, false};
        w->n_left++;
        if (w->oldest_ns == 0 || j->submit_ns < w->oldest_ns)
            w->oldest_ns = j->submit_ns;
    }
    if (whole || t->first == t->last)
        t->ended = ended;
}

static int look(struct cw_cli *c, struct eventwait *w, struct cw_strv *ids)
{
    Cw__JobFilter filter = CW__JOB_FILTER__INIT;
    Cw__JobsRequest req = CW__JOBS_REQUEST__INIT;
    filter.n_ids = ids->n;
    filter.ids = ids->v;
    req.filter = &filter;
    int rc = cw_jobquery_each(c, &req, on_job, w);
    w->fixed = true;
    return rc;
}

static bool on_event(const Cw__EventRecord *e, void *arg)
{
    struct eventwait *w = arg;
    struct target *t = find(w, e->job_id);
    if (t == NULL || t->had)
        return true;
    if (strcmp(e->kind, w->kind) != 0)
        return !w->following;
    t->had = true;
    return --w->n_left > 0;
}

static bool any_ended(const struct eventwait *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (!w->v[i].had && w->v[i].ended)
            return true;
    return false;
}

static int say_ended(const struct cw_cli *c, const struct eventwait *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (!w->v[i].had && w->v[i].ended)
            fprintf(stderr, "%s: job %llu has ended without event %s\n", c->name,
                    (unsigned long long)w->v[i].first, w->kind);
    return CW_EXIT_REFUSED;
}

/* All that is stored. */
static int drain(struct cw_cli *c, struct cw_eventquery *q, struct eventwait *w)
{
    q->follow = w->following = false;
    return cw_eventquery_each(c, q, on_event, w);
}

static int wait_for_all(struct cw_cli *c, struct eventwait *w, struct cw_strv *ids,
                        struct cw_eventquery *q)
{
    for (;;) {
        int rc = drain(c, q, w);
        if (rc >= 0 || w->n_left == 0)
            return rc;
        if ((rc = look(c, w, ids)) >= 0)
            return rc;
        if (any_ended(w)) { /* its event may be newer than our page */
            if ((rc = drain(c, q, w)) >= 0 || w->n_left == 0)
                return rc;
            if (any_ended(w))
                return say_ended(c, w);
        }
        q->follow = w->following = true;
        rc = cw_eventquery_each(c, q, on_event, w);
        if (rc == CW_EVENTQUERY_TIMED_OUT) {
            fprintf(stderr, "%s: no event %s within the given time\n", c->name, w->kind);
            return CW_EXIT_REFUSED;
        }
        if (rc >= 0 || w->n_left == 0)
            return rc;
    }
}

int cw_eventwait(struct cw_cli *c, struct cw_strv *ids, const char *kind, uint64_t timeout_ms)
{
    struct eventwait w = {.kind = kind};
    char *kinds[] = {(char *)kind, "end", "cancel"};
    struct cw_eventquery q = {.req = CW__EVENTS_REQUEST__INIT, .timeout_ms = timeout_ms};
    int rc = look(c, &w, ids);
    if (rc < 0 && w.n == 0) {
        fprintf(stderr, "%s: job %s does not exist\n", c->name, ids->v[0]);
        rc = CW_EXIT_REFUSED;
    }
    if (rc < 0) {
        q.req.n_ids = ids->n;
        q.req.ids = ids->v;
        q.req.n_kinds = CW_ARRAY_LEN(kinds);
        q.req.kinds = kinds;
        q.req.has_since_ns = true;
        q.req.since_ns = w.oldest_ns - CW_NS_PER_S;
        rc = wait_for_all(c, &w, ids, &q);
    }
    free(w.v);
    return rc < 0 ? CW_EXIT_OK : rc;
}
