/* The shape of a configuration.
 *
 * Tokens: words of a safe alphabet, strings in quotes on one line, and the punctuation { } ( ) =.
 * Statements: `name = value`, `section "title" { ... }`, `include("file")`. Whatever else
 * libconfuse would accept, or silently skip, is refused here with its line. Test: conf_test.c,
 * conf_refusal_test.c, fuzz_conf.c. */
#include "config.h"

#include "conf/conf_scan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"

enum token { T_END, T_WORD, T_STRING, T_PUNCT };

struct lexer {
    struct cw_conf_scan *scan;
    const char *file;
    const char *p, *end;
    int line;
    struct cw_error *err;
    enum token token;
    int token_line;
    char *text; /* of the token; in the arena */
};

static int bad(const struct lexer *x, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int bad(const struct lexer *x, int line, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    cw_autofree char *text = cw_xvasprintf(fmt, ap);
    va_end(ap);
    return cw_fail(x->err, -EINVAL, "%s:%d: %s", x->file, line, text);
}

static int bad_char(const struct lexer *x)
{
    unsigned char c = (unsigned char)*x->p;

    if (c == '\r')
        return bad(x, x->line, "a carriage return; the file needs Unix line ends");
    if (c < 0x21 || c > 0x7e)
        return bad(x, x->line, "unexpected byte 0x%02x", c);
    return bad(x, x->line, "unexpected '%c'; put the value in quotes", c);
}

static bool is_word_char(const struct lexer *x, const char *p)
{
    /* Two slashes, or a slash and a star, begin a comment in the middle of a word. */
    if (*p == '/')
        return p + 1 < x->end && p[1] != '/' && p[1] != '*';
    return (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
           (*p != '\0' && strchr("_.:%@[]-", *p) != NULL);
}

static void skip_line(struct lexer *x)
{
    while (x->p < x->end && *x->p != '\n')
        x->p++;
}

static int skip_block_comment(struct lexer *x)
{
    int first = x->line;

    for (x->p += 2; x->p + 1 < x->end; x->p++) {
        if (x->p[0] == '*' && x->p[1] == '/') {
            x->p += 2;
            return 0;
        }
        if (*x->p == '\n')
            x->line++;
    }
    return bad(x, first, "the comment that begins here has no end");
}

static int skip_blank(struct lexer *x)
{
    while (x->p < x->end) {
        char next = x->p + 1 < x->end ? x->p[1] : '\0';
        if (*x->p == '\n') {
            x->line++;
            x->p++;
        } else if (*x->p == ' ' || *x->p == '\t') {
            x->p++;
        } else if (*x->p == '#' || (*x->p == '/' && next == '/')) {
            skip_line(x);
        } else if (*x->p == '/' && next == '*') {
            int rc = skip_block_comment(x);
            if (rc < 0)
                return rc;
        } else {
            break;
        }
    }
    return 0;
}

/* x->p stands on the opening quote. */
static int scan_string(struct lexer *x)
{
    cw_autobuf struct cw_buf b = { 0 };
    char quote = *x->p++;

    for (;; x->p++) {
        if (x->p >= x->end || *x->p == '\n')
            return bad(x, x->line, "the string is not closed on its line");
        if (*x->p == quote)
            break;
        if ((unsigned char)*x->p < 0x20 || *x->p == 0x7f)
            return bad_char(x);
        if (*x->p == '$' && x->p + 1 < x->end && x->p[1] == '{')
            return bad(x, x->line,
                       "environment variables are not expanded here; write the value itself");
        if (*x->p == '\\') {
            if (quote == '\'' || x->p + 1 >= x->end || (x->p[1] != '\\' && x->p[1] != '"'))
                return bad(x, x->line,
                           "a backslash may stand only before \" or \\ in double quotes");
            x->p++;
        }
        cw_buf_add(&b, x->p, 1);
    }
    x->p++;
    x->token = T_STRING;
    x->text = cw_arena_strdup(x->scan->arena, cw_buf_str(&b));
    return 0;
}

static int next_token(struct lexer *x)
{
    int rc = skip_blank(x);

    if (rc < 0)
        return rc;
    x->token_line = x->line;
    if (x->p >= x->end) {
        x->token = T_END;
        x->text = cw_arena_strdup(x->scan->arena, "the end of the file");
        return 0;
    }
    if (*x->p == '"' || *x->p == '\'')
        return scan_string(x);
    const char *start = x->p;
    while (x->p < x->end && is_word_char(x, x->p))
        x->p++;
    x->token = T_WORD;
    if (x->p == start) {
        if (*x->p == '$')
            return bad(x, x->line,
                       "environment variables are not expanded here; write the value itself");
        if (*x->p == '\0' || strchr("{}()=", *x->p) == NULL)
            return bad_char(x);
        x->p++;
        x->token = T_PUNCT;
    } else if (x->p < x->end && (*x->p == '\0' || strchr(" \t\n{}()=", *x->p) == NULL)) {
        /* Versions of libconfuse differ in which of the others end a word. */
        return bad_char(x);
    }
    x->text = cw_arena_printf(x->scan->arena, "%.*s", (int)(x->p - start), start);
    return 0;
}

static int expect(struct lexer *x, const char *punct, const char *what)
{
    int rc = next_token(x);

    if (rc < 0)
        return rc;
    if (x->token != T_PUNCT || strcmp(x->text, punct) != 0)
        return bad(x, x->token_line, "'%s' is expected %s, found %s", punct, what, x->text);
    return 0;
}

void cw_conf_scan_fini(struct cw_conf_scan *s)
{
    free(s->items);
    s->items = NULL;
    s->n = s->cap = 0;
}

const struct cw_conf_item *cw_conf_scan_find(const struct cw_conf_scan *s, size_t parent,
                                             const char *name, const char *title)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct cw_conf_item *it = &s->items[i];
        if (it->parent == parent && strcmp(it->name, name) == 0 &&
            (title == NULL || it->title == NULL || strcmp(it->title, title) == 0))
            return it;
    }
    return NULL;
}

