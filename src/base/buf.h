#pragma once
/* A growing byte buffer; always NUL-terminated behind len so that it can be used as text.
 * Zero-initialise, cw_buf_fini at the end. Test: buf_test.c. */
#include <stddef.h>
#include <stdint.h>

struct cw_buf {
    char *data; /* may be NULL while len == 0 */
    size_t len;
    size_t cap;
};

void cw_buf_fini(struct cw_buf *b);
void cw_buf_clear(struct cw_buf *b);
void cw_buf_add(struct cw_buf *b, const void *p, size_t n);
void cw_buf_add_str(struct cw_buf *b, const char *s);
void cw_buf_addf(struct cw_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void *cw_buf_reserve(struct cw_buf *b, size_t n); /* room for n more bytes; len unchanged */
char *cw_buf_steal(struct cw_buf *b);             /* the heap string (never NULL); b is empty */
const char *cw_buf_str(const struct cw_buf *b);   /* "" when empty */
#define cw_autobuf __attribute__((cleanup(cw_buf_fini)))

/* A NULL-terminated vector of heap strings. Zero-initialise. */
struct cw_strv {
    char **v; /* v[n] == NULL once n > 0; NULL when never used */
    size_t n, cap;
};
void cw_strv_fini(struct cw_strv *s);
void cw_strv_add(struct cw_strv *s, const char *str);      /* copies */
void cw_strv_add_take(struct cw_strv *s, char *str);       /* takes ownership */
#define cw_autostrv __attribute__((cleanup(cw_strv_fini)))
