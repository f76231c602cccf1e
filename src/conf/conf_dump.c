/* Every value with its origin, one a line. Test: conf_test.c. */
#include "config.h"

#include "conf/conf.h"

#include <string.h>

#include "conf/conf_full.h"
#include "conf/conf_schema.h"
#include "conf/conf_value.h"

static void add_place(struct cw_buf *out, const char *file, int line)
{
    if (file != NULL)
        cw_buf_addf(out, " (%s:%d)\n", file, line);
    else
        cw_buf_add_str(out, " (default)\n");
}

static void dump_rows(const struct cw_conf_section *s, const void *section, const char *prefix,
                      const struct cw_conf_place *places, struct cw_buf *out)
{
    for (size_t i = 0; i < s->n_rows; i++) {
        cw_buf_addf(out, "%s%s = ", prefix, s->rows[i].name);
        cw_conf_value_format(&s->rows[i], section, out);
        add_place(out, places[i].file, places[i].line);
    }
}

/* A plugin may need a password; what is shown to people must not contain it. */
static bool is_secret(const char *key)
{
    return strcasestr(key, "secret") != NULL || strcasestr(key, "password") != NULL ||
           strcasestr(key, "token") != NULL;
}

static void dump_plugin(const struct cw_conf_full *full, size_t i, struct cw_buf *out)
{
    const struct cw_conf_section *s = cw_conf_schema_sub(&cw_conf_schema_root, "plugin");
    const struct cw_conf_plugin *p = &full->conf.plugins[i];
    cw_autofree char *prefix = cw_xasprintf("plugin.%s/%s.", p->family, p->name);

    dump_rows(s, p, prefix, full->plugin_places + i * s->n_rows, out);
    for (size_t k = 0; k < p->n_options; k++) {
        const struct cw_conf_option *o = &p->options[k];
        cw_buf_addf(out, "%soptions.%s = ", prefix, o->key);
        if (is_secret(o->key))
            cw_buf_add_str(out, "(hidden)");
        else
            cw_buf_addf(out, "\"%s\"", o->value);
        add_place(out, full->plugin_files[i], o->line);
    }
}

void cw_conf_dump(const struct cw_conf *c, struct cw_buf *out)
{
    const struct cw_conf_full *full = (const struct cw_conf_full *)c;
    const struct cw_conf_section *s = cw_conf_schema_sub(&cw_conf_schema_root, "partition");

    dump_rows(&cw_conf_schema_root, c, "", full->root_places, out);
    for (size_t i = 0; i < c->n_partitions; i++) {
        cw_autofree char *prefix = cw_xasprintf("partition.%s.", c->partitions[i].name);
        dump_rows(s, &c->partitions[i], prefix, full->partition_places + i * s->n_rows, out);
    }
    for (size_t i = 0; i < c->n_plugins; i++)
        dump_plugin(full, i, out);
}
