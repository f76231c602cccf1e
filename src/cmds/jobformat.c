/* See jobformat.h. */
#include "cmds/jobformat.h"

#include <string.h>

#include "base/mem.h"

void cw_jobformat_fini(struct cw_jobformat *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->v[i].before);
    free(f->v);
    free(f->behind);
    *f = (struct cw_jobformat){0};
}

static int add(struct cw_jobformat *f, const struct cw_jobcolumn *c, struct cw_error *err)
{
    if (f->n >= CW_JOBFORMAT_COLUMNS_MAX)
        return cw_fail(err, -E2BIG, "more than %u columns", CW_JOBFORMAT_COLUMNS_MAX);
    f->v = cw_xrealloc(f->v, f->n + 1, sizeof *f->v);
    f->v[f->n++] = *c;
    return 0;
}

static int width_of(const char **p, size_t *ret, struct cw_error *err)
{
    size_t v = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        v = v * 10 + (size_t)(**p - '0');
        if (v > CW_JOBFORMAT_WIDTH_MAX)
            return cw_fail(err, -ERANGE, "a width is at most %u", CW_JOBFORMAT_WIDTH_MAX);
    }
    *ret = v;
    return 0;
}

/* ---- %.18i ---------------------------------------------------------------------------------- */

static int take_letter(const char **p, struct cw_jobcolumn *c, struct cw_error *err)
{
    (*p)++;
    c->right = **p == '.';
    *p += c->right;
    int rc = width_of(p, &c->width, err);
    if (rc < 0)
        return rc;
    if (**p == '\0')
        return cw_fail(err, -EINVAL, "format: a letter is missing behind %%");
    c->field = cw_jobfield_letter(**p);
    if (c->field == NULL)
        return cw_fail(err, -EINVAL, "format: letter '%c' is unknown (--helpformat lists all)", **p);
    (*p)++;
    return 0;
}

int cw_jobformat_letters(const char *text, struct cw_jobformat *ret, struct cw_error *err)
{
    struct cw_jobformat f = {.letters = true};
    cw_autobuf struct cw_buf plain = {0};
    int rc = 0;
    for (const char *p = text; *p != '\0' && rc == 0;) {
        struct cw_jobcolumn c = {0};
        if (*p != '%' || p[1] == '%') {
            cw_buf_add(&plain, p, 1);
            p += *p == '%' ? 2 : 1;
            continue;
        }
        rc = take_letter(&p, &c, err);
        if (rc == 0) {
            c.before = plain.len > 0 ? cw_buf_steal(&plain) : NULL;
            rc = add(&f, &c, err);
            if (rc < 0)
                free(c.before);
        }
    }
    if (rc == 0 && f.n == 0)
        rc = cw_fail(err, -EINVAL, "format '%.80s' names no column", text);
    if (rc < 0) {
        cw_jobformat_fini(&f);
        return rc;
    }
    f.behind = plain.len > 0 ? cw_buf_steal(&plain) : NULL;
    *ret = f;
    return 0;
}

/* ---- Name:.20, Name%-20 --------------------------------------------------------------------- */

static int take_name(const char **p, size_t width, struct cw_jobformat *f, struct cw_error *err)
{
    struct cw_jobcolumn c = {.width = width};
    size_t len = strcspn(*p, ",:%");
    c.field = cw_jobfield_find(*p, len);
    if (c.field == NULL)
        return cw_jobfield_unknown(*p, len, err);
    *p += len;
    c.right = **p == '%' || (width == 0 && c.field->right);
    if (**p == ':' || **p == '%') {
        (*p)++;
        if (**p == '.' || **p == '-') {
            c.right = **p == '.';
            (*p)++;
        }
        int rc = width_of(p, &c.width, err);
        if (rc < 0)
            return rc;
    }
    if (**p != ',' && **p != '\0')
        return cw_fail(err, -EINVAL, "format: '%.40s' behind %s is no width", *p, c.field->name);
    return add(f, &c, err);
}

int cw_jobformat_names(const char *text, size_t width, struct cw_jobformat *ret,
                       struct cw_error *err)
{
    const char *p = text;
    ret->letters = false;
    while (*p != '\0') {
        if (*p == ',' || *p == ' ') {
            p++;
            continue;
        }
        int rc = take_name(&p, width, ret, err);
        if (rc < 0) {
            cw_jobformat_fini(ret);
            return rc;
        }
    }
    return ret->n > 0 ? 0 : cw_fail(err, -EINVAL, "format '%.80s' names no column", text);
}

int cw_jobsort_parse(const char *text, struct cw_jobsort *ret, struct cw_error *err)
{
    struct cw_jobsort s = {0};
    for (const char *p = text; *p != '\0';) {
        if (s.n == CW_ARRAY_LEN(s.field))
            return cw_fail(err, -E2BIG, "sort '%.80s': more than %zu keys", text, s.n);
        s.down[s.n] = *p == '-';
        p += *p == '-' || *p == '+';
        size_t len = strcspn(p, ",");
        s.field[s.n] = len == 1 ? cw_jobfield_letter(*p) : cw_jobfield_find(p, len);
        if (s.field[s.n] == NULL)
            return cw_jobfield_unknown(p, len, err);
        s.n++;
        p += len + (p[len] == ',');
    }
    if (s.n == 0)
        return cw_fail(err, -EINVAL, "a sort key is missing");
    *ret = s;
    return 0;
}
