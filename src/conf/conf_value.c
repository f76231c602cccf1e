/* One setting's text, checked and put into its field; and back into text.
 *
 * Numbers are decimal whatever zeros stand in front. Test: conf_test.c, conf_refusal_test.c. */
#include "config.h"

#include "conf/conf_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/hostlist.h"
#include "base/quantity.h"
#include "conf/conf_full.h"

#define URL_MAX_BYTES 127 /* NN_SOCKADDR_MAX without its NUL */

static int keep_text(const struct cw_conf_bases *b, void *field, const char *text)
{
    *(const char **)field = cw_arena_strdup(b->arena, text);
    return 0;
}

static bool is_name(const char *text, size_t len)
{
    return len > 0 && len <= 64 && strspn(text, CW_CONF_NAME_CHARS) >= len && text[0] != '-' &&
           text[0] != '.';
}

static int set_name(const struct cw_conf_bases *b, void *field, const char *text,
                    struct cw_error *err)
{
    if (!is_name(text, strlen(text)))
        return cw_fail(err, -EINVAL, "'%s' is not a name of letters, digits, '_', '-' and '.'",
                       text);
    return keep_text(b, field, text);
}

static int set_users(const struct cw_conf_bases *b, void *field, const char *text,
                     struct cw_error *err)
{
    for (const char *p = text; *text != '\0';) {
        size_t n = strcspn(p, ",");
        if (!is_name(p, n))
            return cw_fail(err, -EINVAL, "'%.*s' is not a user's name", (int)n, p);
        if (p[n] == '\0')
            break;
        p += n + 1;
    }
    return keep_text(b, field, text);
}

static int set_nodes(const struct cw_conf_bases *b, void *field, const char *text,
                     struct cw_error *err)
{
    cw_autostrv struct cw_strv names = { 0 };

    if (strcmp(text, "ALL") != 0) {
        int rc = cw_hostlist_parse(text, &names, err);
        if (rc < 0)
            return rc;
    }
    return keep_text(b, field, text);
}

static int set_choice(const struct cw_conf_bases *b, const struct cw_conf_row *row, void *field,
                      const char *text, struct cw_error *err)
{
    size_t len = strlen(text);

    for (const char *p = row->choices; *p != '\0';) {
        size_t n = strcspn(p, " ");
        if (n == len && memcmp(p, text, n) == 0)
            return keep_text(b, field, text);
        p += n + (p[n] == ' ');
    }
    return cw_fail(err, -EINVAL, "'%s' is not allowed; one of: %s", text, row->choices);
}

/* "." stands for the base itself. */
static const char *resolve(struct cw_arena *arena, const char *base, const char *path)
{
    if (strncmp(path, "./", 2) == 0)
        path += 2;
    if (strcmp(path, ".") == 0 || path[0] == '\0')
        return base;
    cw_autofree char *joined = cw_file_join(base, path);
    return cw_arena_strdup(arena, joined);
}

static int set_path(const struct cw_conf_bases *b, void *field, const char *base, const char *text,
                    size_t max, struct cw_error *err)
{
    if (text[0] == '\0')
        return cw_fail(err, -EINVAL, "the path is empty");
    const char *path = resolve(b->arena, base, text);
    if (strlen(path) > max)
        return cw_fail(err, -ENAMETOOLONG, "%s: a path of more than %zu characters", path, max);
    *(const char **)field = path;
    return 0;
}

static int set_paths(const struct cw_conf_bases *b, void *field, const char *text,
                     struct cw_error *err)
{
    cw_autobuf struct cw_buf out = { 0 };

    for (const char *p = text;;) {
        size_t n = strcspn(p, ":");
        cw_autofree char *one = cw_xstrndup(p, n);
        if (n == 0)
            return cw_fail(err, -EINVAL, "one of the paths is empty");
        cw_buf_addf(&out, "%s%s", out.len > 0 ? ":" : "", resolve(b->arena, b->dir, one));
        if (p[n] == '\0')
            break;
        p += n + 1;
    }
    return keep_text(b, field, cw_buf_str(&out));
}

static bool has_port(const char *address)
{
    const char *colon = strrchr(address, ':');
    char *end;

    if (colon == NULL || colon == address || colon[1] < '0' || colon[1] > '9')
        return false;
    unsigned long port = strtoul(colon + 1, &end, 10);
    return *end == '\0' && port >= 1 && port <= 65535;
}

