#pragma once
/* Memory: small allocations cannot fail (they abort), cleanup attributes, and an arena for what
 * belongs to one request. Sizes that come from a peer must be checked by the caller first.
 * Test: mem_test.c. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void *cw_xmalloc(size_t n);
void *cw_xcalloc(size_t n, size_t size);       /* aborts on overflow too */
void *cw_xrealloc(void *p, size_t n, size_t size); /* n*size, checked */
char *cw_xstrdup(const char *s);               /* NULL gives NULL */
char *cw_xstrndup(const char *s, size_t n);
void *cw_xmemdup(const void *p, size_t n);     /* n == 0 gives NULL */
char *cw_xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *cw_xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

void cw_free_cleanup(void *pp);
void cw_close_cleanup(int *fd);
#define cw_autofree __attribute__((cleanup(cw_free_cleanup)))
#define cw_autoclose __attribute__((cleanup(cw_close_cleanup))) /* an int fd, -1 = none */
/* For `struct T *` with a `void FN(struct T *)` that takes NULL. */
#define CW_DEFINE_AUTO(T, FN) \
    static inline void FN##_cleanup(struct T **p) { FN(*p); }
#define cw_auto(FN) __attribute__((cleanup(FN##_cleanup)))
#define cw_steal(p) \
    ({ __typeof__(p) cw_steal_v_ = (p); (p) = NULL; cw_steal_v_; })
#define cw_steal_fd(fd) ({ int cw_steal_v_ = (fd); (fd) = -1; cw_steal_v_; })

/* Bump allocator; everything is freed at once. Not thread-safe. */
struct cw_arena;
struct cw_arena *cw_arena_create(void);
void cw_arena_destroy(struct cw_arena *a); /* NULL allowed */
void cw_arena_reset(struct cw_arena *a);   /* keeps one chunk */
void *cw_arena_alloc(struct cw_arena *a, size_t n); /* zeroed, aligned to 16 */
char *cw_arena_strdup(struct cw_arena *a, const char *s);
char *cw_arena_printf(struct cw_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#define CW_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
