/* Host lists: `n[01-12,20],gpu[1-2]-r[1-3]`.
 *
 * Parsing: a name is literal text with groups in brackets between; several groups multiply, the
 * last one turning fastest. Nothing is expanded before its number is known to fit CW_HOSTLIST_MAX.
 * Formatting: names are sorted naturally, then neighbours that differ in one run of digits are
 * folded, so the expansion of the result is exactly the sorted input. Test: hostlist_test.c,
 * fuzz_hostlist.c. */
#include "config.h"

#include "base/hostlist.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NAME_MAX_BYTES 255
#define GROUPS_MAX 8
#define DIGITS_MAX 18

struct range {
    uint64_t first, last;
    int width; /* shorter numbers get zeros in front */
    uint64_t before; /* numbers in the ranges in front of it */
};

struct group {
    struct range *r;
    size_t n, cap;
    uint64_t count; /* of numbers in all ranges */
};

/* One element of the list between two commas. */
struct element {
    struct group groups[GROUPS_MAX];
    struct cw_buf literals[GROUPS_MAX + 1]; /* before, between and behind the groups */
    size_t n;
};

static void element_fini(struct element *e)
{
    for (size_t i = 0; i < GROUPS_MAX; i++)
        free(e->groups[i].r);
    for (size_t i = 0; i < GROUPS_MAX + 1; i++)
        cw_buf_fini(&e->literals[i]);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_';
}

static int bad(const char *text, const char *at, struct cw_error *err, const char *what)
{
    return cw_fail(err, -EINVAL, "host list '%.64s' column %zu: %s", text, (size_t)(at - text) + 1,
                   what);
}

static int too_many(struct cw_error *err)
{
    return cw_fail(err, -ERANGE, "host list: more than %d hosts", CW_HOSTLIST_MAX);
}

static int scan_number(const char *text, const char **p, uint64_t *ret, int *ret_width,
                       struct cw_error *err)
{
    const char *start = *p;
    uint64_t n = 0;

    while (is_digit(**p)) {
        if (*p - start == DIGITS_MAX)
            return bad(text, start, err, "a number of more than 18 digits");
        n = n * 10 + (uint64_t)(*(*p)++ - '0');
    }
    if (*p == start)
        return bad(text, start, err, "a number is expected in the brackets");
    *ret = n;
    *ret_width = (int)(*p - start);
    return 0;
}

static int scan_range(const char *text, const char **p, struct range *ret, struct cw_error *err)
{
    const char *start = *p;
    int width = 0;
    int rc = scan_number(text, p, &ret->first, &ret->width, err);

    if (rc < 0)
        return rc;
    ret->last = ret->first;
    if (**p != '-')
        return 0;
    const char *second = ++*p;
    rc = scan_number(text, p, &ret->last, &width, err);
    if (rc < 0)
        return rc;
    if (*second == '0' && width > ret->width)
        return bad(text, second, err, "zeros in front of the end but not of the start of a range");
    if (ret->last < ret->first)
        return bad(text, start, err, "the range goes backwards");
    return 0;
}

/* *p stands behind '['; leaves it behind ']'. */
static int scan_group(const char *text, const char **p, struct group *g, struct cw_error *err)
{
    for (;;) {
        struct range r;
        int rc = scan_range(text, p, &r, err);
        if (rc < 0)
            return rc;
        if (r.last - r.first >= CW_HOSTLIST_MAX - g->count)
            return too_many(err);
        r.before = g->count;
        g->count += r.last - r.first + 1;
        if (g->n == g->cap) {
            g->cap = g->cap > 0 ? g->cap * 2 : 4;
            g->r = cw_xrealloc(g->r, g->cap, sizeof(*g->r));
        }
        g->r[g->n++] = r;
        char c = **p;
        if (c != ',' && c != ']')
            return bad(text, *p, err,
                       c == '\0' ? "the bracket is not closed" : "',' or ']' is expected");
        ++*p;
        if (c == ']')
            return 0;
    }
}

/* Up to a comma outside of brackets or the end. */
static int scan_element(const char *text, const char **p, struct element *e, struct cw_error *err)
{
    const char *start = *p;

    for (; **p != ',' && **p != '\0';) {
        if (is_name_char(**p)) {
            cw_buf_add(&e->literals[e->n], (*p)++, 1);
            continue;
        }
        if (**p == ']')
            return bad(text, *p, err, "']' without '['");
        if (**p != '[')
            return bad(text, *p, err, "a name may have letters, digits, '-', '.' and '_'");
        if (e->n == GROUPS_MAX)
            return bad(text, *p, err, "more than 8 brackets in one name");
        ++*p;
        int rc = scan_group(text, p, &e->groups[e->n++], err);
        if (rc < 0)
            return rc;
    }
    return *p == start ? bad(text, start, err, "a host name is expected") : 0;
}

static void add_number(struct cw_buf *b, const struct group *g, uint64_t k)
{
    size_t low = 0, high = g->n; /* the last range with before <= k */

    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        *(g->r[mid].before <= k ? &low : &high) = mid;
    }
    const struct range *r = &g->r[low];
    cw_buf_addf(b, "%0*" PRIu64, r->width, r->first + (k - r->before));
}