static int set_url(const struct cw_conf_bases *b, void *field, const char *text,
                   struct cw_error *err)
{
    const char *path = "";

    if (strncmp(text, "ipc://", 6) == 0 && text[6] != '\0') {
        path = resolve(b->arena, b->dir, text + 6);
        text = cw_arena_printf(b->arena, "ipc://%s", path);
    } else if (strncmp(text, "tcp://", 6) != 0 || !has_port(text + 6)) {
        return cw_fail(err, -EINVAL, "'%s' is not ipc://PATH or tcp://HOST:PORT", text);
    }
    if (strlen(path) > CW_CONF_UNIX_PATH_MAX)
        return cw_fail(err, -ENAMETOOLONG,
                       "%s: a socket's path has at most %d characters; choose a shorter run_dir",
                       text, CW_CONF_UNIX_PATH_MAX);
    if (strlen(text) > URL_MAX_BYTES)
        return cw_fail(err, -ENAMETOOLONG, "%s: an address has at most %d characters", text,
                       URL_MAX_BYTES);
    return keep_text(b, field, text);
}

static int set_bool(void *field, const char *text, struct cw_error *err)
{
    static const struct {
        const char *text;
        bool value;
    } words[] = { { "true", true },   { "yes", true }, { "on", true },
                  { "false", false }, { "no", false }, { "off", false } };

    for (size_t i = 0; i < CW_ARRAY_LEN(words); i++) {
        if (strcasecmp(words[i].text, text) == 0) {
            *(bool *)field = words[i].value;
            return 0;
        }
    }
    return cw_fail(err, -EINVAL, "'%s' is not true or false", text);
}

static int parse_count(const char *text, uint64_t *ret, struct cw_error *err)
{
    uint64_t n = 0;

    if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0')
        return cw_fail(err, -EINVAL, "'%.64s' is not a whole number", text);
    for (const char *p = text; *p != '\0'; p++) {
        if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
            return cw_fail(err, -ERANGE, "%.64s is too large", text);
    }
    *ret = n;
    return 0;
}

/* <n>ms, or parts with s m h d w; a bare number is seconds where it cannot be mistaken for
 * something else. */
static int parse_ms(const char *text, bool need_unit, uint64_t *ret, struct cw_error *err)
{
    cw_autofree char *copy = cw_xstrdup(text);
    size_t len = strlen(text), digits = strspn(text, "0123456789");
    uint64_t n, scale = 1000;
    int rc;

    if (len > 2 && digits == len - 2 && strcmp(text + digits, "ms") == 0) {
        copy[digits] = '\0';
        scale = 1;
    }
    if (digits == len && need_unit)
        return cw_fail(err, -EINVAL, "'%.64s' needs a unit, like 500ms or 5s", text);
    if (digits == len || scale == 1)
        rc = parse_count(copy, &n, err);
    else if (strpbrk(text, ":-") != NULL || (rc = cw_duration_parse(text, &n, NULL)) < 0 ||
             n == CW_DURATION_UNLIMITED)
        rc = cw_fail(err, -EINVAL, "'%.64s' is not a time like 30, 90s, 500ms, 1h30m or 7d", text);
    if (rc < 0)
        return rc;
    if (__builtin_mul_overflow(n, scale, ret))
        return cw_fail(err, -ERANGE, "%.64s is too large", text);
    return 0;
}

static int parse_seconds(const char *text, uint64_t *ret, struct cw_error *err)
{
    uint64_t ms;
    int rc = parse_ms(text, false, &ms, err);

    if (rc < 0)
        return rc;
    if (ms % 1000 != 0)
        return cw_fail(err, -EINVAL, "'%.64s' is not a whole number of seconds", text);
    *ret = ms / 1000;
    return 0;
}

static void format_limit(const struct cw_conf_row *row, uint64_t limit, char *buf, size_t cap)
{
    bool ms = row->kind == CW_CONF_MS;
    bool seconds = row->kind == CW_CONF_SECONDS || row->kind == CW_CONF_SECONDS64;

    snprintf(buf, cap, "%" PRIu64 "%s", limit, ms ? "ms" : seconds ? "s" : "");
}

static int check_limits(const struct cw_conf_row *row, uint64_t n, const char *text,
                        struct cw_error *err)
{
    bool narrow = row->kind == CW_CONF_COUNT32 || row->kind == CW_CONF_SECONDS ||
                  row->kind == CW_CONF_MS;
    uint64_t max = row->max > 0 ? row->max : narrow ? UINT32_MAX : UINT64_MAX;
    char limit[32];

