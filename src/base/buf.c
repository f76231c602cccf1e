/* A growing byte buffer, and a vector of strings.
 *
 * data, when not NULL, always has a NUL at data[len]. Test: buf_test.c. */
#include "config.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void cw_buf_fini(struct cw_buf *b)
{
    free(b->data);
    *b = (struct cw_buf){ 0 };
}

void cw_buf_clear(struct cw_buf *b)
{
    b->len = 0;
    if (b->data != NULL)
        b->data[0] = '\0';
}

void *cw_buf_reserve(struct cw_buf *b, size_t n)
{
    if (n > SIZE_MAX / 4 || b->len > SIZE_MAX / 4)
        abort();
    size_t need = b->len + n + 1;
    if (need > b->cap) {
        size_t cap = b->cap * 2 > need ? b->cap * 2 : need;
        b->cap = cap > 32 ? cap : 32;
        b->data = cw_xrealloc(b->data, b->cap, 1);
        b->data[b->len] = '\0';
    }
    return b->data + b->len;
}

void cw_buf_add(struct cw_buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    memcpy(cw_buf_reserve(b, n), p, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void cw_buf_add_str(struct cw_buf *b, const char *s)
{
    cw_buf_add(b, s, strlen(s));
}

void cw_buf_addf(struct cw_buf *b, const char *fmt, ...)
{
    va_list ap;

    cw_buf_reserve(b, 64);
    va_start(ap, fmt);
    int n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort();
    if ((size_t)n >= b->cap - b->len) {
        cw_buf_reserve(b, (size_t)n);
        va_start(ap, fmt);
        vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
        va_end(ap);
    }
    b->len += (size_t)n;
}

char *cw_buf_steal(struct cw_buf *b)
{
    cw_buf_reserve(b, 0);
    char *s = b->data;
    *b = (struct cw_buf){ 0 };
    return s;
}

const char *cw_buf_str(const struct cw_buf *b)
{
    return b->data != NULL ? b->data : "";
}

void cw_strv_fini(struct cw_strv *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
    *s = (struct cw_strv){ 0 };
}

void cw_strv_add_take(struct cw_strv *s, char *str)
{
    if (s->n + 2 > s->cap) {
        s->cap = s->cap > 0 ? s->cap * 2 : 8;
        s->v = cw_xrealloc(s->v, s->cap, sizeof(*s->v));
    }
    s->v[s->n++] = str;
    s->v[s->n] = NULL;
}

void cw_strv_add(struct cw_strv *s, const char *str)
{
    cw_strv_add_take(s, cw_xstrdup(str));
}