static int add_item(struct lexer *x, const struct cw_conf_item *item)
{
    struct cw_conf_scan *s = x->scan;
    const struct cw_conf_item *old = cw_conf_scan_find(s, item->parent, item->name, item->title);

    if (old != NULL && item->title != NULL)
        return bad(x, item->line, "%s \"%s\" was given before (%s:%d)", item->name, item->title,
                   old->file, old->line);
    if (old != NULL)
        return bad(x, item->line, "%s was given before (%s:%d)", item->name, old->file, old->line);
    if (s->n == CW_CONF_ITEMS_MAX)
        return bad(x, item->line, "more than %u settings", CW_CONF_ITEMS_MAX);
    if (s->n == s->cap) {
        s->cap = s->cap > 0 ? s->cap * 2 : 64;
        s->items = cw_xrealloc(s->items, s->cap, sizeof(*s->items));
    }
    s->items[s->n++] = *item;
    return 0;
}

static int unknown_name(struct lexer *x, const struct cw_conf_section *in)
{
    const char *near = cw_conf_schema_nearest(in, x->text);
    cw_autobuf struct cw_buf where = { 0 };

    if (in->name[0] != '\0')
        cw_buf_addf(&where, " in %s", in->name);
    if (near != NULL)
        return bad(x, x->token_line, "unknown setting '%s'%s; did you mean '%s'?", x->text,
                   cw_buf_str(&where), near);
    if (in->name[0] == '\0')
        return bad(x, x->token_line, "unknown setting '%s'; crun.conf(5) lists what is allowed",
                   x->text);
    cw_buf_add_str(&where, "; allowed:");
    for (size_t i = 0; i < in->n_rows; i++)
        cw_buf_addf(&where, "%s %s", i > 0 ? "," : "", in->rows[i].name);
    for (size_t i = 0; i < in->n_subs; i++)
        cw_buf_addf(&where, ", %s { }", in->subs[i].name);
    return bad(x, x->token_line, "unknown setting '%s'%s", x->text, cw_buf_str(&where));
}

/* name = value */
static int scan_setting(struct lexer *x, size_t parent)
{
    struct cw_conf_item item = {
        .name = x->text, .parent = parent, .file = x->file, .line = x->token_line
    };
    cw_autofree char *where = cw_xasprintf("behind %s", x->text);
    int rc = expect(x, "=", where);

    if (rc < 0 || (rc = next_token(x)) < 0)
        return rc;
    if (x->token != T_WORD && x->token != T_STRING)
        return bad(x, x->token_line, "a value is expected for %s, found %s", item.name, x->text);
    item.value = x->text;
    return add_item(x, &item);
}

static int scan_block(struct lexer *x, const struct cw_conf_section *in, size_t self);

/* name { ... } or name "title" { ... } */
static int scan_section(struct lexer *x, const struct cw_conf_section *section, size_t parent)
{
    struct cw_conf_item item = { .name = section->name,
                                 .section = section,
                                 .parent = parent,
                                 .file = x->file,
                                 .line = x->token_line };
    int rc = 0;

    if (section->titled) {
        rc = next_token(x);
        if (rc < 0)
            return rc;
        if (x->token != T_WORD && x->token != T_STRING)
            return bad(x, x->token_line, "%s needs a name in quotes, found %s", section->name,
                       x->text);
        item.title = x->text;
    }
    rc = add_item(x, &item);
    if (rc < 0 || (rc = expect(x, "{", "to open the section")) < 0)
        return rc;
    return scan_block(x, section, x->scan->n);
}