    if (n < row->min) {
        format_limit(row, row->min, limit, sizeof(limit));
        return cw_fail(err, -ERANGE, "%.64s is too small; at least %s", text, limit);
    }
    if (n > max) {
        format_limit(row, max, limit, sizeof(limit));
        return cw_fail(err, -ERANGE, "%.64s is too large; at most %s", text, limit);
    }
    return 0;
}

static int parse_number(const struct cw_conf_row *row, const char *text, uint64_t *ret,
                        struct cw_error *err)
{
    switch (row->kind) {
    case CW_CONF_MS:
        return parse_ms(text, true, ret, err);
    case CW_CONF_SECONDS:
    case CW_CONF_SECONDS64:
        return parse_seconds(text, ret, err);
    case CW_CONF_JOBTIME:
        return cw_duration_parse(text, ret, err);
    case CW_CONF_SIZE:
        return cw_size_parse(text, UINT64_C(1) << 20, ret, err);
    default:
        return parse_count(text, ret, err);
    }
}

static int set_number(const struct cw_conf_row *row, void *field, const char *text,
                      struct cw_error *err)
{
    uint64_t n;
    int rc = parse_number(row, text, &n, err);

    if (rc < 0 || (rc = check_limits(row, n, text, err)) < 0)
        return rc;
    if (row->kind == CW_CONF_COUNT32 || row->kind == CW_CONF_SECONDS || row->kind == CW_CONF_MS)
        *(uint32_t *)field = (uint32_t)n;
    else
        *(uint64_t *)field = n;
    return 0;
}

int cw_conf_value_set(const struct cw_conf_bases *b, const struct cw_conf_row *row, void *section,
                      const char *text, struct cw_error *err)
{
    void *field = (char *)section + row->offset;

    switch (row->kind) {
    case CW_CONF_TEXT:
        return keep_text(b, field, text);
    case CW_CONF_OPTNAME:
        return text[0] == '\0' ? keep_text(b, field, text) : set_name(b, field, text, err);
    case CW_CONF_NAME:
        return set_name(b, field, text, err);
    case CW_CONF_USERS:
        return set_users(b, field, text, err);
    case CW_CONF_NODES:
        return set_nodes(b, field, text, err);
    case CW_CONF_CHOICE:
        return set_choice(b, row, field, text, err);
    case CW_CONF_BASEDIR:
        return set_path(b, field, b->file_dir, text, 4095, err);
    case CW_CONF_COMMAND:
        *(const char **)field = NULL;
        return text[0] == '\0' ? 0 : set_path(b, field, b->dir, text, 4095, err);
    case CW_CONF_PATH:
        return set_path(b, field, b->dir, text, 4095, err);
    case CW_CONF_SOCKET:
        return set_path(b, field, b->dir, text, CW_CONF_UNIX_PATH_MAX, err);
    case CW_CONF_PATHS:
        return set_paths(b, field, text, err);
    case CW_CONF_URL:
        return set_url(b, field, text, err);
    case CW_CONF_BOOL:
        return set_bool(field, text, err);
    default:
        return set_number(row, field, text, err);
    }
}

void cw_conf_value_format(const struct cw_conf_row *row, const void *section, struct cw_buf *out)
{
    const void *field = (const char *)section + row->offset;
    char text[32];

    switch (row->kind) {
    case CW_CONF_BOOL:
        cw_buf_add_str(out, *(const bool *)field ? "true" : "false");
        break;
    case CW_CONF_COUNT32:
    case CW_CONF_SECONDS:
        cw_buf_addf(out, "%" PRIu32, *(const uint32_t *)field);
        break;
    case CW_CONF_MS:
        cw_buf_addf(out, "%" PRIu32 "ms", *(const uint32_t *)field);
        break;
    case CW_CONF_COUNT64:
    case CW_CONF_SECONDS64:
        cw_buf_addf(out, "%" PRIu64, *(const uint64_t *)field);
        break;
    case CW_CONF_JOBTIME:
        cw_buf_add_str(out, cw_duration_format(*(const uint64_t *)field, text, sizeof(text)));
        break;
    case CW_CONF_SIZE:
        cw_buf_add_str(out, cw_size_format(*(const uint64_t *)field, text, sizeof(text)));
        break;
    default: {
        const char *s = *(const char *const *)field;
        cw_buf_addf(out, "\"%s\"", s != NULL ? s : "");
    }
    }
}
