/* The site's configuration: from text to a complete, checked object.
 *
 * Three steps. The scanner judges the shape and remembers places; libconfuse, under options made
 * from the schema, reads the values; then each row of the schema is filled from the file or its
 * default. Everything lives in one arena. The parser of libconfuse is global: one thread at a time.
 * Test: conf_test.c, conf_refusal_test.c, fuzz_conf.c. */
#include "config.h"

#include "conf/conf.h"

#include <confuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "conf/conf_full.h"
#include "conf/conf_scan.h"
#include "conf/conf_schema.h"
#include "conf/conf_value.h"

#define ROOT_OPTS_MAX 64
#define SUB_OPTS_MAX 16

struct loader {
    struct cw_conf_full *full;
    struct cw_conf_bases bases;
    struct cw_conf_scan scan;
    cfg_t *cfg;
    struct cw_error *err;
};

/* The last message of libconfuse; its own line numbers are off behind block comments, but the
 * scanner has found every mistake that it knows of before. */
static char confuse_message[256];

static void on_confuse_error(cfg_t *cfg, const char *fmt, va_list ap)
{
    /* In a section of free keys it complains about each new key and takes it all the same. */
    if (strcmp(cfg->name, "options") == 0)
        return;
    int n = snprintf(confuse_message, sizeof(confuse_message),
                     "%s:%d: ", cfg->filename != NULL ? cfg->filename : "", cfg->line);
    if (n > 0 && (size_t)n < sizeof(confuse_message))
        vsnprintf(confuse_message + n, sizeof(confuse_message) - (size_t)n, fmt, ap);
}

/* Our own include: relative to the including file, and never through libconfuse's expansion of '~'.
 */
static int on_include(cfg_t *cfg, cfg_opt_t *opt, int argc, const char **argv)
{
    struct cw_arena *arena = cw_arena_create();
    const char *path = "";
    int rc = 1;

    if (argc == 1) {
        path = cw_conf_scan_include_path(arena, cfg->filename, argv[0]);
        rc = cfg_include(cfg, opt, 1, &path);
    }
    cw_arena_destroy(arena);
    return rc;
}

static void make_opts(const struct cw_conf_section *s, cfg_opt_t *opts,
                      cfg_opt_t subopts[][SUB_OPTS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_rows; i++)
        opts[n++] = (cfg_opt_t)CFG_STR(s->rows[i].name, NULL, CFGF_NODEFAULT);
    for (size_t i = 0; i < s->n_subs; i++) {
        const struct cw_conf_section *sub = &s->subs[i];
        cfg_flag_t flags = sub->free_keys ? CFGF_KEYSTRVAL : CFGF_NONE;
        if (sub->titled)
            flags |= CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES;
        /* Only one section in the schema has sections of its own; its rows come behind. */
        make_opts(sub, subopts[i], subopts + s->n_subs);
        opts[n++] = (cfg_opt_t)CFG_SEC(sub->name, subopts[i], flags);
    }
    if (s == &cw_conf_schema_root)
        opts[n++] = (cfg_opt_t)CFG_FUNC("include", on_include);
    opts[n] = (cfg_opt_t)CFG_END();
}

static int read_values(struct loader *l, const char *name, const char *text, size_t len)
{
    cfg_opt_t opts[ROOT_OPTS_MAX], subopts[4][SUB_OPTS_MAX];

    make_opts(&cw_conf_schema_root, opts, subopts);
    l->cfg = cfg_init(opts, CFGF_NONE);
    if (l->cfg == NULL)
        return cw_fail_errno(l->err, -ENOMEM, "%s", name);
    if (len == 0)
        return 0; /* fmemopen refuses nothing at all */
    cfg_set_error_function(l->cfg, on_confuse_error);
    l->cfg->filename = strdup(name);
    confuse_message[0] = '\0';
    FILE *fp = fmemopen((void *)(uintptr_t)text, len, "r"); /* never written through */
    if (fp == NULL)
        return cw_fail_errno(l->err, -errno, "%s", name);
    int rc = cfg_parse_fp(l->cfg, fp);
    fclose(fp);
    if (rc == CFG_SUCCESS)
        return 0;
    return cw_fail(l->err, -EINVAL, "%s", confuse_message[0] != '\0' ? confuse_message : name);
}

