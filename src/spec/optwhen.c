/* Options that say when a job may run, how often it is tried, and whom it waits for. Test:
 * options_test.c. */
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "spec/datetime.h"
#include "spec/fieldrule.h"
#include "spec/optiontable.h"
#include "spec/retryrule.h"
#include "spec/selector.h"

#define UNUSED(x) (void)(x)

int cw_opt_begin(struct cw_request *r, const struct cw_option *o, const char *value,
                 struct cw_error *err)
{
    UNUSED(o);
    int64_t t;
    int rc = cw_datetime_parse(value, cw_clock_real_ns(), &t, err);
    if (rc < 0)
        return rc;
    r->spec->has_begin_ns = true;
    r->spec->begin_ns = t;
    return 0;
}

int cw_opt_deadline(struct cw_request *r, const struct cw_option *o, const char *value,
                    struct cw_error *err)
{
    UNUSED(o);
    int64_t t, now = cw_clock_real_ns();
    int rc = cw_datetime_parse(value, now, &t, err);
    if (rc == 0 && t <= now)
        rc = cw_fail(err, -EINVAL, "'%s' has passed", value);
    if (rc < 0)
        return rc;
    r->spec->has_deadline_ns = true;
    r->spec->deadline_ns = t;
    return 0;
}

int cw_opt_retries(struct cw_request *r, const struct cw_option *o, const char *value,
                   struct cw_error *err)
{
    UNUSED(o);
    uint64_t n;
    int rc = cw_field_count(value, 0, CW_FIELD_MAX_RETRIES, &n, err);
    if (rc < 0)
        return rc;
    r->spec->has_retries = true;
    r->spec->retries = (uint32_t)n;
    return 0;
}

int cw_opt_retry_on(struct cw_request *r, const struct cw_option *o, const char *value,
                    struct cw_error *err)
{
    UNUSED(o);
    int rc = cw_retryrule_check(value, err);
    if (rc == 0)
        r->spec->retry_on = cw_arena_strdup(r->arena, value);
    return rc;
}

int cw_opt_retry_delay(struct cw_request *r, const struct cw_option *o, const char *value,
                       struct cw_error *err)
{
    UNUSED(o);
    uint64_t s;
    int rc = cw_duration_parse(value, &s, err);
    if (rc == 0 && s > CW_FIELD_MAX_RETRY_DELAY_S)
        rc = cw_fail(err, -EINVAL, "'%s' is longer than an hour", value);
    if (rc < 0)
        return rc;
    r->spec->has_retry_delay_s = true;
    r->spec->retry_delay_s = (uint32_t)s;
    return 0;
}

int cw_opt_dependency(struct cw_request *r, const struct cw_option *o, const char *value,
                      struct cw_error *err)
{
    UNUSED(o);
    size_t n;
    bool any;
    Cw__Dependency **list;
    int rc = cw_dependency_parse(value, r->arena, &n, &list, &any, err);
    if (rc < 0)
        return rc;
    r->spec->n_dependencies = n;
    r->spec->dependencies = list;
    r->spec->dependency_rule = any ? cw_arena_strdup(r->arena, "any") : NULL;
    return 0;
}

/* yes: end such a job (the default); no: let it wait. */
int cw_opt_invalid_dep(struct cw_request *r, const struct cw_option *o, const char *value,
                       struct cw_error *err)
{
    UNUSED(o);
    bool yes = strcasecmp(value, "yes") == 0 || strcasecmp(value, "y") == 0;
    if (!yes && strcasecmp(value, "no") != 0 && strcasecmp(value, "n") != 0)
        return cw_fail(err, -EINVAL, "'%s' is neither yes nor no", value);
    r->spec->has_keep_on_invalid_dep = !yes;
    r->spec->keep_on_invalid_dep = !yes;
    return 0;
}

int cw_opt_keep_invalid_dep(struct cw_request *r, const struct cw_option *o, const char *value,
                            struct cw_error *err)
{
    UNUSED(value);
    return cw_opt_invalid_dep(r, o, "no", err);
}
