/* See args.h. */
#include "cmds/args.h"

#include <string.h>

#include "base/mem.h"

static const struct cw_arg common[] = {
    {"conf", 0, "FILE",
     "configuration file of the instance (default: $CRUN_CONF, ~/.crun-wlm, /etc)"},
    {"json", 0, NULL, "print one JSON object instead of text"},
    {"help", 0, NULL, "show this help"},
    {"version", 'V', NULL, "show the version"},
    {NULL, 0, NULL, NULL},
};

struct parse {
    const struct cw_arg *table;
    int argc;
    char *const *argv;
    int at;
    cw_args_fn on_option;
    void *arg;
    struct cw_args_common *common;
};

static const struct cw_arg *find(const struct cw_arg *table, const char *name, size_t n,
                                 char letter)
{
    for (const struct cw_arg *a = table; a->name != NULL; a++) {
        if (letter != 0 ? a->letter == letter
                        : strlen(a->name) == n && memcmp(a->name, name, n) == 0)
            return a;
    }
    return NULL;
}

static const struct cw_arg *find_any(const struct parse *p, const char *name, size_t n, char letter,
                                     bool *ret_common)
{
    const struct cw_arg *a = find(p->table, name, n, letter);
    *ret_common = a == NULL;
    return a != NULL ? a : find(common, name, n, letter);
}

static int apply(struct parse *p, const struct cw_arg *a, bool is_common, const char *value,
                 struct cw_error *err)
{
    if (!is_common)
        return p->on_option(a, value, p->arg, err);
    if (strcmp(a->name, "conf") == 0)
        p->common->conf = value;
    else if (strcmp(a->name, "json") == 0)
        p->common->json = true;
    else if (strcmp(a->name, "help") == 0)
        p->common->help = true;
    else
        p->common->version = true;
    return 0;
}

/* The value of an option: attached, or the next word. */
static int take_value(struct parse *p, const struct cw_arg *a, const char *attached,
                      const char **ret, struct cw_error *err)
{
    *ret = attached;
    if (a->argument == NULL)
        return attached == NULL ? 0 : cw_fail(err, -EINVAL, "option --%s takes no value", a->name);
    if (attached != NULL)
        return 0;
    if (p->at + 1 >= p->argc)
        return cw_fail(err, -EINVAL, "option --%s needs a value: %s", a->name, a->argument);
    *ret = p->argv[++p->at];
    return 0;
}

static int parse_long(struct parse *p, const char *word, struct cw_error *err)
{
    const char *eq = strchr(word, '=');
    size_t n = eq != NULL ? (size_t)(eq - word) : strlen(word);
    bool is_common;
    const struct cw_arg *a = find_any(p, word, n, 0, &is_common);
    if (a == NULL)
        return cw_fail(err, -EINVAL, "unknown option --%.*s", (int)n, word);
    const char *value;
    int rc = take_value(p, a, eq != NULL ? eq + 1 : NULL, &value, err);
    return rc != 0 ? rc : apply(p, a, is_common, value, err);
}

static int parse_letters(struct parse *p, const char *letters, struct cw_error *err)
{
    for (const char *l = letters; *l != '\0'; l++) {
        bool is_common;
        const struct cw_arg *a = find_any(p, NULL, 0, *l, &is_common);
        if (a == NULL)
            return cw_fail(err, -EINVAL, "unknown option -%c", *l);
        const char *value = NULL;
        if (a->argument == NULL) {
            int rc = apply(p, a, is_common, NULL, err);
            if (rc != 0)
                return rc;
            continue;
        }
        int rc = take_value(p, a, l[1] != '\0' ? l + 1 : NULL, &value, err);
        return rc != 0 ? rc : apply(p, a, is_common, value, err);
    }
    return 0;
}

int cw_args_parse(const struct cw_arg *table, int argc, char *const *argv, cw_args_fn on_option,
                  void *arg, struct cw_args_common *ret_common, struct cw_strv *ret_operands,
                  struct cw_error *err)
{
    struct parse p = {table, argc, argv, 1, on_option, arg, ret_common};
    bool options = true;
    memset(ret_common, 0, sizeof(*ret_common));
    for (; p.at < argc; p.at++) {
        const char *w = argv[p.at];
        int rc = 0;
        if (options && strcmp(w, "--") == 0)
            options = false;
        else if (options && strncmp(w, "--", 2) == 0)
            rc = parse_long(&p, w + 2, err);
        else if (options && w[0] == '-' && w[1] != '\0')
            rc = parse_letters(&p, w + 1, err);
        else
            cw_strv_add(ret_operands, w);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void help_rows(const struct cw_arg *table, const struct cw_arg *hidden_by,
                      struct cw_buf *out)
{
    for (const struct cw_arg *a = table; a->name != NULL; a++) {
        if (hidden_by != NULL && find(hidden_by, a->name, strlen(a->name), 0) != NULL)
            continue;
        cw_autobuf struct cw_buf left = {0};
        if (a->letter != 0)
            cw_buf_addf(&left, "-%c, ", a->letter);
        cw_buf_addf(&left, "--%s", a->name);
        if (a->argument != NULL)
            cw_buf_addf(&left, "=%s", a->argument);
        cw_buf_addf(out, "  %-28s %s\n", cw_buf_str(&left), a->help);
    }
}

void cw_args_help(const struct cw_arg *table, struct cw_buf *out)
{
    help_rows(table, NULL, out);
    help_rows(common, table, out);
}

/* How many words the option takes. */
static int option_words(const struct cw_arg *table, const char *word)
{
    if (word[1] == '-') {
        const struct cw_arg *o = find(table, word + 2, strlen(word + 2), 0);
        if (o == NULL)
            o = find(common, word + 2, strlen(word + 2), 0);
        return o != NULL && o->argument != NULL ? 2 : 1;
    }
    for (const char *l = word + 1; *l != '\0'; l++) {
        const struct cw_arg *o = find(table, NULL, 0, *l);
        if (o != NULL && o->argument != NULL)
            return l[1] == '\0' ? 2 : 1;
    }
    return 1;
}

char *const *cw_args_end_at_operand(const struct cw_arg *table, int *argc, char *const *argv,
                                    struct cw_arena *a)
{
    char **v = cw_arena_alloc(a, (size_t)(*argc + 2) * sizeof(char *));
    int i = 1, n = 0;
    while (i < *argc && argv[i][0] == '-' && argv[i][1] != '\0' && strcmp(argv[i], "--") != 0)
        i += option_words(table, argv[i]);
    if (i >= *argc || strcmp(argv[i], "--") == 0)
        return argv;
    for (int k = 0; k < *argc; k++) {
        if (k == i + 1 && strcmp(argv[k], "--") == 0)
            continue;
        v[n++] = argv[k];
        if (k == i)
            v[n++] = (char *)"--";
    }
    *argc = n;
    return v;
}
