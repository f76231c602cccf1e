/* Reading a job file (contract: jobfile.h). Test: jobfile_test.c, fuzz_jobfile.c. */
#include "spec/jobfile.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LATE_WARNINGS 10

/* One line without its line break. */
struct line {
    const char *text;
    size_t len;
    size_t number;
};

struct words {
    struct cw_strv list;
    size_t *cols, cap;
    size_t bad_col; /* of the quote that does not end */
};

static void add_word(struct words *w, const struct cw_buf *word, size_t col)
{
    if (w->list.n == w->cap) {
        w->cap = w->cap == 0 ? 8 : 2 * w->cap;
        w->cols = cw_xrealloc(w->cols, w->cap, sizeof *w->cols);
    }
    w->cols[w->list.n] = col;
    cw_strv_add(&w->list, cw_buf_str(word));
}

/* Inside "...", a backslash is special before these only (POSIX 2.2.3). */
static bool escapes_in_double(char c)
{
    return c == '$' || c == '`' || c == '"' || c == '\\';
}

/* One word from line[*pos]; moves *pos behind it. False: a quote at bad_col has no end. */
static bool take_word(const char *line, size_t n, size_t *pos, struct cw_buf *word, size_t *bad_col)
{
    char quote = 0;
    size_t i = *pos, opened = 0;
    for (; i < n && (quote != 0 || !isblank((unsigned char)line[i])); i++) {
        char c = line[i];
        if (quote == 0 && (c == '\'' || c == '"')) {
            quote = c;
            opened = i;
        } else if (c == quote) {
            quote = 0;
        } else if (c == '\\' && quote != '\'') {
            if (i + 1 >= n) {
                *bad_col = i + 1;
                return false;
            }
            if (quote == '"' && !escapes_in_double(line[i + 1]))
                cw_buf_add(word, "\\", 1);
            i++;
            cw_buf_add(word, &line[i], 1);
        } else {
            cw_buf_add(word, &c, 1);
        }
    }
    *pos = i;
    *bad_col = opened + 1;
    return quote == 0;
}

static bool split(const char *line, size_t n, struct words *w)
{
    size_t i = 0;
    for (;;) {
        while (i < n && isblank((unsigned char)line[i]))
            i++;
        if (i == n || line[i] == '#')
            return true;
        cw_autobuf struct cw_buf word = {0};
        size_t col = i + 1;
        if (!take_word(line, n, &i, &word, &w->bad_col))
            return false;
        add_word(w, &word, col);
    }
}

int cw_jobfile_split(const char *line, size_t n, struct cw_strv *ret_words, size_t **ret_cols,
                     struct cw_error *err)
{
    struct words w = {0};
    if (!split(line, n, &w)) {
        cw_strv_fini(&w.list);
        free(w.cols);
        return cw_fail(err, -EINVAL, "column %zu: the quote does not end", w.bad_col);
    }
    *ret_words = w.list;
    *ret_cols = w.cols;
    return 0;
}

/* ---- the file as a whole ---- */
static int fail_at(struct cw_error *err, int code, const char *name, size_t line, size_t col,
                   const char *text)
{
    return cw_fail(err, code, "%s:%zu:%zu: %s", name, line, col, text);
}

static int check_bytes(const char *name, const char *text, size_t n, struct cw_error *err)
{
    size_t line = 1;
    if (n > CW_JOBFILE_MAX)
        return cw_fail(err, -E2BIG, "%s: %zu bytes, a job file has at most %u (512 KiB)", name, n,
                       CW_JOBFILE_MAX);
    const char *nul = n > 0 ? memchr(text, 0, n) : NULL;
    if (nul != NULL) {
        const char *start = text;
        for (const char *p = text; p < nul; p++)
            if (*p == '\n') {
                line++;
                start = p + 1;
            }
        return fail_at(err, -EINVAL, name, line, (size_t)(nul - start) + 1,
                       "NUL byte: this is not a text file");
    }
    const char *eol = n > 0 ? memchr(text, '\n', n) : NULL;
    size_t first = eol != NULL ? (size_t)(eol - text) : n;
    if (first > 0 && text[first - 1] == '\r')
        return fail_at(err, -EINVAL, name, 1, first,
                       "DOS line breaks (CRLF): convert the file to plain line feeds");
    return 0;
}

static int keep_script(struct cw_request *r, const char *name, const char *text, size_t n,
                       struct cw_error *err)
{
    cw_autobuf struct cw_buf script = {0};
    bool has_interpreter = n > 2 && text[0] == '#' && text[1] == '!';
    if (!has_interpreter && r->shell == NULL)
        return fail_at(err, -EINVAL, name, 1, 1,
                       "the first line must be #! and an interpreter, as in #!/bin/sh "
                       "(or give --shell=PATH)");
    if (!has_interpreter)
        cw_buf_addf(&script, "#!%s\n", r->shell);
    cw_buf_add(&script, text, n);
    r->payload->has_script = 1;
    r->payload->script.len = script.len;
    r->payload->script.data = cw_arena_alloc(r->arena, script.len + 1);
    memcpy(r->payload->script.data, script.data, script.len);
    return 0;
}

/* ---- lines ---- */
static bool next_line(const char *text, size_t n, size_t *pos, struct line *l)
{
    if (*pos >= n)
        return false;
    const char *eol = memchr(text + *pos, '\n', n - *pos);
    l->text = text + *pos;
    l->len = eol != NULL ? (size_t)(eol - l->text) : n - *pos;
    l->number++;
    *pos += l->len + 1;
    return true;
}

