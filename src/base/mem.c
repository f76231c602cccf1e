/* Memory: allocations that cannot fail, and the arena.
 *
 * The arena is a list of chunks, newest first; an allocation that does not fit the newest chunk
 * gets a new one at least twice as big (up to a limit), so a turn costs few calls of malloc. Reset
 * keeps the biggest of the ordinary chunks. Test: mem_test.c. */
#include "config.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARENA_ALIGN 16U
#define ARENA_CHUNK_MIN 4000U
#define ARENA_CHUNK_MAX 262144U

__attribute__((noreturn)) static void out_of_memory(void)
{
    static const char text[] = "out of memory\n";

    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        abort();
    abort();
}

static size_t checked_mul(size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes))
        out_of_memory();
    return bytes;
}

void *cw_xmalloc(size_t n)
{
    void *p = malloc(n > 0 ? n : 1);

    if (p == NULL)
        out_of_memory();
    return p;
}

void *cw_xcalloc(size_t n, size_t size)
{
    size_t bytes = checked_mul(n, size);
    void *p = calloc(1, bytes > 0 ? bytes : 1);

    if (p == NULL)
        out_of_memory();
    return p;
}

void *cw_xrealloc(void *p, size_t n, size_t size)
{
    size_t bytes = checked_mul(n, size);

    p = realloc(p, bytes > 0 ? bytes : 1);
    if (p == NULL)
        out_of_memory();
    return p;
}

char *cw_xstrdup(const char *s)
{
    return s != NULL ? cw_xmemdup(s, strlen(s) + 1) : NULL;
}

char *cw_xstrndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = cw_xmalloc(len + 1);

    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

void *cw_xmemdup(const void *p, size_t n)
{
    if (n == 0)
        return NULL;
    return memcpy(cw_xmalloc(n), p, n);
}

char *cw_xvasprintf(const char *fmt, va_list ap)
{
    char *s;

    if (vasprintf(&s, fmt, ap) < 0)
        out_of_memory();
    return s;
}

char *cw_xasprintf(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *s = cw_xvasprintf(fmt, ap);
    va_end(ap);
    return s;
}

void cw_free_cleanup(void *pp)
{
    void *p;

    memcpy(&p, pp, sizeof(p)); /* pp is a pointer to a pointer of any type */
    free(p);
}

void cw_close_cleanup(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

struct chunk {
    struct chunk *next;
    size_t used, cap;
    _Alignas(ARENA_ALIGN) unsigned char data[];
};

struct cw_arena {
    struct chunk *head;
};

struct cw_arena *cw_arena_create(void)
{
    return cw_xcalloc(1, sizeof(struct cw_arena));
}

static void free_chunks(struct chunk *c)
{
    while (c != NULL) {
        struct chunk *next = c->next;
        free(c);
        c = next;
    }
}

void cw_arena_destroy(struct cw_arena *a)
{
    if (a == NULL)
        return;
    free_chunks(a->head);
    free(a);
}

void cw_arena_reset(struct cw_arena *a)
{
    struct chunk *keep = a->head;

    if (keep == NULL)
        return;
    free_chunks(keep->next);
    keep->next = NULL;
    keep->used = 0;
    if (keep->cap > ARENA_CHUNK_MAX) {
        free(keep);
        a->head = NULL;
    }
}

static struct chunk *add_chunk(struct cw_arena *a, size_t need)
{
    size_t cap = a->head != NULL ? a->head->cap * 2 : ARENA_CHUNK_MIN;

    if (cap > ARENA_CHUNK_MAX)
        cap = ARENA_CHUNK_MAX;
    if (cap < need)
        cap = need;
    struct chunk *c = cw_xmalloc(sizeof(*c) + cap);
    c->next = a->head;
    c->used = 0;
    c->cap = cap;
    a->head = c;
    return c;
}

void *cw_arena_alloc(struct cw_arena *a, size_t n)
{
    struct chunk *c = a->head;

    if (n > SIZE_MAX / 2)
        out_of_memory();
    size_t need = (n + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (need == 0)
        need = ARENA_ALIGN;
    if (c == NULL || c->cap - c->used < need)
        c = add_chunk(a, need);
    void *p = c->data + c->used;
    c->used += need;
    return memset(p, 0, need);
}

char *cw_arena_strdup(struct cw_arena *a, const char *s)
{
    size_t n = strlen(s) + 1;

    return memcpy(cw_arena_alloc(a, n), s, n);
}

char *cw_arena_printf(struct cw_arena *a, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        out_of_memory();
    char *s = cw_arena_alloc(a, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}
