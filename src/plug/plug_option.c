/* Checks a site's option values against a plugin's table and keeps them in plain form, so that a
 * plugin needs no parser of its own: strtoull is enough for every number. */
#include "plug/plug_option.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/quantity.h"

struct value {
    const char *name;
    char *text;
}; /* name: the plugin's own */
struct cw_plug_options {
    struct value *v;
    size_t n;
};

static int plain_bool(const char *text, char **ret, struct cw_error *err)
{
    static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no",
                                                                                "off", "0"};

    for (size_t i = 0; i < CW_ARRAY_LEN(yes); i++)
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *ret = cw_xstrdup(strcasecmp(text, yes[i]) == 0 ? "true" : "false");
            return 0;
        }
    return cw_fail(err, -EINVAL, "'%s' is neither true nor false", text);
}

static int plain_int(const char *text, char **ret, struct cw_error *err)
{
    char *end;
    long long n;

    errno = 0;
    n = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || strchr("+ \t\n", text[0]) != NULL)
        return cw_fail(err, -EINVAL, "'%s' is not a whole number", text);
    *ret = cw_xasprintf("%lld", n);
    return 0;
}

static int plain_quantity(const char *text, enum cw_option_type type, char **ret,
                          struct cw_error *err)
{
    uint64_t n = 0;
    int r =
        type == CW_OPT_SIZE ? cw_size_parse(text, 1, &n, err) : cw_duration_parse(text, &n, err);

    if (r == 0)
        *ret = cw_xasprintf("%" PRIu64, n);
    return r;
}

static int plain(const char *text, enum cw_option_type type, char **ret, struct cw_error *err)
{
    switch (type) {
    case CW_OPT_STRING: *ret = cw_xstrdup(text); return 0;
    case CW_OPT_BOOL: return plain_bool(text, ret, err);
    case CW_OPT_INT: return plain_int(text, ret, err);
    case CW_OPT_SIZE:
    case CW_OPT_DURATION: return plain_quantity(text, type, ret, err);
    }
    return cw_fail(err, -ENOEXEC, "the plugin's table has the unknown type %d", (int)type);
}

static struct value *value_find(const struct cw_plug_options *o, const char *name)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->v[i].name, name) == 0)
            return &o->v[i];
    return NULL;
}

static int load_defaults(struct cw_plug_options *o, const struct cw_option *table,
                         struct cw_error *err)
{
    for (const struct cw_option *row = table; row->name != NULL; row++) {
        struct value *v = &o->v[o->n];
        v->name = row->name;
        if (row->default_value != NULL && plain(row->default_value, row->type, &v->text, err) < 0)
            return cw_wrap(err, -ENOEXEC, "default of option '%s'", row->name);
        o->n++;
    }
    return 0;
}

static int fail_unknown(const struct cw_option *table, const char *key, struct cw_error *err)
{
    cw_autobuf struct cw_buf names = {0};

    for (; table != NULL && table->name != NULL; table++)
        cw_buf_addf(&names, "%s%s", names.len > 0 ? ", " : "", table->name);
    return cw_fail(err, -EINVAL, "option '%s': unknown, allowed: %s", key,
                   names.len > 0 ? names.data : "none");
}

static int set_from_site(struct cw_plug_options *o, const struct cw_option *table,
                         const struct cw_conf_option *site, struct cw_error *err)
{
    struct value *v = value_find(o, site->key);
    char *text;

    if (v == NULL)
        return fail_unknown(table, site->key, err);
    if (plain(site->value, table[v - o->v].type, &text, err) < 0)
        return cw_wrap(err, -EINVAL, "option '%s'", site->key);
    free(v->text);
    v->text = text;
    return 0;
}

int cw_plug_options_create(const struct cw_option *table, const struct cw_conf_plugin *site,
                           const char *conf_path, const char *origin, struct cw_plug_options **ret,
                           struct cw_error *err)
{
    struct cw_plug_options *o = cw_xcalloc(1, sizeof(*o));
    size_t rows = 0;
    int r = 0;

    while (table != NULL && table[rows].name != NULL)
        rows++;
    o->v = cw_xcalloc(rows + 1, sizeof(*o->v));
    if (table != NULL && load_defaults(o, table, err) < 0)
        r = cw_wrap(err, -ENOEXEC, "plugin %s", origin);
    for (size_t i = 0; r == 0 && site != NULL && i < site->n_options; i++) {
        const struct cw_conf_option *opt = &site->options[i];
        if (set_from_site(o, table, opt, err) < 0)
            r = cw_wrap(err, -EINVAL, "%s:%d: plugin %s", conf_path, opt->line, origin);
    }
    if (r < 0) {
        cw_plug_options_destroy(o);
        return r;
    }
    *ret = o;
    return 0;
}

void cw_plug_options_destroy(struct cw_plug_options *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->n; i++)
        free(o->v[i].text);
    free(o->v);
    free(o);
}

const char *cw_plug_options_get(const struct cw_plug_options *o, const char *name)
{
    const struct value *v = value_find(o, name);

    return v == NULL ? NULL : v->text;
}
