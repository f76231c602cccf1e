/* See jobrows.h. A kept row is one string: its fields, each ended by NUL. */
#include "cmds/jobrows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/mem.h"

#define LEARN_ROWS 1000u

struct kept {
    char *fields;
    size_t len;
    struct {
        char *text; /* NULL: by number */
        int64_t number;
        bool has;
    } key[8];
};

struct cw_jobrows {
    const struct cw_jobformat *f;
    struct cw_jobrows_style style;
    size_t *width;
    struct kept *v;
    size_t n, cap;
    bool learning; /* rows are kept until the widths are known */
    struct cw_buf line, fields;
};

/* Columns on a terminal, not bytes. */
static size_t shown(const char *s)
{
    wchar_t w[256];
    size_t bytes = strlen(s), i = 0;
    while (i < bytes && (unsigned char)s[i] < 0x80)
        i++;
    if (i == bytes || bytes >= CW_ARRAY_LEN(w))
        return bytes;
    size_t n = mbstowcs(w, s, CW_ARRAY_LEN(w));
    int cols = n == (size_t)-1 ? -1 : wcswidth(w, n);
    return cols < 0 ? bytes : (size_t)cols;
}

static const char *heading(const struct cw_jobrows *r, size_t i)
{
    return r->style.acct ? r->f->v[i].field->name : r->f->v[i].field->heading;
}

static void pad(struct cw_buf *line, size_t n)
{
    static const char blanks[] = "                                                                ";
    for (; n > 0; n -= n < sizeof(blanks) - 1 ? n : sizeof(blanks) - 1)
        cw_buf_add(line, blanks, n < sizeof(blanks) - 1 ? n : sizeof(blanks) - 1);
}

static void add_cell(struct cw_jobrows *r, size_t i, const char *text)
{
    const struct cw_jobcolumn *c = &r->f->v[i];
    struct cw_buf *line = &r->line;
    bool last = i + 1 == r->f->n && r->f->behind == NULL;
    size_t n = shown(text), width = r->width[i];
    size_t blanks = width > n ? width - n : 0;
    if (r->f->letters)
        cw_buf_add_str(line, c->before != NULL ? c->before : "");
    else if (i > 0)
        cw_buf_add(line, " ", 1);
    if (c->right)
        pad(line, blanks);
    cw_buf_add_str(line, text);
    if (!c->right && !(last && !r->f->letters))
        pad(line, blanks);
}

static void print_fields(struct cw_jobrows *r, const char *fields)
{
    cw_buf_clear(&r->line);
    for (size_t i = 0; i < r->f->n; i++) {
        if (r->style.delimiter == NULL) {
            add_cell(r, i, fields);
        } else {
            cw_buf_add_str(&r->line, fields);
            if (i + 1 < r->f->n || r->style.trailing)
                cw_buf_add_str(&r->line, r->style.delimiter);
        }
        fields += strlen(fields) + 1;
    }
    if (r->style.delimiter == NULL && r->f->behind != NULL)
        cw_buf_add_str(&r->line, r->f->behind);
    cw_buf_add(&r->line, "\n", 1);
    fwrite(r->line.data, 1, r->line.len, stdout);
}

static void print_header(struct cw_jobrows *r)
{
    if (r->style.no_header)
        return;
    cw_buf_clear(&r->fields);
    for (size_t i = 0; i < r->f->n; i++)
        cw_buf_add(&r->fields, heading(r, i), strlen(heading(r, i)) + 1);
    print_fields(r, r->fields.data);
}

struct cw_jobrows *cw_jobrows_create(const struct cw_jobformat *f,
                                     const struct cw_jobrows_style *style)
{
    struct cw_jobrows *r = cw_xcalloc(1, sizeof *r);
    r->f = f;
    r->style = *style;
    r->width = cw_xcalloc(f->n + 1, sizeof *r->width);
    r->learning = style->sort != NULL;
    for (size_t i = 0; i < f->n; i++) {
        r->width[i] = f->v[i].width;
        if (style->delimiter != NULL || f->letters || f->v[i].width > 0)
            continue;
        r->learning = true;
        r->width[i] = style->no_header ? 0 : strlen(heading(r, i));
    }
    if (!r->learning)
        print_header(r);
    return r;
}