/* include("file") */
static int scan_include(struct lexer *x)
{
    cw_autobuf struct cw_buf text = { 0 };
    struct cw_error why = { 0 };
    int line = x->token_line;
    int rc = expect(x, "(", "behind include");

    if (rc < 0 || (rc = next_token(x)) < 0)
        return rc;
    if (x->token != T_STRING || x->text[0] == '\0')
        return bad(x, x->token_line, "a file name in quotes is expected for include");
    const char *path = cw_conf_scan_include_path(x->scan->arena, x->file, x->text);
    rc = expect(x, ")", "behind the file name");
    if (rc < 0)
        return rc;
    if (x->scan->depth == CW_CONF_INCLUDES_MAX)
        return bad(x, line, "files are included more than %d deep", CW_CONF_INCLUDES_MAX);
    rc = cw_conf_scan_read(path, &x->scan->owner, &text, NULL, &why);
    if (rc < 0)
        return cw_fail(x->err, rc, "%s:%d: include: %s", x->file, line, why.text);
    x->scan->depth++;
    rc = cw_conf_scan_text(x->scan, path, cw_buf_str(&text), text.len, x->err);
    x->scan->depth--;
    return rc;
}

static int scan_statement(struct lexer *x, const struct cw_conf_section *in, size_t self)
{
    const struct cw_conf_section *sub = cw_conf_schema_sub(in, x->text);

    if (x->token != T_WORD)
        return bad(x, x->token_line, "the name of a setting is expected, found '%s'", x->text);
    if (self == 0 && strcmp(x->text, "include") == 0)
        return scan_include(x);
    if (sub != NULL)
        return scan_section(x, sub, self);
    if (!in->free_keys && cw_conf_schema_row(in, x->text) == NULL)
        return unknown_name(x, in);
    if (in->free_keys &&
        x->text[strspn(x->text,
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] != '\0')
        return bad(x, x->token_line,
                   "an option's name may have letters, digits, '_' and '-', found '%s'", x->text);
    return scan_setting(x, self);
}

/* Statements up to the closing brace of section number self - 1, or the end of the file when self
 * is 0. */
static int scan_block(struct lexer *x, const struct cw_conf_section *in, size_t self)
{
    for (;;) {
        int rc = next_token(x);
        if (rc < 0)
            return rc;
        if (x->token == T_END && self == 0)
            return 0;
        if (x->token == T_END)
            return bad(x, x->scan->items[self - 1].line,
                       "the closing brace of the section %s that begins here is missing", in->name);
        if (x->token == T_PUNCT && x->text[0] == '}') {
            if (self > 0)
                return 0;
            return bad(x, x->token_line, "'}' without an open section");
        }
        rc = scan_statement(x, in, self);
        if (rc < 0)
            return rc;
    }
}

int cw_conf_scan_text(struct cw_conf_scan *s, const char *file, const char *text, size_t len,
                      struct cw_error *err)
{
    struct lexer x = { .scan = s,
                       .file = cw_arena_strdup(s->arena, file),
                       .p = text,
                       .end = text + len,
                       .line = 1,
                       .err = err };

    return scan_block(&x, &cw_conf_schema_root, 0);
}

const char *cw_conf_scan_include_path(struct cw_arena *arena, const char *file, const char *name)
{
    const char *slash = strrchr(file, '/');

    if (name[0] == '/')
        return cw_arena_strdup(arena, name);
    if (slash == NULL)
        return cw_arena_printf(arena, "./%s", name);
    /* A '~' in front must not reach libconfuse, which would look for a home directory. */
    return cw_arena_printf(arena, "%s%.*s/%s", file[0] == '~' ? "./" : "", (int)(slash - file),
                           file, name);
}

int cw_conf_scan_read(const char *path, const uid_t *owner, struct cw_buf *ret, uid_t *ret_owner,
                      struct cw_error *err)
{
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    cw_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0)
        return cw_fail_errno(err, -errno, "open %s", path);
    if (fstat(fd, &st) < 0)
        return cw_fail_errno(err, -errno, "stat %s", path);
    if (!S_ISREG(st.st_mode))
        return cw_fail(err, -EINVAL, "%s: not a regular file", path);
    if ((st.st_mode & S_IWOTH) != 0)
        return cw_fail(err, -EPERM, "%s: everybody may write it", path);
    if (owner != NULL && st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != *owner)
        return cw_fail(err, -EPERM,
                       "%s: belongs to uid %lu, not to root or the owner of the main file", path,
                       (unsigned long)st.st_uid);
    if (ret_owner != NULL)
        *ret_owner = st.st_uid;
    return cw_file_read_fd(fd, path, CW_CONF_FILE_MAX, ret, err);
}
