/* See entries.h. */
#include "spec/entries.h"

#include <jansson.h>
#include <string.h>

#include "base/mem.h"

static int begin(struct cw_request *r, size_t n, struct cw_error *err)
{
    if (r->spec->array != NULL)
        return cw_fail(err, -EINVAL, "entries make an array of their own: no --array beside them");
    if (n == 0)
        return cw_fail(err, -EINVAL, "there is no entry");
    Cw__ArraySpec *a = cw_arena_alloc(r->arena, sizeof *a);
    cw__array_spec__init(a);
    a->indices = n == 1 ? cw_arena_strdup(r->arena, "0") : cw_arena_printf(r->arena, "0-%zu", n - 1);
    r->spec->array = a;
    r->payload->entries = cw_arena_alloc(r->arena, n * sizeof(char *));
    return 0;
}

static void add(struct cw_request *r, const char *text, size_t n)
{
    r->payload->entries[r->payload->n_entries++] = cw_arena_printf(r->arena, "%.*s", (int)n, text);
}

int cw_entries_lines(struct cw_request *r, const char *text, size_t n, struct cw_error *err)
{
    size_t lines = 0, line = 1;
    for (size_t i = 0; i < n; i++) {
        line += text[i] == '\n';
        if (text[i] == '\0')
            return cw_fail(err, -EINVAL, "line %zu: a NUL byte", line);
        lines += text[i] == '\n' || i + 1 == n;
    }
    int rc = begin(r, lines, err);
    for (size_t at = 0; rc == 0 && at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end != NULL ? (size_t)(end - text) - at : n - at;
        add(r, text + at, len);
        at += len + 1;
    }
    return rc;
}

int cw_entries_json(struct cw_request *r, const char *text, size_t n, struct cw_error *err)
{
    json_error_t e;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e), *v;
    size_t i;
    int rc = 0;
    if (root == NULL)
        return cw_fail(err, -EINVAL, "%d:%d: %s", e.line, e.column, e.text);
    if (!json_is_array(root))
        rc = cw_fail(err, -EINVAL, "1:1: it is not a JSON array");
    if (rc == 0)
        rc = begin(r, json_array_size(root), err);
    json_array_foreach(root, i, v) {
        if (rc < 0)
            break;
        if (json_is_string(v)) {
            add(r, json_string_value(v), json_string_length(v));
            continue;
        }
        char *packed = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
        if (packed == NULL)
            rc = cw_fail(err, -ENOMEM, "value %zu cannot be written", i);
        else
            add(r, packed, strlen(packed));
        free(packed);
    }
    json_decref(root);
    return rc;
}