/* The default's text, @NAME@ replaced by what setting NAME has got. */
static const char *default_text(struct loader *l, const struct cw_conf_row *row)
{
    cw_autobuf struct cw_buf b = { 0 };

    if (row->computed != NULL)
        return row->computed();
    for (const char *p = row->def; *p != '\0';) {
        const char *end = *p == '@' ? strchr(p + 1, '@') : NULL;
        if (end == NULL) {
            cw_buf_add(&b, p++, 1);
            continue;
        }
        cw_autofree char *name = cw_xstrndup(p + 1, (size_t)(end - p - 1));
        const struct cw_conf_row *other = cw_conf_schema_row(&cw_conf_schema_root, name);
        cw_buf_add_str(&b, *(const char **)((char *)&l->full->conf + other->offset));
        p = end + 1;
    }
    return cw_arena_strdup(l->full->arena, cw_buf_str(&b));
}

static int changed(struct loader *l, const struct cw_conf_item *item)
{
    return cw_fail(l->err, -EAGAIN, "%s:%d: the file changed while it was read", item->file,
                   item->line);
}

/* Fills the rows of one section; places gets where each value came from. */
static int fill_rows(struct loader *l, const struct cw_conf_section *s, cfg_t *sec, size_t self,
                     void *target, struct cw_conf_place *places)
{
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct cw_conf_row *row = &s->rows[i];
        const struct cw_conf_item *item = cw_conf_scan_find(&l->scan, self, row->name, NULL);
        const char *text = item != NULL ? cfg_getstr(sec, row->name) : default_text(l, row);
        struct cw_error why = { 0 };

        if (item != NULL && (text == NULL || strcmp(text, item->value) != 0))
            return changed(l, item);
        if (item != NULL)
            places[i] = (struct cw_conf_place){ item->file, item->line };
        int rc = cw_conf_value_set(&l->bases, row, target, text, &why);
        if (rc < 0)
            return cw_fail(l->err, rc, "%s:%d: %s: %s",
                           item != NULL ? item->file : l->full->conf.path,
                           item != NULL ? item->line : 1, row->name, why.text);
        if (row->kind == CW_CONF_BASEDIR)
            l->bases.dir = l->full->conf.dir;
    }
    return 0;
}

static size_t count_items(const struct loader *l, size_t parent, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < l->scan.n; i++) {
        const struct cw_conf_item *it = &l->scan.items[i];
        n += it->parent == parent && (name == NULL || strcmp(it->name, name) == 0);
    }
    return n;
}

static int check_partition(struct loader *l, struct cw_conf_partition *p,
                           const struct cw_conf_item *item, bool default_time_given)
{
    if (p->name[0] == '\0' || p->name[strspn(p->name, CW_CONF_NAME_CHARS)] != '\0' ||
        strlen(p->name) > 64)
        return cw_fail(l->err, -EINVAL,
                       "%s:%d: partition '%s': a name has letters, digits, '_', '-' and '.'",
                       item->file, item->line, p->name);
    if (p->max_time_s == 0 || p->default_time_s == 0)
        return cw_fail(l->err, -EINVAL, "%s:%d: partition %s: a time limit of 0 seconds",
                       item->file, item->line, p->name);
    if (p->default_time_s <= p->max_time_s)
        return 0;
    if (default_time_given)
        return cw_fail(l->err, -EINVAL, "%s:%d: partition %s: default_time is above max_time",
                       item->file, item->line, p->name);
    p->default_time_s = p->max_time_s;
    return 0;
}

static int check_default(struct loader *l, struct cw_conf_partition *parts, size_t n)
{
    const struct cw_conf_partition *chosen = NULL;

    for (size_t i = 0; i < n; i++) {
        if (parts[i].is_default && chosen != NULL)
            return cw_fail(l->err, -EINVAL,
                           "%s:%d: partition %s: %s is the default already (line %d)",
                           l->full->partition_files[i], parts[i].line, parts[i].name, chosen->name,
                           chosen->line);
        if (parts[i].is_default)
            chosen = &parts[i];
    }
    if (chosen == NULL)
        parts[0].is_default = true;
    return 0;
}