static int expand(const struct element *e, struct cw_strv *out, struct cw_error *err)
{
    uint64_t total = 1;

    for (size_t i = 0; i < e->n; i++) {
        total *= e->groups[i].count; /* both at most CW_HOSTLIST_MAX: no overflow */
        if (total > CW_HOSTLIST_MAX)
            return too_many(err);
    }
    if (out->n + total > CW_HOSTLIST_MAX)
        return too_many(err);
    for (uint64_t k = 0; k < total; k++) {
        cw_autobuf struct cw_buf name = { 0 };
        uint64_t below = total, rest = k;
        for (size_t i = 0; i < e->n; i++) {
            below /= e->groups[i].count;
            cw_buf_add(&name, cw_buf_str(&e->literals[i]), e->literals[i].len);
            add_number(&name, &e->groups[i], rest / below);
            rest %= below;
        }
        cw_buf_add(&name, cw_buf_str(&e->literals[e->n]), e->literals[e->n].len);
        if (name.len > NAME_MAX_BYTES)
            return cw_fail(err, -EINVAL, "host list: a name of more than %d characters",
                           NAME_MAX_BYTES);
        cw_strv_add_take(out, cw_buf_steal(&name));
    }
    return 0;
}

int cw_hostlist_parse(const char *text, struct cw_strv *ret, struct cw_error *err)
{
    cw_autostrv struct cw_strv out = { 0 };
    const char *p = text;

    for (;;) {
        struct element e = { 0 };
        int rc = scan_element(text, &p, &e, err);
        if (rc == 0)
            rc = expand(&e, &out, err);
        element_fini(&e);
        if (rc < 0)
            return rc;
        if (*p == '\0')
            break;
        p++;
    }
    cw_strv_fini(ret);
    *ret = out;
    out = (struct cw_strv){ 0 };
    return 0;
}

static size_t digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* Compares two runs of digits by value; equal values give 0 whatever their zeros. */
static int compare_runs(const char *a, size_t n, const char *b, size_t m)
{
    for (; n > 1 && *a == '0'; n--)
        a++;
    for (; m > 1 && *b == '0'; m--)
        b++;
    if (n != m)
        return n < m ? -1 : 1;
    return memcmp(a, b, n);
}

/* n2 before n10; names that differ only in zeros in front are ordered as bytes. */
static int natural(const void *x, const void *y)
{
    const char *a = *(char *const *)x, *b = *(char *const *)y;

    while (*a != '\0' && *b != '\0') {
        if (is_digit(*a) && is_digit(*b)) {
            size_t n = digits(a), m = digits(b);
            int c = compare_runs(a, n, b, m);
            if (c != 0)
                return c;
            a += n;
            b += m;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    if (*a != *b)
        return *a == '\0' ? -1 : 1;
    return strcmp(*(char *const *)x, *(char *const *)y);
}

/* Where two names differ: a[start, start+an) against b[start, start+bn), both whole runs of digits
 * that may stand in brackets, everything else equal. */
static bool one_run_differs(const char *a, const char *b, size_t *ret_start, size_t *ret_an,
                            size_t *ret_bn)
{
    size_t i = 0;

    while (a[i] != '\0' && a[i] == b[i])
        i++;
    while (i > 0 && is_digit(a[i - 1]))
        i--;
    size_t an = digits(a + i), bn = digits(b + i);
    if (an == 0 || bn == 0 || an > DIGITS_MAX || bn > DIGITS_MAX ||
        strcmp(a + i + an, b + i + bn) != 0)
        return false;
    *ret_start = i;
    *ret_an = an;
    *ret_bn = bn;
    return true;
}

/* The run at s follows the run that ends a range: what `%0*u` of one more would print. */
static bool follows(uint64_t last, int width, const char *s, size_t n)
{
    char next[DIGITS_MAX + 2];

    return snprintf(next, sizeof(next), "%0*" PRIu64, width, last + 1) == (int)n &&
           memcmp(next, s, n) == 0;
}

static uint64_t value_of(const char *s, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v = v * 10 + (uint64_t)(s[i] - '0');
    return v;
}

/* Prints the numbers at start of names[0..n) as ranges. */
static void format_group(char *const *names, size_t n, size_t start, struct cw_buf *out)
{
    for (size_t i = 0; i < n;) {
        const char *first = names[i] + start;
        size_t width = digits(first), end = i;
        uint64_t last = value_of(first, width);

        while (end + 1 < n &&
               follows(last, (int)width, names[end + 1] + start, digits(names[end + 1] + start))) {
            last++;
            end++;
        }
        cw_buf_addf(out, "%s%.*s", i > 0 ? "," : "", (int)width, first);
        if (end > i)
            cw_buf_addf(out, "-%.*s", (int)digits(names[end] + start), names[end] + start);
        i = end + 1;
    }
}

/* Prints one element of the list; returns how many names it covers. */
static size_t format_element(char *const *names, size_t n, struct cw_buf *out)
{
    size_t start = 0, an = 0, bn, s, x, end = 1;

    if (n > 1 && one_run_differs(names[0], names[1], &start, &an, &bn)) {
        for (end = 2; end < n; end++) {
            if (!one_run_differs(names[0], names[end], &s, &x, &bn) || s != start || x != an)
                break;
        }
    }
    if (end == 1) {
        cw_buf_add_str(out, names[0]);
        return 1;
    }
    cw_buf_addf(out, "%.*s[", (int)start, names[0]);
    format_group(names, end, start, out);
    cw_buf_addf(out, "]%s", names[0] + start + an);
    return end;
}

void cw_hostlist_format(char *const *names, size_t n, struct cw_buf *out)
{
    cw_autofree char **sorted = cw_xcalloc(n, sizeof(*sorted));
    size_t unique = 0;

    if (n == 0)
        return;
    memcpy(sorted, names, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), natural);
    for (size_t i = 0; i < n; i++) {
        if (unique == 0 || strcmp(sorted[unique - 1], sorted[i]) != 0)
            sorted[unique++] = sorted[i];
    }
    for (size_t i = 0; i < unique;) {
        if (i > 0)
            cw_buf_add_str(out, ",");
        i += format_element(sorted + i, unique - i, out);
    }
}
