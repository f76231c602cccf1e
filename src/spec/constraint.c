/* A recursive descent over the text that evaluates while it reads: expressions are short and asked
 * once per node and pass. See constraint.h. */
#include "spec/constraint.h"

#include <string.h>

#include "base/mem.h"

#define DEPTH_MAX 64
#define LABEL_MAX 63

struct reader {
    const char *text, *at;
    cw_constraint_has *has;
    void *arg;
    unsigned depth;
    const char *wrong; /* what was expected at `at`; NULL: all is well so far */
};

static bool read_or(struct reader *r);

static bool label_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._-=/", c) != NULL);
}

static bool fails(struct reader *r, const char *expected)
{
    if (r->wrong == NULL)
        r->wrong = expected;
    return false;
}

static bool read_label(struct reader *r)
{
    size_t n = 0;
    while (label_byte(r->at[n]))
        n++;
    if (n == 0)
        return fails(r, "a label, ! or ( is expected");
    if (n > LABEL_MAX)
        return fails(r, "a label has at most 63 bytes");
    bool v = r->has != NULL && r->has(r->at, n, r->arg);
    r->at += n;
    return v;
}

static bool read_not(struct reader *r)
{
    bool v, negate = false;
    while (*r->at == '!') {
        negate = !negate;
        r->at++;
    }
    if (*r->at != '(') {
        v = read_label(r);
        return negate ? !v : v;
    }
    if (++r->depth > DEPTH_MAX)
        return fails(r, "brackets are nested too deeply");
    r->at++;
    v = read_or(r);
    if (*r->at != ')')
        return fails(r, "&, | or ) is expected");
    r->at++;
    r->depth--;
    return negate ? !v : v;
}

static bool read_and(struct reader *r)
{
    bool v = read_not(r);
    while (r->wrong == NULL && *r->at == '&') {
        r->at++;
        v = read_not(r) && v;
    }
    return v;
}

static bool read_or(struct reader *r)
{
    bool v = read_and(r);
    while (r->wrong == NULL && *r->at == '|') {
        r->at++;
        v = read_and(r) || v;
    }
    return v;
}

static bool read_all(struct reader *r)
{
    if (strlen(r->text) > CW_CONSTRAINT_MAX)
        return fails(r, "an expression has at most 1024 bytes");
    bool v = read_or(r);
    if (r->wrong == NULL && *r->at != '\0')
        return fails(r, "&, | or the end is expected");
    return v;
}

int cw_constraint_check(const char *text, struct cw_error *err)
{
    struct reader r = {.text = text, .at = text};
    (void)read_all(&r);
    if (r.wrong == NULL)
        return 0;
    return cw_fail(err, -EINVAL, "'%.60s': at byte %zu: %s", text, (size_t)(r.at - text) + 1,
                   r.wrong);
}

bool cw_constraint_holds(const char *text, cw_constraint_has *has, void *arg)
{
    struct reader r = {.text = text, .at = text, .has = has, .arg = arg};
    bool v = read_all(&r);
    return r.wrong == NULL && v;
}

struct labels {
    char *const *v;
    size_t n;
};

static bool among(const char *label, size_t len, void *arg)
{
    const struct labels *l = arg;
    for (size_t i = 0; i < l->n; i++)
        if (strlen(l->v[i]) == len && memcmp(l->v[i], label, len) == 0)
            return true;
    return false;
}

bool cw_constraint_matches(const char *text, char *const *labels, size_t n)
{
    return cw_constraint_holds(text, among, &(struct labels){labels, n});
}

bool cw_constraint_label_ok(const char *label)
{
    size_t n = 0;
    while (label_byte(label[n]))
        n++;
    return n > 0 && n <= LABEL_MAX && label[n] == '\0';
}