static void widen(struct cw_jobrows *r, const char *fields)
{
    for (size_t i = 0; i < r->f->n && r->style.delimiter == NULL && !r->f->letters; i++) {
        size_t n = shown(fields);
        if (n > r->width[i] && r->f->v[i].width == 0)
            r->width[i] = n;
        fields += strlen(fields) + 1;
    }
}

static void keep(struct cw_jobrows *rows, const struct cw_fieldrow *r)
{
    if (rows->n == rows->cap) {
        rows->cap = rows->cap ? rows->cap * 2 : 256;
        rows->v = cw_xrealloc(rows->v, rows->cap, sizeof *rows->v);
    }
    struct kept *k = &rows->v[rows->n++];
    *k = (struct kept){.len = rows->fields.len};
    k->fields = cw_xmemdup(rows->fields.data, rows->fields.len);
    for (size_t i = 0; rows->style.sort != NULL && i < rows->style.sort->n; i++) {
        const struct cw_jobfield *f = rows->style.sort->field[i];
        struct cw_buf text = {0};
        if (f->number != NULL) {
            k->key[i].has = f->number(r, &k->key[i].number);
            continue;
        }
        cw_jobfield_text(f, r, &text);
        k->key[i].text = cw_buf_steal(&text);
    }
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct kept *x = a, *y = b;
    const struct cw_jobsort *s = arg;
    for (size_t i = 0; i < s->n; i++) {
        int d;
        if (x->key[i].text != NULL)
            d = strcmp(x->key[i].text, y->key[i].text);
        else if (x->key[i].has != y->key[i].has)
            d = x->key[i].has ? 1 : -1;
        else
            d = (x->key[i].number > y->key[i].number) - (x->key[i].number < y->key[i].number);
        if (d != 0)
            return s->down[i] ? -d : d;
    }
    return 0;
}

static void kept_free(struct kept *k)
{
    free(k->fields);
    for (size_t i = 0; i < CW_ARRAY_LEN(k->key); i++)
        free(k->key[i].text);
}

/* Prints what was kept. */
static void settle(struct cw_jobrows *r)
{
    r->learning = false;
    if (r->style.sort != NULL)
        qsort_r(r->v, r->n, sizeof *r->v, compare, (void *)r->style.sort);
    print_header(r);
    for (size_t i = 0; i < r->n; i++) {
        print_fields(r, r->v[i].fields);
        kept_free(&r->v[i]);
    }
    r->n = 0;
}

void cw_jobrows_add(struct cw_jobrows *rows, const struct cw_fieldrow *r)
{
    cw_buf_clear(&rows->fields);
    for (size_t i = 0; i < rows->f->n; i++) {
        cw_jobfield_text(rows->f->v[i].field, r, &rows->fields);
        cw_buf_add(&rows->fields, "", 1);
    }
    if (!rows->learning) {
        print_fields(rows, rows->fields.data);
        return;
    }
    widen(rows, rows->fields.data);
    keep(rows, r);
    if (rows->n >= LEARN_ROWS && rows->style.sort == NULL && !isatty(STDOUT_FILENO))
        settle(rows);
}

void cw_jobrows_finish(struct cw_jobrows *rows)
{
    if (rows->learning)
        settle(rows);
    cw_jobrows_discard(rows);
}

void cw_jobrows_discard(struct cw_jobrows *rows)
{
    if (rows == NULL)
        return;
    for (size_t i = 0; i < rows->n; i++)
        kept_free(&rows->v[i]);
    free(rows->v);
    free(rows->width);
    cw_buf_fini(&rows->line);
    cw_buf_fini(&rows->fields);
    free(rows);
}