static int fill_partitions(struct loader *l)
{
    const struct cw_conf_section *s = cw_conf_schema_sub(&cw_conf_schema_root, "partition");
    struct cw_conf_full *full = l->full;
    size_t given = count_items(l, 0, "partition"), n = given > 0 ? given : 1, k = 0;
    struct cw_conf_partition *parts = cw_arena_alloc(full->arena, n * sizeof(*parts));

    full->partition_places = cw_arena_alloc(full->arena,
                                            n * s->n_rows * sizeof(struct cw_conf_place));
    full->partition_files = cw_arena_alloc(full->arena, n * sizeof(char *));
    full->conf.partitions = parts;
    full->conf.n_partitions = n;
    if (given == 0) {
        int rc = fill_rows(l, s, NULL, SIZE_MAX, &parts[0], full->partition_places);
        parts[0].name = "main";
        parts[0].is_default = true;
        return rc;
    }
    for (size_t i = 0; i < l->scan.n; i++) {
        const struct cw_conf_item *item = &l->scan.items[i];
        if (item->section != s)
            continue;
        cfg_t *sec = cfg_gettsec(l->cfg, "partition", item->title);
        if (sec == NULL)
            return changed(l, item);
        parts[k].name = item->title;
        parts[k].line = item->line;
        full->partition_files[k] = item->file;
        int rc = fill_rows(l, s, sec, i + 1, &parts[k], full->partition_places + k * s->n_rows);
        bool time_given = cw_conf_scan_find(&l->scan, i + 1, "default_time", NULL) != NULL;
        if (rc < 0 || (rc = check_partition(l, &parts[k], item, time_given)) < 0)
            return rc;
        k++;
    }
    return check_default(l, parts, n);
}

