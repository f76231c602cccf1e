/* A plan's lines: copied, checked and kept in order; what plugins wrote never moves until the plan
 * goes.
 *
 * Rule: a line that no isolation plugin could carry out (no name, a relative path, an unknown kind)
 * is refused here, at the plugin that made it. Strings and lines are bounded. Test: plan_test.c. */
#include "plug/plan.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

#define PLAN_MAX_LINES 4096
#define PLAN_MAX_TEXT  (128 * 1024) /* one string; the kernel takes no longer environment entry */

/* What a version 1.0 plugin knows of a line; `origin` is the host's. */
#define PLAN_LINE_MIN (offsetof(struct cw_plan_line, n2) + sizeof(int64_t))

struct cw_plan {
    struct cw_arena *arena;
    struct cw_plan_line **lines;
    uint32_t n, cap;
};

struct cw_plan *cw_plan_create(void)
{
    struct cw_plan *p = cw_xcalloc(1, sizeof(*p));

    p->arena = cw_arena_create();
    return p;
}

void cw_plan_destroy(struct cw_plan *p)
{
    if (p == NULL)
        return;
    cw_arena_destroy(p->arena);
    free(p->lines);
    free(p);
}

static bool is_one_of(const char *text, const char *const *allowed)
{
    for (; *allowed != NULL; allowed++)
        if (strcmp(text, *allowed) == 0)
            return true;
    return false;
}

static bool is_absolute(const char *text)
{
    return text != NULL && text[0] == '/';
}

static bool line_is_sound(const struct cw_plan_line *l)
{
    static const char *const limits[] = {"memory", "pids", "nofile", "core", NULL};
    static const char *const whens[] = {"start", "end", NULL};

    switch (l->kind) {
    case CW_PLAN_ENV:
        return l->a != NULL && l->a[0] != '\0' && strchr(l->a, '=') == NULL && l->b != NULL;
    case CW_PLAN_MOUNT: return is_absolute(l->a) && is_absolute(l->b);
    case CW_PLAN_DEVICE: return is_absolute(l->a) && l->n1 >= 0 && l->n2 >= 0;
    case CW_PLAN_LIMIT: return l->a != NULL && is_one_of(l->a, limits) && l->n1 >= 0;
    case CW_PLAN_CPUS: return l->a != NULL && l->a[0] != '\0';
    case CW_PLAN_HOOK: return l->a != NULL && is_one_of(l->a, whens) && is_absolute(l->b);
    default: return false;
    }
}

static bool text_fits(const char *text)
{
    return text == NULL || strnlen(text, PLAN_MAX_TEXT) < PLAN_MAX_TEXT;
}

static const char *copy_text(struct cw_plan *p, const char *text)
{
    return text == NULL ? NULL : cw_arena_strdup(p->arena, text);
}

int cw_plan_add(struct cw_plan *p, const char *origin, const struct cw_plan_line *line)
{
    struct cw_plan_line in = {0}, *copy;

    if (line->size != 0 && line->size < PLAN_LINE_MIN)
        return -EINVAL;
    memcpy(&in, line, PLAN_LINE_MIN);
    if (!line_is_sound(&in) || !text_fits(in.a) || !text_fits(in.b) || !text_fits(in.c))
        return -EINVAL;
    if (p->n >= PLAN_MAX_LINES)
        return -E2BIG;
    if (p->n == p->cap) {
        p->cap = p->cap == 0 ? 16 : p->cap * 2;
        p->lines = cw_xrealloc(p->lines, p->cap, sizeof(struct cw_plan_line *));
    }
    copy = cw_arena_alloc(p->arena, sizeof(*copy));
    *copy = in;
    copy->size = sizeof(*copy);
    copy->a = copy_text(p, in.a);
    copy->b = copy_text(p, in.b);
    copy->c = copy_text(p, in.c);
    copy->origin = copy_text(p, origin);
    p->lines[p->n++] = copy;
    return 0;
}

uint32_t cw_plan_count(const struct cw_plan *p)
{
    return p->n;
}

const struct cw_plan_line *cw_plan_get(const struct cw_plan *p, uint32_t i)
{
    return i < p->n ? p->lines[i] : NULL;
}
