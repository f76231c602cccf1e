/* What each option does with its value: parse, check, set one field of the spec or one wish. No
 * place and no option name in the messages: request.c puts them in front. List options are only
 * checked here and put into the spec at the end, when all sources are merged. Test: options_test.c.
 */
#include <string.h>
#include <strings.h>

#include "base/idset.h"
#include "base/quantity.h"
#include "spec/check.h"
#include "spec/fieldrule.h"
#include "spec/optiontable.h"
#include "spec/outpath.h"
#include "spec/selector.h"
#include "spec/sigspec.h"

#define UNUSED(x) (void)(x)

static void set_text(void *base, const struct cw_option *o, struct cw_arena *a, const char *value)
{
    char **field = (char **)(void *)((char *)base + o->offset);
    *field = cw_arena_strdup(a, value);
}

/* ---- plain fields of the spec ---- */
int cw_opt_name(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    int rc = cw_field_name(value, err);
    if (rc == 0)
        set_text(r->spec, o, r->arena, value);
    return rc;
}

int cw_opt_word(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    int rc = cw_field_word(value, err);
    if (rc == 0)
        set_text(r->spec, o, r->arena, value);
    return rc;
}

int cw_opt_note(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    int rc = cw_field_note(value, err);
    if (rc == 0)
        set_text(r->spec, o, r->arena, value);
    return rc;
}

int cw_opt_path(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    int rc = cw_field_path(value, err);
    if (rc == 0)
        set_text(r->spec, o, r->arena, value);
    return rc;
}

int cw_opt_outpath(struct cw_request *r, const struct cw_option *o, const char *value,
                   struct cw_error *err)
{
    int rc = cw_outpath_check(value, err);
    if (rc == 0)
        set_text(r->spec, o, r->arena, value);
    return rc;
}

int cw_opt_hold(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    UNUSED(o), UNUSED(value), UNUSED(err);
    r->spec->has_hold = 1;
    r->spec->hold = 1;
    return 0;
}

int cw_opt_requeue(struct cw_request *r, const struct cw_option *o, const char *value,
                   struct cw_error *err)
{
    UNUSED(o), UNUSED(value), UNUSED(err);
    r->spec->has_no_requeue = 0;
    r->spec->no_requeue = 0;
    return 0;
}

int cw_opt_no_requeue(struct cw_request *r, const struct cw_option *o, const char *value,
                      struct cw_error *err)
{
    UNUSED(o), UNUSED(value), UNUSED(err);
    r->spec->has_no_requeue = 1;
    r->spec->no_requeue = 1;
    return 0;
}

int cw_opt_open_mode(struct cw_request *r, const struct cw_option *o, const char *value,
                     struct cw_error *err)
{
    UNUSED(o);
    bool append = strcmp(value, "append") == 0;
    if (!append && strcmp(value, "truncate") != 0)
        return cw_fail(err, -EINVAL, "'%s' is neither append nor truncate", value);
    r->spec->has_open_append = 1;
    r->spec->open_append = append;
    return 0;
}

/* ---- numbers ---- */
int cw_opt_ntasks(struct cw_request *r, const struct cw_option *o, const char *value,
                  struct cw_error *err)
{
    UNUSED(o);
    uint64_t n;
    int rc = cw_field_count(value, 1, CW_FIELD_MAX_TASKS, &n, err);
    if (rc < 0)
        return rc;
    r->spec->has_ntasks = 1;
    r->spec->ntasks = (uint32_t)n;
    return 0;
}

int cw_opt_cpus(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    UNUSED(o);
    uint64_t n;
    int rc = cw_field_count(value, 1, CW_FIELD_MAX_CPUS, &n, err);
    if (rc < 0)
        return rc;
    r->spec->settings->has_cpus_per_task = 1;
    r->spec->settings->cpus_per_task = (uint32_t)n;
    return 0;
}

int cw_opt_time(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    UNUSED(o);
    uint64_t s;
    int rc = cw_duration_parse(value, &s, err);
    if (rc < 0)
        return rc;
    r->spec->has_time_limit_s = 1;
    r->spec->time_limit_s = s;
    return 0;
}

