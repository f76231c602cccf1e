/* A set of u64 kept as sorted, disjoint, never adjacent intervals.
 *
 * A change is a binary search and one memmove. The text form is parsed into a plain list of ranges
 * first, then sorted and merged once, so that hostile text cannot make it quadratic.
 * Test: idset_test.c, fuzz_idset.c. */
#include "config.h"

#include "base/idset.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void cw_idset_fini(struct cw_idset *s)
{
    free(s->r);
    *s = (struct cw_idset){ 0 };
}

static void make_room(struct cw_idset *s, size_t n)
{
    if (s->n + n <= s->cap)
        return;
    s->cap = s->cap * 2 > s->n + n ? s->cap * 2 : s->n + n;
    s->r = cw_xrealloc(s->r, s->cap, sizeof(*s->r));
}

/* Position of the first interval that ends at id or later; s->n when there is none. */
static size_t search(const struct cw_idset *s, uint64_t id)
{
    size_t low = 0, high = s->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->r[mid].last < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Replaces the intervals [from, to) by the n given ones. */
static void replace(struct cw_idset *s, size_t from, size_t to, const struct cw_idrange *with,
                    size_t n)
{
    if (n > to - from)
        make_room(s, n - (to - from));
    if (s->n > to)
        memmove(&s->r[from + n], &s->r[to], (s->n - to) * sizeof(*s->r));
    for (size_t i = 0; i < n; i++)
        s->r[from + i] = with[i];
    s->n = s->n - (to - from) + n;
}

void cw_idset_add(struct cw_idset *s, uint64_t first, uint64_t last)
{
    if (first > last)
        return;
    struct cw_idrange with = { first, last };
    /* An interval that ends just before first, or begins just behind last, is merged too. */
    size_t from = search(s, first > 0 ? first - 1 : 0);
    size_t to = search(s, last);

    if (to < s->n && (last == UINT64_MAX || s->r[to].first <= last + 1))
        to++;
    if (from < to) {
        if (s->r[from].first < with.first)
            with.first = s->r[from].first;
        if (s->r[to - 1].last > with.last)
            with.last = s->r[to - 1].last;
    }
    replace(s, from, to, &with, 1);
}

void cw_idset_remove(struct cw_idset *s, uint64_t first, uint64_t last)
{
    struct cw_idrange rest[2];
    size_t n = 0;

    if (first > last)
        return;
    size_t from = search(s, first), to = search(s, last);
    if (to < s->n && s->r[to].first <= last)
        to++;
    if (from >= to)
        return;
    if (s->r[from].first < first)
        rest[n++] = (struct cw_idrange){ s->r[from].first, first - 1 };
    if (s->r[to - 1].last > last)
        rest[n++] = (struct cw_idrange){ last + 1, s->r[to - 1].last };
    replace(s, from, to, rest, n);
}

bool cw_idset_has(const struct cw_idset *s, uint64_t id)
{
    size_t i = search(s, id);

    return i < s->n && s->r[i].first <= id;
}

uint64_t cw_idset_count(const struct cw_idset *s)
{
    uint64_t count = 0;

    for (size_t i = 0; i < s->n; i++) {
        uint64_t more = s->r[i].last - s->r[i].first;
        if (more == UINT64_MAX || __builtin_add_overflow(count, more + 1, &count))
            return UINT64_MAX;
    }
    return count;
}

bool cw_idset_empty(const struct cw_idset *s)
{
    return s->n == 0;
}

uint64_t cw_idset_first(const struct cw_idset *s)
{
    return s->n > 0 ? s->r[0].first : 0;
}

bool cw_idset_nth(const struct cw_idset *s, uint64_t k, uint64_t *ret)
{
    for (size_t i = 0; i < s->n; i++) {
        uint64_t more = s->r[i].last - s->r[i].first;
        if (k <= more) {
            *ret = s->r[i].first + k;
            return true;
        }
        k -= more + 1;
    }
    return false;
}

uint64_t cw_idset_rank(const struct cw_idset *s, uint64_t id)
{
    uint64_t rank = 0;

    for (size_t i = 0; i < s->n && s->r[i].first < id; i++) {
        uint64_t end = s->r[i].last < id - 1 ? s->r[i].last : id - 1;
        rank += end - s->r[i].first + 1;
    }
    return rank;
}

void cw_idset_copy(struct cw_idset *dst, const struct cw_idset *src)
{
    if (dst == src)
        return;
    dst->n = 0;
    make_room(dst, src->n);
    if (src->n > 0)
        memcpy(dst->r, src->r, src->n * sizeof(*src->r));
    dst->n = src->n;
}

void cw_idset_format(const struct cw_idset *s, struct cw_buf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        cw_buf_addf(out, "%s%" PRIu64, i > 0 ? "," : "", s->r[i].first);
        if (s->r[i].last != s->r[i].first)
            cw_buf_addf(out, "-%" PRIu64, s->r[i].last);
    }
}

