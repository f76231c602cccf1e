/* Job selectors and dependency lists as text (contract: selector.h). Every refusal quotes the text.
 * Test: selector_test.c, fuzz_selector.c. */
#include "spec/selector.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "spec/fieldrule.h"

/* Digits at *p as a number from 1 to max; moves *p behind them. */
static bool take_number(const char **p, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;
    const char *start = *p;
    for (; **p >= '0' && **p <= '9'; (*p)++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(**p - '0'), &v))
            return false;
    *ret = v;
    return *p != start && v >= 1 && v <= max;
}

/* What follows "12_": "3", "[0-3,7]" or "*". */
static int take_indices(const char **p, const char *text, struct cw_selector *s,
                        struct cw_error *err)
{
    size_t len;
    const char *body = *p;
    if (*body == '*') {
        (*p)++;
        return 0;
    }
    if (*body == '[') {
        body++;
        len = strcspn(body, "]");
        if (body[len] != ']')
            return cw_fail(err, -EINVAL, "job '%s': the [ has no ]", text);
        *p = body + len + 1;
    } else {
        len = strspn(body, "0123456789");
        *p = body + len;
    }
    if (len == 0)
        return cw_fail(err, -EINVAL, "job '%s': an array index is missing behind _", text);
    int r = cw_idset_parse(body, len, UINT64_MAX - 1, &s->indices, err);
    if (r < 0)
        return cw_wrap(err, r, "job '%s'", text);
    s->has_indices = true;
    return 0;
}

static int take_tail(const char *p, const char *text, struct cw_selector *s, struct cw_error *err)
{
    uint64_t v;
    if (*p == '-') {
        p++;
        if (!take_number(&p, CW_SELECTOR_MAX_ID, &s->last) || s->last < s->first)
            return cw_fail(err, -EINVAL, "job '%s': a range is LOW-HIGH", text);
    } else if (*p == '_') {
        p++;
        int r = take_indices(&p, text, s, err);
        if (r < 0)
            return r;
    }
    if (*p == ':' && s->first == s->last) {
        p++;
        if (!take_number(&p, UINT32_MAX, &v))
            return cw_fail(err, -EINVAL, "job '%s': an attempt is a number from 1", text);
        s->attempt = (uint32_t)v;
    }
    if (*p != '\0')
        return cw_fail(err, -EINVAL, "job '%s': '%s' is too much (12, 12_3, 12_[0-3], 5-9, 12:2)",
                       text, p);
    return 0;
}

int cw_selector_parse(const char *text, struct cw_selector *ret, struct cw_error *err)
{
    struct cw_selector s = {0};
    const char *p = text;
    if (!take_number(&p, CW_SELECTOR_MAX_ID, &s.first))
        return cw_fail(err, -EINVAL, "job '%s' is not a job id (12, 12_3, 12_[0-3], 5-9, 12:2)",
                       text);
    s.last = s.first;
    int r = take_tail(p, text, &s, err);
    if (r < 0) {
        cw_idset_fini(&s.indices);
        return r;
    }
    *ret = s;
    return 0;
}

void cw_selector_fini(struct cw_selector *s)
{
    cw_idset_fini(&s->indices);
}

int cw_selector_split(const char *text, struct cw_strv *ret, struct cw_error *err)
{
    const char *start = text;
    bool inside = false;
    for (const char *p = text;; p++) {
        inside = (inside || *p == '[') && *p != ']';
        if (*p != '\0' && (*p != ',' || inside))
            continue;
        if (p == start)
            return cw_fail(err, -EINVAL, "job list '%s' has an empty item", text);
        cw_strv_add_take(ret, cw_xstrndup(start, (size_t)(p - start)));
        if (*p == '\0')
            return 0;
        start = p + 1;
    }
}

char *cw_selector_format(uint64_t id, uint64_t array_id, uint64_t index, char *buf, size_t cap)
{
    if (array_id != 0)
        snprintf(buf, cap, "%" PRIu64 "_%" PRIu64, array_id, index);
    else
        snprintf(buf, cap, "%" PRIu64, id);
    return buf;
}

/* ---- dependencies ---- */
static const struct {
    const char *word;
    Cw__DependencyKind kind;
} kinds[] = {
    {"afterok", CW__DEPENDENCY_KIND__AFTEROK},       {"afterany", CW__DEPENDENCY_KIND__AFTERANY},
    {"afternotok", CW__DEPENDENCY_KIND__AFTERNOTOK}, {"after", CW__DEPENDENCY_KIND__AFTER},
    {"aftercorr", CW__DEPENDENCY_KIND__AFTERCORR},   {"singleton", CW__DEPENDENCY_KIND__SINGLETON},
};

