/* Rules for single fields (contract: fieldrule.h). Test: check_test.c. */
#include "spec/fieldrule.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static bool has_control(const char *s)
{
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return true;
    return false;
}

/* Well-formed by RFC 3629: no overlong forms, no surrogates, at most U+10FFFF. JSON needs it. */
static bool is_utf8(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    while (*p != 0) {
        int n = *p < 0x80                 ? 0
                : *p >= 0xc2 && *p < 0xe0 ? 1
                : *p >= 0xe0 && *p < 0xf0 ? 2
                : *p >= 0xf0 && *p < 0xf5 ? 3
                                          : -1;
        if (n < 0 || (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
            (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
            return false;
        for (p++; n > 0; n--, p++)
            if ((*p & 0xc0) != 0x80)
                return false;
    }
    return true;
}

static bool all_of(const char *s, size_t n, const char *more)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && strchr(more, s[i]) == NULL)
            return false;
    return true;
}

static int check_text(const char *text, size_t min, size_t max, struct cw_error *err)
{
    size_t n = strlen(text);
    if (n < min)
        return cw_fail(err, -EINVAL, "must not be empty");
    if (n > max)
        return cw_fail(err, -E2BIG, "%zu bytes, at most %zu", n, max);
    if (has_control(text))
        return cw_fail(err, -EINVAL, "'%s' has a control character", text);
    return 0;
}

static int check_utf8(const char *text, size_t min, size_t max, struct cw_error *err)
{
    int rc = check_text(text, min, max, err);
    return rc == 0 && !is_utf8(text) ? cw_fail(err, -EINVAL, "'%s' is not UTF-8", text) : rc;
}

int cw_field_name(const char *text, struct cw_error *err)
{
    return check_utf8(text, 1, 256, err);
}

int cw_field_note(const char *text, struct cw_error *err)
{
    return check_utf8(text, 0, 1024, err);
}

int cw_field_path(const char *text, struct cw_error *err)
{
    return check_text(text, 1, 4095, err);
}

int cw_field_word(const char *text, struct cw_error *err)
{
    size_t n = strlen(text);
    if (strchr(text, ',') != NULL)
        return cw_fail(err, -EINVAL, "'%s' is a list, one name is allowed", text);
    if (n == 0 || n > 64 || !all_of(text, n, "._@+-") || text[0] == '-' || text[0] == '.')
        return cw_fail(err, -EINVAL, "'%s' is not a name (1 to 64 letters, digits or ._@+-)", text);
    return 0;
}

int cw_field_variable(const char *pair, struct cw_error *err)
{
    const char *eq = strchr(pair, '=');
    if (eq == NULL)
        return cw_fail(err, -EINVAL, "'%s' has no '=', NAME=VALUE is expected", pair);
    if (eq == pair || isdigit((unsigned char)pair[0]) || !all_of(pair, (size_t)(eq - pair), "_"))
        return cw_fail(err, -EINVAL,
                       "'%.*s' is not a variable's name (letters, digits and _, no digit first)",
                       (int)(eq - pair), pair);
    return 0;
}

int cw_field_label(const char *pair, struct cw_error *err)
{
    const char *eq = strchr(pair, '=');
    if (eq == NULL)
        return cw_fail(err, -EINVAL, "'%s' has no '=', KEY=VALUE is expected", pair);
    if (eq == pair || eq - pair > 63 || !all_of(pair, (size_t)(eq - pair), "._/-"))
        return cw_fail(err, -EINVAL,
                       "'%.*s' is not a label's key (1 to 63 letters, digits or ._/-)",
                       (int)(eq - pair), pair);
    return check_text(eq + 1, 0, 256, err);
}

int cw_field_target(const char *path, struct cw_error *err)
{
    int r = cw_field_path(path, err);
    if (r < 0)
        return r;
    if (path[0] != '/' || path[1] == '\0')
        return cw_fail(err, -EINVAL, "'%s' is not an absolute path below /", path);
    for (const char *p = path; p != NULL; p = strchr(p + 1, '/')) {
        size_t n = strcspn(p + 1, "/");
        if ((n == 1 && p[1] == '.') || (n == 2 && p[1] == '.' && p[2] == '.'))
            return cw_fail(err, -EINVAL, "'%s' has a . or .. in it", path);
    }
    return 0;
}

int cw_field_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret,
                   struct cw_error *err)
{
    uint64_t v = 0;
    const char *p = text;
    bool fits = true;
    for (; *p >= '0' && *p <= '9' && fits; p++)
        fits = !__builtin_mul_overflow(v, 10u, &v) &&
               !__builtin_add_overflow(v, (uint64_t)(*p - '0'), &v);
    if (p == text || *p != '\0' || !fits || v < min || v > max)
        return cw_fail(err, -EINVAL, "'%s' is not a whole number from %" PRIu64 " to %" PRIu64,
                       text, min, max);
    *ret = v;
    return 0;
}