struct scan {
    const char *text;
    size_t pos, len;
    uint64_t max;
    struct cw_idset set; /* ranges in the order of the text until merge() */
};

static bool take(struct scan *s, char c)
{
    if (s->pos >= s->len || s->text[s->pos] != c)
        return false;
    s->pos++;
    return true;
}

static int scan_number(struct scan *s, uint64_t max, uint64_t *ret, struct cw_error *err)
{
    size_t start = s->pos;
    uint64_t n = 0;

    for (; s->pos < s->len && s->text[s->pos] >= '0' && s->text[s->pos] <= '9'; s->pos++) {
        uint64_t digit = (uint64_t)(s->text[s->pos] - '0');
        if (__builtin_mul_overflow(n, (uint64_t)10, &n) || __builtin_add_overflow(n, digit, &n) ||
            n > max)
            return cw_fail(err, -ERANGE, "column %zu: the number is above %" PRIu64, start + 1,
                           max);
    }
    if (s->pos == start)
        return cw_fail(err, -EINVAL, "column %zu: a number is expected", start + 1);
    *ret = n;
    return 0;
}

static int add_steps(struct scan *s, size_t column, uint64_t first, uint64_t last, uint64_t step,
                     struct cw_error *err)
{
    uint64_t n = step == 1 ? 1 : (last - first) / step + 1;

    if (n > CW_IDSET_MAX_RANGES || s->set.n + n > CW_IDSET_MAX_RANGES)
        return cw_fail(err, -ERANGE, "column %zu: more than %d ranges", column,
                       CW_IDSET_MAX_RANGES);
    make_room(&s->set, (size_t)n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t id = first + i * step;
        s->set.r[s->set.n++] = (struct cw_idrange){ id, step == 1 ? last : id };
    }
    return 0;
}

/* NUMBER | NUMBER "-" NUMBER [ ":" STEP ] */
static int scan_item(struct scan *s, struct cw_error *err)
{
    uint64_t first, last, step = 1;
    size_t column = s->pos + 1;
    int rc = scan_number(s, s->max, &first, err);

    if (rc < 0)
        return rc;
    last = first;
    if (take(s, '-')) {
        rc = scan_number(s, s->max, &last, err);
        if (rc == 0 && take(s, ':'))
            rc = scan_number(s, UINT64_MAX, &step, err);
        if (rc < 0)
            return rc;
    }
    if (last < first)
        return cw_fail(err, -EINVAL, "column %zu: the range goes backwards", column);
    if (step == 0)
        return cw_fail(err, -EINVAL, "column %zu: a step of 0", column);
    return add_steps(s, column, first, last, step, err);
}

static int scan_all(struct scan *s, struct cw_error *err)
{
    while (s->pos < s->len) {
        int rc = scan_item(s, err);
        if (rc < 0)
            return rc;
        if (s->pos == s->len)
            break;
        if (!take(s, ','))
            return cw_fail(err, -EINVAL, "column %zu: ',' is expected", s->pos + 1);
        if (s->pos == s->len)
            return cw_fail(err, -EINVAL, "column %zu: a number is expected", s->pos + 1);
    }
    return 0;
}

static int by_first(const void *a, const void *b)
{
    const struct cw_idrange *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

static void merge(struct cw_idset *s)
{
    size_t n = 0;

    if (s->n == 0)
        return;
    qsort(s->r, s->n, sizeof(*s->r), by_first);
    for (size_t i = 1; i < s->n; i++) {
        struct cw_idrange *top = &s->r[n];
        if (top->last == UINT64_MAX || s->r[i].first <= top->last + 1) {
            if (s->r[i].last > top->last)
                top->last = s->r[i].last;
        } else {
            s->r[++n] = s->r[i];
        }
    }
    s->n = n + 1;
}

int cw_idset_parse(const char *text, size_t len, uint64_t max, struct cw_idset *ret,
                   struct cw_error *err)
{
    struct scan s = { .text = text, .len = len, .max = max };
    int rc = scan_all(&s, err);

    if (rc < 0) {
        cw_idset_fini(&s.set);
        return rc;
    }
    merge(&s.set);
    cw_idset_fini(ret);
    *ret = s.set;
    return 0;
}
