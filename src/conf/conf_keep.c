/* What of a configuration that is read again cannot change in a running process. Values are compared
 * as text, so that equal settings written in two ways do not count. Test:
 * testsuite/t2700-admin.t. */
#include "config.h"

#include <string.h>

#include "conf/conf.h"
#include "conf/conf_full.h"
#include "conf/conf_schema.h"
#include "conf/conf_value.h"

static bool is_listed(const char *const *list, const char *name)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

static bool same_text(const struct cw_conf_row *row, const void *a, const void *b)
{
    cw_autobuf struct cw_buf x = {0}, y = {0};
    cw_conf_value_format(row, a, &x);
    cw_conf_value_format(row, b, &y);
    return strcmp(cw_buf_str(&x), cw_buf_str(&y)) == 0;
}

static void add_name(struct cw_buf *kept, const char *name)
{
    cw_buf_addf(kept, "%s%s", kept->len == 0 ? "" : ", ", name);
}

static void copy_row(struct cw_conf *to, const struct cw_conf *from, const struct cw_conf_row *row)
{
    void *dst = (char *)to + row->offset;
    const void *src = (const char *)from + row->offset;
    switch (row->kind) {
    case CW_CONF_BOOL: memcpy(dst, src, sizeof(bool)); break;
    case CW_CONF_COUNT32:
    case CW_CONF_SECONDS:
    case CW_CONF_MS: memcpy(dst, src, sizeof(uint32_t)); break;
    case CW_CONF_COUNT64:
    case CW_CONF_SECONDS64:
    case CW_CONF_JOBTIME:
    case CW_CONF_SIZE: memcpy(dst, src, sizeof(uint64_t)); break;
    default: memcpy(dst, src, sizeof(const char *)); break;
    }
}

static bool same_option(const struct cw_conf_option *a, const struct cw_conf_option *b)
{
    return strcmp(a->key, b->key) == 0 && strcmp(a->value, b->value) == 0;
}

static bool same_plugin(const struct cw_conf_plugin *a, const struct cw_conf_plugin *b)
{
    const struct cw_conf_section *s = cw_conf_schema_sub(&cw_conf_schema_root, "plugin");
    bool same = strcmp(a->family, b->family) == 0 && strcmp(a->name, b->name) == 0 &&
                a->n_options == b->n_options;
    for (size_t i = 0; same && i < s->n_rows; i++)
        same = same_text(&s->rows[i], a, b);
    for (size_t i = 0; same && i < a->n_options; i++)
        same = same_option(&a->options[i], &b->options[i]);
    return same;
}

static bool same_plugins(const struct cw_conf *a, const struct cw_conf *b)
{
    if (a->n_plugins != b->n_plugins)
        return false;
    for (size_t i = 0; i < a->n_plugins; i++)
        if (!same_plugin(&a->plugins[i], &b->plugins[i]))
            return false;
    return true;
}

void cw_conf_keep(struct cw_conf *next, const struct cw_conf *base, const char *const *live,
                  struct cw_buf *kept)
{
    struct cw_conf_full *to = (struct cw_conf_full *)next;
    const struct cw_conf_full *from = (const struct cw_conf_full *)base;
    const struct cw_conf_section *root = &cw_conf_schema_root;
    for (size_t i = 0; i < root->n_rows; i++) {
        const struct cw_conf_row *row = &root->rows[i];
        if (is_listed(live, row->name) || same_text(row, next, base))
            continue;
        copy_row(next, base, row);
        to->root_places[i] = from->root_places[i];
        add_name(kept, row->name);
    }
    if (same_plugins(next, base))
        return;
    next->plugins = base->plugins;
    next->n_plugins = base->n_plugins;
    to->plugin_places = from->plugin_places;
    to->plugin_files = from->plugin_files;
    add_name(kept, "plugin sections");
}
