/* See statistics.h. */
#include "ctld/statistics.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/table.h"

struct cw_statistics {
    uint64_t turns;
    struct cw_requestcount kind[CW_STATISTICS_KINDS];
    struct cw_idtable *users; /* uid + 1 -> cw_requestcount, heap */
    struct cw_requestcount others;
};

struct cw_statistics *cw_statistics_create(void)
{
    struct cw_statistics *s = cw_xcalloc(1, sizeof *s);
    s->users = cw_idtable_create();
    s->others.uid = CW_STATISTICS_OTHERS;
    return s;
}

static bool free_user(uint64_t key, void *value, void *arg)
{
    (void)key, (void)arg;
    free(value);
    return true;
}

void cw_statistics_destroy(struct cw_statistics *s)
{
    if (s == NULL)
        return;
    cw_idtable_each(s->users, free_user, NULL);
    cw_idtable_destroy(s->users);
    free(s);
}

void cw_statistics_turn(struct cw_statistics *s)
{
    s->turns++;
}

uint64_t cw_statistics_turns(const struct cw_statistics *s)
{
    return s->turns;
}

/* Moves the minutes on to now. */
static void count_settle(struct cw_requestcount *c, int64_t minute)
{
    if (c->number == minute)
        return;
    c->before = c->number + 1 == minute ? c->minute : 0;
    c->minute = 0;
    c->number = minute;
}

static void count_one(struct cw_requestcount *c, int64_t minute)
{
    count_settle(c, minute);
    c->n++;
    c->minute++;
}

void cw_statistics_request(struct cw_statistics *s, enum cw_kind kind, uint32_t uid,
                           int64_t mono_ns)
{
    int64_t minute = mono_ns / (60 * CW_NS_PER_S);
    if ((unsigned)kind < CW_STATISTICS_KINDS)
        count_one(&s->kind[kind], minute);
    struct cw_requestcount *user = cw_idtable_find(s->users, (uint64_t)uid + 1);
    if (user == NULL && cw_idtable_count(s->users) >= CW_STATISTICS_USERS_MAX) {
        user = &s->others;
    } else if (user == NULL) {
        user = cw_xcalloc(1, sizeof *user);
        user->uid = uid;
        cw_idtable_set(s->users, (uint64_t)uid + 1, user);
    }
    count_one(user, minute);
}

void cw_statistics_kind(const struct cw_statistics *s, enum cw_kind kind, int64_t mono_ns,
                        uint64_t *ret_n, uint64_t *ret_per_minute)
{
    struct cw_requestcount c = {0};
    if ((unsigned)kind < CW_STATISTICS_KINDS)
        c = s->kind[kind];
    count_settle(&c, mono_ns / (60 * CW_NS_PER_S));
    *ret_n = c.n;
    *ret_per_minute = c.before;
}

struct top {
    struct cw_requestcount *v;
    size_t n, max;
    int64_t minute;
};

/* Insertion into the few that asked most. */
static bool top_add(uint64_t key, void *value, void *arg)
{
    struct top *t = arg;
    struct cw_requestcount c = *(const struct cw_requestcount *)value;
    (void)key;
    count_settle(&c, t->minute);
    size_t at = t->n;
    while (at > 0 && t->v[at - 1].n < c.n) {
        if (at < t->max)
            t->v[at] = t->v[at - 1];
        at--;
    }
    if (at < t->max)
        t->v[at] = c;
    if (t->n < t->max)
        t->n++;
    return true;
}

size_t cw_statistics_users(const struct cw_statistics *s, int64_t mono_ns,
                           struct cw_requestcount *ret, size_t max)
{
    struct top t = {ret, 0, max, mono_ns / (60 * CW_NS_PER_S)};
    struct cw_requestcount others = s->others;
    cw_idtable_each(s->users, top_add, &t);
    if (others.n > 0)
        top_add(0, &others, &t);
    return t.n;
}