struct deplist {
    struct cw_arena *arena;
    Cw__Dependency **v;
    size_t n;
};

static int add(struct deplist *l, Cw__DependencyKind kind, const Cw__Dependency *on,
               struct cw_error *err)
{
    if (l->n == CW_SELECTOR_MAX_DEPENDENCIES)
        return cw_fail(err, -E2BIG, "more than %d dependencies", CW_SELECTOR_MAX_DEPENDENCIES);
    Cw__Dependency *d = cw_arena_alloc(l->arena, sizeof *d);
    *d = *on;
    d->kind = kind;
    l->v[l->n++] = d;
    return 0;
}

/* "12", "12_*" (the same) or "12_3"; only the controller can tell that element's id. */
static int parse_predecessor(char *text, Cw__DependencyKind kind, Cw__Dependency *ret,
                             struct cw_error *err)
{
    struct cw_selector s;
    char *plus = strchr(text, '+');
    if (plus != NULL) {
        uint64_t minutes = 0;
        *plus++ = '\0';
        if (kind != CW__DEPENDENCY_KIND__AFTER)
            return cw_fail(err, -EINVAL, "'%s+%s': only after knows a delay", text, plus);
        if (cw_field_count(plus, 0, CW_SELECTOR_MAX_DELAY_MIN, &minutes, err) < 0)
            return cw_wrap(err, -EINVAL, "minutes behind %s+", text);
        ret->has_delay_s = true;
        ret->delay_s = minutes * 60;
    }
    int r = cw_selector_parse(text, &s, err);
    if (r < 0)
        return r;
    if (s.first != s.last || s.attempt != 0 || (s.has_indices && cw_idset_count(&s.indices) != 1))
        r = cw_fail(err, -EINVAL, "job '%s': a dependency names one job or one element", text);
    else {
        ret->has_job_id = 1;
        ret->job_id = s.first;
        ret->has_index = s.has_indices;
        ret->index = s.has_indices ? cw_idset_first(&s.indices) : 0;
    }
    cw_selector_fini(&s);
    return r;
}

/* One "kind:ID[:ID...]" (the whole of term). */
static int parse_term(char *term, struct deplist *l, struct cw_error *err)
{
    static const Cw__Dependency none = CW__DEPENDENCY__INIT;
    char *ids = strchr(term, ':');
    if (ids != NULL)
        *ids++ = '\0';
    for (size_t i = 0; i < CW_ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].word, term) != 0)
            continue;
        bool alone = kinds[i].kind == CW__DEPENDENCY_KIND__SINGLETON;
        if (alone != (ids == NULL))
            return cw_fail(err, -EINVAL, alone ? "%s takes no job id" : "%s needs a job id: %s:ID",
                           term, term);
        if (alone)
            return add(l, kinds[i].kind, &none, err);
        for (char *next; ids != NULL; ids = next) {
            Cw__Dependency on = CW__DEPENDENCY__INIT;
            next = strchr(ids, ':');
            if (next != NULL)
                *next++ = '\0';
            int r = parse_predecessor(ids, kinds[i].kind, &on, err);
            if (r == 0)
                r = add(l, kinds[i].kind, &on, err);
            if (r < 0)
                return r;
        }
        return 0;
    }
    return cw_fail(err, -EINVAL, "'%s' is not a kind of dependency (after, afterany, afterok, afternotok, "
                   "singleton)",
                   term);
}

int cw_dependency_parse(const char *text, struct cw_arena *a, size_t *ret_n, Cw__Dependency ***ret,
                        bool *ret_any, struct cw_error *err)
{
    struct deplist l = {.arena = a};
    *ret_any = strchr(text, '?') != NULL;
    if (*ret_any && strchr(text, ',') != NULL)
        return cw_fail(err, -EINVAL, "'%s': either commas (all of them) or ? (one is enough)", text);
    cw_autofree char *copy = cw_xstrdup(text);
    l.v = cw_arena_alloc(a, CW_SELECTOR_MAX_DEPENDENCIES * sizeof(Cw__Dependency *));
    for (char *term = copy, *next; term != NULL; term = next) {
        next = strchr(term, *ret_any ? '?' : ',');
        if (next != NULL)
            *next++ = '\0';
        int r = parse_term(term, &l, err);
        if (r < 0)
            return r;
    }
    *ret_n = l.n;
    *ret = l.v;
    return 0;
}
