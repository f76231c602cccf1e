/* Output file patterns (contract: outpath.h). One table of letters serves check and expansion.
 * Test: outpath_test.c, fuzz_outpath.c. */
#include "spec/outpath.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "spec/fieldrule.h"

#define MAX_PATH 4095
#define MAX_WIDTH 10

typedef uint64_t number_fn(const struct cw_outpath_vars *v);
typedef const char *text_fn(const struct cw_outpath_vars *v);

static uint64_t get_id(const struct cw_outpath_vars *v)
{
    return v->id;
}
static uint64_t get_array(const struct cw_outpath_vars *v)
{
    return v->array_id != 0 ? v->array_id : v->id;
}
static uint64_t get_index(const struct cw_outpath_vars *v)
{
    return v->array_id != 0 ? v->index : 0;
}
static uint64_t get_index_mod(const struct cw_outpath_vars *v)
{
    return get_index(v) % 10;
}
static uint64_t get_attempt(const struct cw_outpath_vars *v)
{
    return v->attempt;
}
static uint64_t get_rank(const struct cw_outpath_vars *v)
{
    return v->rank;
}
static uint64_t get_node(const struct cw_outpath_vars *v)
{
    return v->node;
}
static const char *get_user(const struct cw_outpath_vars *v)
{
    return v->user;
}
static const char *get_name(const struct cw_outpath_vars *v)
{
    return v->name;
}
static const char *get_host(const struct cw_outpath_vars *v)
{
    return v->host;
}
static const char *get_step(const struct cw_outpath_vars *v)
{
    return v->step != NULL ? v->step : "batch";
}

static const struct letter {
    char c;
    number_fn *number;
    text_fn *text;
} letters[] = {
    {'j', get_id, NULL},        {'A', get_array, NULL}, {'a', get_index, NULL},
    {'b', get_index_mod, NULL}, {'J', get_id, NULL},    {'r', get_attempt, NULL},
    {'n', get_node, NULL},      {'t', get_rank, NULL},  {'s', NULL, get_step},
    {'u', NULL, get_user},      {'x', NULL, get_name},  {'N', NULL, get_host},
};

static const struct letter *find_letter(char c)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(letters); i++)
        if (letters[i].c == c)
            return &letters[i];
    return NULL;
}

/* What stands at the percent sign *p: NULL for "%%". Moves *p behind it. */
static int take_letter(const char **p, const char *pattern, int *ret_width,
                       const struct letter **ret, struct cw_error *err)
{
    const char *start = *p;
    int width = 0;
    for ((*p)++; **p >= '0' && **p <= '9' && width <= MAX_WIDTH; (*p)++)
        width = width * 10 + (**p - '0');
    const struct letter *l = find_letter(**p);
    if (**p == '%' && *p == start + 1) {
        l = NULL;
    } else if (l == NULL || width > MAX_WIDTH || (width > 0 && l->number == NULL)) {
        size_t shown = (size_t)(*p - start) + (**p != '\0');
        return cw_fail(
            err, -EINVAL,
            "'%s': %.*s is not known "
            "(%%j %%A %%a %%b %%J %%r %%n %%t with a width up to 10, %%s %%u %%x %%N %%%%)",
            pattern, (int)shown, start);
    }
    (*p)++;
    *ret_width = width;
    *ret = l;
    return 0;
}

int cw_outpath_check(const char *pattern, struct cw_error *err)
{
    int r = cw_field_path(pattern, err);
    if (r < 0)
        return r;
    if (strcmp(pattern, "-") == 0)
        return cw_fail(err, -EINVAL, "'-' is no file: none discards the output");
    if (strcmp(pattern, "\\") == 0)
        return cw_fail(err, -EINVAL, "nothing follows the backslash");
    for (const char *p = pattern; pattern[0] != '\\' && *p != '\0';) {
        const struct letter *l;
        int width;
        if (*p != '%') {
            p++;
            continue;
        }
        r = take_letter(&p, pattern, &width, &l, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static void add_text(struct cw_buf *out, const char *text)
{
    if (text == NULL)
        return;
    if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0) {
        cw_buf_add_str(out, text[1] == '\0' ? "_" : "__");
        return;
    }
    for (; *text != '\0'; text++)
        cw_buf_add(out, *text == '/' ? "_" : text, 1);
}

static void add_number(struct cw_buf *out, const struct letter *l, int width,
                       const struct cw_outpath_vars *v)
{
    cw_buf_addf(out, "%0*" PRIu64, width > 0 ? width : 1, l->number(v));
    if (l->c == 'J' && v->step != NULL)
        cw_buf_addf(out, ".%s", v->step);
}

static int expand(const char *pattern, const struct cw_outpath_vars *v, struct cw_buf *out,
                  struct cw_error *err)
{
    for (const char *p = pattern; *p != '\0' && out->len <= MAX_PATH;) {
        const struct letter *l;
        int width;
        if (*p != '%') {
            cw_buf_add(out, p++, 1);
            continue;
        }
        int r = take_letter(&p, pattern, &width, &l, err);
        if (r < 0)
            return r;
        if (l == NULL)
            cw_buf_add(out, "%", 1);
        else if (l->number != NULL)
            add_number(out, l, width, v);
        else
            add_text(out, l->text(v));
    }
    return 0;
}

int cw_outpath_expand(const char *pattern, const char *workdir, const struct cw_outpath_vars *v,
                      struct cw_buf *ret, struct cw_error *err)
{
    cw_autobuf struct cw_buf out = {0};
    int r = cw_outpath_check(pattern, err);
    if (r == 0 && strcmp(pattern, "none") == 0) {
        cw_buf_add_str(ret, "/dev/null");
        return 0;
    }
    if (r == 0 && pattern[0] == '\\')
        cw_buf_add_str(&out, pattern + 1);
    else if (r == 0)
        r = expand(pattern, v, &out, err);
    if (r < 0)
        return r;
    if (out.len == 0)
        return cw_fail(err, -EINVAL, "'%s' names no file", pattern);
    size_t dir_len = out.data[0] == '/' ? 0 : strlen(workdir);
    if (dir_len + 1 + out.len > MAX_PATH)
        return cw_fail(err, -ENAMETOOLONG, "'%s': the path is longer than %d bytes", pattern,
                       MAX_PATH);
    if (dir_len > 0) {
        cw_buf_add(ret, workdir, dir_len);
        if (workdir[dir_len - 1] != '/')
            cw_buf_add(ret, "/", 1);
    }
    cw_buf_add(ret, out.data, out.len);
    return 0;
}

const char *cw_outpath_default(bool array, bool slurm)
{
    if (slurm)
        return array ? "slurm-%A_%a.out" : "slurm-%j.out";
    return array ? "crun-%A_%a.out" : "crun-%j.out";
}