/* "family/name" */
static int split_title(struct loader *l, const struct cw_conf_item *item, struct cw_conf_plugin *p)
{
    static const char chars[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    const char *slash = strchr(item->title, '/');
    size_t family = slash != NULL ? (size_t)(slash - item->title) : 0;

    if (family == 0 || slash[1] == '\0' || strspn(item->title, chars) != family ||
        slash[1 + strspn(slash + 1, chars)] != '\0' || strlen(item->title) > 128)
        return cw_fail(l->err, -EINVAL,
                       "%s:%d: plugin '%s': expected \"family/name\" in small letters", item->file,
                       item->line, item->title);
    p->family = cw_arena_printf(l->full->arena, "%.*s", (int)family, item->title);
    p->name = slash + 1;
    p->line = item->line;
    return 0;
}

static int fill_options(struct loader *l, cfg_t *sec, size_t self, struct cw_conf_plugin *p)
{
    const struct cw_conf_item *block = cw_conf_scan_find(&l->scan, self, "options", NULL);
    size_t k = 0;

    if (block == NULL)
        return 0;
    size_t parent = (size_t)(block - l->scan.items) + 1;
    size_t n = count_items(l, parent, NULL);
    struct cw_conf_option *options = cw_arena_alloc(l->full->arena, n * sizeof(*options));
    cfg_t *opts = cfg_getsec(sec, "options");
    for (size_t i = parent; i < l->scan.n; i++) {
        const struct cw_conf_item *item = &l->scan.items[i];
        if (item->parent != parent)
            continue;
        const char *value = opts != NULL ? cfg_getstr(opts, item->name) : NULL;
        if (value == NULL || strcmp(value, item->value) != 0)
            return changed(l, item);
        options[k++] = (struct cw_conf_option){ item->name, cw_arena_strdup(l->full->arena, value),
                                                item->line };
    }
    p->options = options;
    p->n_options = n;
    return 0;
}

static int fill_plugins(struct loader *l)
{
    const struct cw_conf_section *s = cw_conf_schema_sub(&cw_conf_schema_root, "plugin");
    struct cw_conf_full *full = l->full;
    size_t n = count_items(l, 0, "plugin"), k = 0;
    struct cw_conf_plugin *plugins = cw_arena_alloc(full->arena, n * sizeof(*plugins));

    full->plugin_places = cw_arena_alloc(full->arena, n * s->n_rows * sizeof(struct cw_conf_place));
    full->plugin_files = cw_arena_alloc(full->arena, n * sizeof(char *));
    full->conf.plugins = plugins;
    full->conf.n_plugins = n;
    for (size_t i = 0; i < l->scan.n; i++) {
        const struct cw_conf_item *item = &l->scan.items[i];
        if (item->section != s)
            continue;
        cfg_t *sec = cfg_gettsec(l->cfg, "plugin", item->title);
        if (sec == NULL)
            return changed(l, item);
        full->plugin_files[k] = item->file;
        int rc = split_title(l, item, &plugins[k]);
        if (rc == 0)
            rc = fill_rows(l, s, sec, i + 1, &plugins[k], full->plugin_places + k * s->n_rows);
        if (rc == 0)
            rc = fill_options(l, sec, i + 1, &plugins[k]);
        if (rc < 0)
            return rc;
        k++;
    }
    return 0;
}

/* Nobody can dial "all addresses". */
static int check_connect(struct loader *l, const char *name, const char *url)
{
    const struct cw_conf_item *item = cw_conf_scan_find(&l->scan, 0, name, NULL);
    static const char *const wild[] = { "tcp://*:", "tcp://0.0.0.0:", "tcp://[::]:" };

    for (size_t i = 0; i < CW_ARRAY_LEN(wild); i++) {
        if (strncmp(url, wild[i], strlen(wild[i])) == 0)
            return cw_fail(l->err, -EINVAL,
                           "%s:%d: %s: %s stands for all addresses; set %s to one of them",
                           item != NULL ? item->file : l->full->conf.path,
                           item != NULL ? item->line : 1, name, url, name);
    }
    return 0;
}

static int fill_all(struct loader *l)
{
    const struct cw_conf_section *root = &cw_conf_schema_root;
    struct cw_conf *c = &l->full->conf;

    l->full->root_places = cw_arena_alloc(l->full->arena,
                                          root->n_rows * sizeof(struct cw_conf_place));
    int rc = fill_rows(l, root, l->cfg, 0, c, l->full->root_places);
    if (rc == 0)
        rc = fill_partitions(l);
    if (rc == 0)
        rc = fill_plugins(l);
    if (rc == 0)
        rc = check_connect(l, "client_connect", c->client_connect);
    if (rc == 0)
        rc = check_connect(l, "node_connect", c->node_connect);
    return rc;
}

static const char *directory_of(struct cw_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    cw_autofree char *dir = slash == NULL   ? cw_xstrdup(".")
                            : slash == path ? cw_xstrdup("/")
                                            : cw_xstrndup(path, (size_t)(slash - path));
    cw_autofree char *absolute = realpath(dir, NULL);

    return cw_arena_strdup(arena, absolute != NULL ? absolute : dir);
}

static int load(const char *name, uid_t owner, const char *text, size_t len, struct cw_conf **ret,
                struct cw_error *err)
{
    struct cw_arena *arena = cw_arena_create();
    struct cw_conf_full *full = cw_arena_alloc(arena, sizeof(*full));
    struct loader l = { .full = full, .err = err, .scan = { .arena = arena, .owner = owner } };

    full->arena = arena;
    full->conf.path = cw_arena_strdup(arena, name);
    l.bases = (struct cw_conf_bases){ .arena = arena, .file_dir = directory_of(arena, name) };
    int rc = cw_conf_scan_text(&l.scan, name, text, len, err);
    if (rc == 0)
        rc = read_values(&l, name, text, len);
    if (rc == 0)
        rc = fill_all(&l);
    if (l.cfg != NULL)
        cfg_free(l.cfg);
    cw_conf_scan_fini(&l.scan);
    if (rc < 0) {
        cw_arena_destroy(arena);
        return rc;
    }
    *ret = &full->conf;
    return 0;
}

int cw_conf_load_text(const char *name, const char *text, struct cw_conf **ret,
                      struct cw_error *err)
{
    return load(name, 0, text, strlen(text), ret, err);
}

int cw_conf_load(const char *path, struct cw_conf **ret, struct cw_error *err)
{
    cw_autobuf struct cw_buf text = { 0 };
    struct cw_error why = { 0 };
    uid_t owner = 0;
    int rc = cw_conf_scan_read(path, NULL, &text, &owner, &why);

    if (rc < 0)
        return cw_fail(err, rc, "configuration: %s", why.text);
    return load(path, owner, cw_buf_str(&text), text.len, ret, err);
}

void cw_conf_destroy(struct cw_conf *c)
{
    if (c != NULL)
        cw_arena_destroy(((struct cw_conf_full *)c)->arena);
}

const struct cw_conf_partition *cw_conf_partition_find(const struct cw_conf *c, const char *name)
{
    for (size_t i = 0; i < c->n_partitions; i++) {
        const struct cw_conf_partition *p = &c->partitions[i];
        if (name == NULL ? p->is_default : strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}

const struct cw_conf_plugin *cw_conf_plugin_find(const struct cw_conf *c, const char *family,
                                                 const char *name)
{
    for (size_t i = 0; i < c->n_plugins; i++) {
        const struct cw_conf_plugin *p = &c->plugins[i];
        if (strcmp(p->family, family) == 0 && strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}