int cw_opt_signal(struct cw_request *r, const struct cw_option *o, const char *value,
                  struct cw_error *err)
{
    UNUSED(o);
    struct cw_sigspec s;
    int rc = cw_sigspec_parse(value, &s, err);
    if (rc < 0)
        return rc;
    r->spec->has_signal = r->spec->has_signal_before_s = r->spec->has_signal_leader = 1;
    r->spec->signal = s.signal;
    r->spec->signal_before_s = s.before_s;
    r->spec->signal_leader = s.leader;
    return 0;
}

int cw_opt_kill_grace(struct cw_request *r, const struct cw_option *o, const char *value,
                      struct cw_error *err)
{
    UNUSED(o);
    uint64_t s;
    int rc = cw_field_count(value, 0, CW_FIELD_MAX_GRACE_S, &s, err);
    if (rc < 0)
        return rc;
    r->spec->has_kill_grace_s = 1;
    r->spec->kill_grace_s = (uint32_t)s;
    return 0;
}

/* ---- arrays, dependencies, isolation ---- */
int cw_opt_array(struct cw_request *r, const struct cw_option *o, const char *value,
                 struct cw_error *err)
{
    UNUSED(o);
    const char *percent = strchr(value, '%');
    size_t len = percent != NULL ? (size_t)(percent - value) : strlen(value);
    struct cw_idset set = {0};
    cw_autobuf struct cw_buf text = {0};
    uint64_t throttle = 0;
    if (percent != NULL) {
        int rc = cw_field_count(percent + 1, 1, CW_CHECK_MAX_ARRAY_INDEX, &throttle, err);
        if (rc < 0)
            return cw_wrap(err, rc, "elements at once");
    }
    int rc = cw_idset_parse(value, len, CW_CHECK_MAX_ARRAY_INDEX, &set, err);
    if (rc < 0)
        return rc;
    if (cw_idset_empty(&set)) {
        cw_idset_fini(&set);
        return cw_fail(err, -EINVAL, "'%s' has no index", value);
    }
    cw_idset_format(&set, &text);
    cw_idset_fini(&set);
    Cw__ArraySpec *array = cw_arena_alloc(r->arena, sizeof *array);
    cw__array_spec__init(array);
    array->indices = cw_arena_strdup(r->arena, cw_buf_str(&text));
    array->has_throttle = percent != NULL;
    array->throttle = (uint32_t)throttle;
    r->spec->array = array;
    return 0;
}

int cw_opt_isolation(struct cw_request *r, const struct cw_option *o, const char *value,
                     struct cw_error *err)
{
    UNUSED(o);
    int rc = cw_field_word(value, err);
    if (rc == 0)
        r->spec->settings->isolation = cw_arena_strdup(r->arena, value);
    return rc;
}

/* ---- wishes of the command ---- */
int cw_opt_wish(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    UNUSED(value), UNUSED(err);
    *(bool *)((char *)r + o->offset) = true;
    return 0;
}

int cw_opt_text(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    UNUSED(err);
    set_text(r, o, r->arena, value);
    return 0;
}

int cw_opt_shell(struct cw_request *r, const struct cw_option *o, const char *value,
                 struct cw_error *err)
{
    int rc = cw_field_path(value, err);
    if (rc == 0 && value[0] != '/')
        rc = cw_fail(err, -EINVAL, "'%s' is not an absolute path", value);
    if (rc == 0)
        set_text(r, o, r->arena, value);
    return rc;
}

int cw_opt_prefix(struct cw_request *r, const struct cw_option *o, const char *value,
                  struct cw_error *err)
{
    size_t n = strlen(value);
    if (n < 2 || n > 32 || value[0] != '#' || strpbrk(value, " \t\r\n") != NULL)
        return cw_fail(err, -EINVAL, "'%s' does not begin with # or holds a blank", value);
    set_text(r, o, r->arena, value);
    return 0;
}

int cw_opt_export(struct cw_request *r, const struct cw_option *o, const char *value,
                  struct cw_error *err)
{
    int rc = cw_export_check(value, err);
    if (rc == 0)
        set_text(r, o, r->arena, value);
    return rc;
}