static bool is_blank_or_comment(const struct line *l)
{
    size_t i = 0;
    while (i < l->len && (isblank((unsigned char)l->text[i]) || l->text[i] == '\r'))
        i++;
    return i == l->len || l->text[i] == '#';
}

/* Length of the prefix when the line is a directive of it, else 0. */
static size_t directive_of(const struct line *l, const char *prefix)
{
    size_t n = strlen(prefix);
    if (l->len < n || memcmp(l->text, prefix, n) != 0)
        return 0;
    return l->len == n || isblank((unsigned char)l->text[n]) || l->text[n] == '\r' ? n : 0;
}

static size_t any_directive(const struct line *l, const char *prefix, bool *ret_sbatch)
{
    *ret_sbatch = false;
    if (prefix != NULL)
        return directive_of(l, prefix);
    size_t n = directive_of(l, "#CRUN");
    if (n == 0 && (n = directive_of(l, "#SBATCH")) > 0)
        *ret_sbatch = true;
    return n;
}

/* "#SBATCH--time=5": a comment by the rule, but hardly meant as one. */
static void warn_missing_blank(struct cw_request *r, const char *name, const struct line *l,
                               const char *prefix)
{
    const char *const both[] = {prefix != NULL ? prefix : "#CRUN",
                                prefix != NULL ? NULL : "#SBATCH"};
    for (size_t i = 0; i < CW_ARRAY_LEN(both) && both[i] != NULL; i++) {
        size_t n = strlen(both[i]);
        if (l->len > n && memcmp(l->text, both[i], n) == 0 && l->text[n] == '-')
            cw_request_warn(r, "%s:%zu: a blank is missing behind %s: the line is a comment", name,
                            l->number, both[i]);
    }
}

static void warn_dollar(struct cw_request *r, const char *where, const char *word)
{
    for (const char *p = strchr(word, '$'); p != NULL; p = strchr(p + 1, '$'))
        if (isalpha((unsigned char)p[1]) || p[1] == '_' || p[1] == '{' || p[1] == '(') {
            cw_request_warn(r, "%s: nothing is expanded in a directive: '%s' stays as it is", where,
                            word);
            return;
        }
}

static int apply_words(struct cw_request *r, const char *name, const struct line *l, size_t shift,
                       const struct words *w, struct cw_error *err)
{
    for (size_t i = 0; i < w->list.n;) {
        cw_autofree char *where = cw_xasprintf("%s:%zu:%zu", name, l->number, w->cols[i] + shift);
        int used = cw_request_word(r, w->list.v, w->list.n, i, CW_ORIGIN_DIRECTIVE, where, err);
        if (used == 0)
            used = cw_fail(err, -EINVAL, "%s: '%s' is not an option", where, w->list.v[i]);
        if (used < 0)
            return used;
        for (size_t end = i + (size_t)used; i < end; i++)
            warn_dollar(r, where, w->list.v[i]);
    }
    return 0;
}

static int apply_directive(struct cw_request *r, const char *name, const struct line *l,
                           size_t skip, struct cw_error *err)
{
    struct words w = {0};
    int rc;
    const char *cr = memchr(l->text, '\r', l->len);
    if (cr != NULL)
        return fail_at(err, -EINVAL, name, l->number, (size_t)(cr - l->text) + 1,
                       "DOS line break (CR) in a directive");
    if (split(l->text + skip, l->len - skip, &w))
        rc = apply_words(r, name, l, skip, &w, err);
    else
        rc = fail_at(err, -EINVAL, name, l->number, w.bad_col + skip, "the quote does not end");
    cw_strv_fini(&w.list);
    free(w.cols);
    return rc;
}

/* The commonest silent mistake of all: a directive that nobody reads. */
static void warn_late(struct cw_request *r, const char *name, const struct line *l,
                      size_t first_command, size_t count)
{
    if (count <= MAX_LATE_WARNINGS)
        cw_request_warn(r, "%s:%zu: directive ignored: it comes after the first command (line %zu)",
                        name, l->number, first_command);
    else if (count == MAX_LATE_WARNINGS + 1)
        cw_request_warn(r, "%s: more directives after the first command are ignored", name);
}

int cw_jobfile_parse(struct cw_request *r, const char *name, const void *text, size_t n,
                     const char *prefix, struct cw_error *err)
{
    struct line l = {0};
    size_t pos = 0, first_command = 0, late = 0;
    bool sbatch;
    if (prefix == NULL)
        prefix = r->directive_prefix;
    r->source = cw_arena_strdup(r->arena, name);
    if (strcmp(name, "-") == 0)
        name = "stdin";
    int rc = check_bytes(name, text, n, err);
    if (rc == 0)
        rc = keep_script(r, name, text, n, err);
    while (rc == 0 && next_line(text, n, &pos, &l)) {
        size_t skip = any_directive(&l, prefix, &sbatch);
        if (skip > 0 && first_command > 0) {
            warn_late(r, name, &l, first_command, ++late);
        } else if (skip > 0) {
            r->saw_sbatch = r->saw_sbatch || sbatch;
            rc = apply_directive(r, name, &l, skip, err);
        } else if (is_blank_or_comment(&l)) {
            if (first_command == 0)
                warn_missing_blank(r, name, &l, prefix);
        } else if (first_command == 0) {
            first_command = l.number;
        }
    }
    return rc;
}
