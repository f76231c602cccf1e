/* The repeatable options --env, --label and --volume: checked when given, merged by key, put into
 * the request at the end. Test: request_test.c. */
#include <string.h>

#include "spec/fieldrule.h"
#include "spec/optiontable.h"

int cw_opt_env(struct cw_request *r, const struct cw_option *o, const char *value,
               struct cw_error *err)
{
    (void)r, (void)o;
    return cw_field_variable(value, err);
}

int cw_opt_label(struct cw_request *r, const struct cw_option *o, const char *value,
                 struct cw_error *err)
{
    (void)r, (void)o;
    return cw_field_label(value, err);
}

/* "SRC:DST[:ro|:rw]" */
static int parse_volume(struct cw_arena *a, const char *value, Cw__VolumeUse **ret,
                        struct cw_error *err)
{
    const char *first = strchr(value, ':');
    if (first == NULL || first == value)
        return cw_fail(err, -EINVAL, "'%s' is not SRC:DST or SRC:DST:ro", value);
    const char *second = strchr(first + 1, ':');
    const char *mode = second != NULL ? second + 1 : "rw";
    if (strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0)
        return cw_fail(err, -EINVAL, "'%s' ends neither in :ro nor in :rw", value);
    Cw__VolumeUse *v = cw_arena_alloc(a, sizeof *v);
    cw__volume_use__init(v);
    v->source = cw_arena_printf(a, "%.*s", (int)(first - value), value);
    v->target = cw_arena_printf(a, "%.*s", (int)strcspn(first + 1, ":"), first + 1);
    if (strcmp(mode, "ro") == 0) {
        v->has_read_only = 1;
        v->read_only = 1;
    }
    int rc = v->source[0] == '/' ? cw_field_target(v->source, err) : cw_field_word(v->source, err);
    if (rc == 0)
        rc = cw_field_target(v->target, err);
    if (rc == 0)
        *ret = v;
    return rc;
}

int cw_opt_volume(struct cw_request *r, const struct cw_option *o, const char *value,
                  struct cw_error *err)
{
    (void)o;
    Cw__VolumeUse *v;
    return parse_volume(r->arena, value, &v, err);
}

const char *cw_option_key(const struct cw_option *o, struct cw_arena *a, const char *value)
{
    const char *colon;
    if (o->apply == cw_opt_env || o->apply == cw_opt_label)
        return cw_arena_printf(a, "%.*s", (int)strcspn(value, "="), value);
    if (o->apply == cw_opt_volume && (colon = strchr(value, ':')) != NULL)
        return cw_arena_printf(a, "%.*s", (int)strcspn(colon + 1, ":"), colon + 1);
    return "";
}

static size_t count(const struct cw_request *r, cw_option_fn *apply)
{
    size_t n = 0;
    for (const struct cw_request_item *i = r->items; i != NULL; i = i->next)
        n += i->option->apply == apply;
    return n;
}

static Cw__KeyValue *label(struct cw_arena *a, const struct cw_request_item *i)
{
    Cw__KeyValue *kv = cw_arena_alloc(a, sizeof *kv);
    cw__key_value__init(kv);
    kv->key = cw_arena_strdup(a, i->key);
    kv->value = cw_arena_strdup(a, i->value + strlen(i->key) + 1);
    return kv;
}

void cw_option_fold_lists(struct cw_request *r)
{
    Cw__JobSpec *s = r->spec;
    s->labels = cw_arena_alloc(r->arena, (count(r, cw_opt_label) + 1) * sizeof *s->labels);
    s->settings->volumes =
        cw_arena_alloc(r->arena, (count(r, cw_opt_volume) + 1) * sizeof *s->settings->volumes);
    for (const struct cw_request_item *i = r->items; i != NULL; i = i->next) {
        Cw__VolumeUse *v;
        if (i->option->apply == cw_opt_label)
            s->labels[s->n_labels++] = label(r->arena, i);
        else if (i->option->apply == cw_opt_volume &&
                 parse_volume(r->arena, i->value, &v, NULL) == 0)
            s->settings->volumes[s->settings->n_volumes++] = v;
        else if (i->option->apply == cw_opt_env)
            cw_strv_add(&r->env_set, i->value);
    }
}
