/* Options that say where a job may run and how its tasks lie: nodes, node lists, constraints, tasks
 * and GPUs and memory a node. Test: options_test.c. */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/quantity.h"
#include "spec/constraint.h"
#include "spec/fieldrule.h"
#include "spec/optiontable.h"

#define UNUSED(x) (void)(x)

/* "N" or "MIN-MAX". */
int cw_opt_nodes(struct cw_request *r, const struct cw_option *o, const char *value,
                 struct cw_error *err)
{
    UNUSED(o);
    const char *dash = strchr(value, '-');
    char min[24];
    uint64_t lo, hi;
    size_t n = dash != NULL ? (size_t)(dash - value) : strlen(value);
    if (n >= sizeof(min))
        return cw_fail(err, -EINVAL, "'%.40s' is not a number of nodes", value);
    memcpy(min, value, n);
    min[n] = '\0';
    int rc = cw_field_count(min, 1, CW_FIELD_MAX_NODES, &lo, err);
    hi = lo;
    if (rc == 0 && dash != NULL)
        rc = cw_field_count(dash + 1, 1, CW_FIELD_MAX_NODES, &hi, err);
    if (rc == 0 && hi < lo)
        rc = cw_fail(err, -EINVAL, "'%s': the most is less than the least", value);
    if (rc < 0)
        return rc;
    r->spec->has_nodes_min = r->spec->has_nodes_max = true;
    r->spec->nodes_min = (uint32_t)lo;
    r->spec->nodes_max = (uint32_t)hi;
    return 0;
}

int cw_opt_ntasks_per_node(struct cw_request *r, const struct cw_option *o, const char *value,
                           struct cw_error *err)
{
    UNUSED(o);
    uint64_t n;
    int rc = cw_field_count(value, 1, CW_FIELD_MAX_TASKS, &n, err);
    if (rc < 0)
        return rc;
    r->spec->has_ntasks_per_node = true;
    r->spec->ntasks_per_node = (uint32_t)n;
    return 0;
}

int cw_opt_exclusive(struct cw_request *r, const struct cw_option *o, const char *value,
                     struct cw_error *err)
{
    UNUSED(o);
    if (value != NULL && value[0] != '\0')
        return cw_fail(err, -EINVAL,
                       "'%s': only whole nodes for one job, --exclusive without a value", value);
    r->spec->has_exclusive = true;
    r->spec->exclusive = true;
    return 0;
}

/* In its shortest form, so that equal wishes are equal texts. */
int cw_opt_hosts(struct cw_request *r, const struct cw_option *o, const char *value,
                 struct cw_error *err)
{
    struct cw_strv hosts = {0};
    cw_autobuf struct cw_buf text = {0};
    int rc = cw_hostlist_parse(value, &hosts, err);
    if (rc == 0 && hosts.n == 0)
        rc = cw_fail(err, -EINVAL, "'%s' names no host", value);
    if (rc == 0)
        cw_hostlist_format(hosts.v, hosts.n, &text);
    cw_strv_fini(&hosts);
    if (rc < 0)
        return rc;
    if (text.len > CW_FIELD_MAX_HOSTS)
        return cw_fail(err, -E2BIG, "a list of %zu bytes, at most %u are allowed", text.len,
                       CW_FIELD_MAX_HOSTS);
    char **field = (char **)(void *)((char *)r->spec + o->offset);
    *field = cw_arena_strdup(r->arena, cw_buf_str(&text));
    return 0;
}

int cw_opt_constraint(struct cw_request *r, const struct cw_option *o, const char *value,
                      struct cw_error *err)
{
    int rc = cw_constraint_check(value, err);
    char **field = (char **)(void *)((char *)r->spec + o->offset);
    if (rc == 0)
        *field = cw_arena_strdup(r->arena, value);
    return rc;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int parse_mem(const char *value, uint64_t *ret, struct cw_error *err)
{
    int rc = cw_size_parse(value, 1024 * 1024, ret, err);
    if (rc == 0 && *ret == 0)
        return cw_fail(err, -EINVAL,
                       "'%s' would mean all memory of a node: use --exclusive for that, or say how "
                       "much, as in 4G",
                       value);
    return rc;
}

/* The three ways exclude each other: the one of the strongest source counts. */
static int set_mem(Cw__Settings *t, protobuf_c_boolean *has, uint64_t *field, const char *value,
                   struct cw_error *err)
{
    uint64_t bytes;
    int rc = parse_mem(value, &bytes, err);
    if (rc < 0)
        return rc;
    t->has_mem_bytes = t->has_mem_per_cpu_bytes = t->has_mem_per_gpu_bytes = false;
    t->mem_bytes = t->mem_per_cpu_bytes = t->mem_per_gpu_bytes = 0;
    *has = true;
    *field = bytes;
    return 0;
}

int cw_opt_mem(struct cw_request *r, const struct cw_option *o, const char *value,
               struct cw_error *err)
{
    UNUSED(o);
    Cw__Settings *t = r->spec->settings;
    return set_mem(t, &t->has_mem_bytes, &t->mem_bytes, value, err);
}

int cw_opt_mem_per_cpu(struct cw_request *r, const struct cw_option *o, const char *value,
                       struct cw_error *err)
{
    UNUSED(o);
    Cw__Settings *t = r->spec->settings;
    return set_mem(t, &t->has_mem_per_cpu_bytes, &t->mem_per_cpu_bytes, value, err);
}

int cw_opt_mem_per_gpu(struct cw_request *r, const struct cw_option *o, const char *value,
                       struct cw_error *err)
{
    UNUSED(o);
    Cw__Settings *t = r->spec->settings;
    return set_mem(t, &t->has_mem_per_gpu_bytes, &t->mem_per_gpu_bytes, value, err);
}

/* ---- GPUs: "N", "TYPE", "TYPE:N" ------------------------------------------------------------- */

static int set_gpus(struct cw_request *r, protobuf_c_boolean *has, uint32_t *field,
                    const char *value, struct cw_error *err)
{
    const char *colon = strchr(value, ':');
    bool digit_first = value[0] >= '0' && value[0] <= '9';
    const char *count = colon != NULL ? colon + 1 : digit_first ? value : "1";
    char *type = NULL;
    uint64_t n;
    int rc = cw_field_count(count, 0, CW_FIELD_MAX_GPUS, &n, err);
    if (rc == 0 && (colon != NULL || !digit_first)) {
        type = cw_arena_printf(r->arena, "%.*s", (int)strcspn(value, ":"), value);
        rc = cw_field_word(type, err);
    }
    if (rc < 0)
        return rc;
    Cw__Settings *t = r->spec->settings;
    t->has_gpus = t->has_gpus_per_node = t->has_gpus_per_task = false;
    t->gpus = t->gpus_per_node = t->gpus_per_task = 0;
    t->gpu_type = type;
    *has = true;
    *field = (uint32_t)n;
    return 0;
}

int cw_opt_gpus(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    UNUSED(o);
    return set_gpus(r, &r->spec->settings->has_gpus, &r->spec->settings->gpus, value, err);
}

int cw_opt_gpus_per_node(struct cw_request *r, const struct cw_option *o, const char *value,
                         struct cw_error *err)
{
    UNUSED(o);
    Cw__Settings *t = r->spec->settings;
    return set_gpus(r, &t->has_gpus_per_node, &t->gpus_per_node, value, err);
}

int cw_opt_gpus_per_task(struct cw_request *r, const struct cw_option *o, const char *value,
                         struct cw_error *err)
{
    UNUSED(o);
    Cw__Settings *t = r->spec->settings;
    return set_gpus(r, &t->has_gpus_per_task, &t->gpus_per_task, value, err);
}

/* Of a node, as in Slurm. */
int cw_opt_gres(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    if (strcmp(value, "none") == 0 || strcmp(value, "gpu") == 0)
        return cw_opt_gpus_per_node(r, o, value[0] == 'n' ? "0" : "1", err);
    if (strchr(value, ',') != NULL || strncmp(value, "gpu:", 4) != 0)
        return cw_fail(err, -EINVAL, "'%s': only gpu:N or gpu:TYPE:N is known", value);
    return cw_opt_gpus_per_node(r, o, value + 4, err);
}

/* ---- rank and plan --------------------------------------------------------------------------- */

int cw_opt_nice(struct cw_request *r, const struct cw_option *o, const char *value,
                struct cw_error *err)
{
    UNUSED(o);
    const char *digits = value == NULL ? "100" : value[0] == '-' ? value + 1 : value;
    uint64_t n;
    int rc = cw_field_count(digits, 0, INT32_MAX, &n, err);
    if (rc < 0)
        return rc;
    r->spec->has_nice = true;
    r->spec->nice = value != NULL && value[0] == '-' ? -(int32_t)n : (int32_t)n;
    return 0;
}

int cw_opt_priority(struct cw_request *r, const struct cw_option *o, const char *value,
                    struct cw_error *err)
{
    UNUSED(o);
    uint64_t n;
    int rc = cw_field_count(value, 0, UINT32_MAX, &n, err);
    if (rc < 0)
        return rc;
    r->spec->has_priority = true;
    r->spec->priority = (int64_t)n;
    return 0;
}

int cw_opt_time_est(struct cw_request *r, const struct cw_option *o, const char *value,
                    struct cw_error *err)
{
    UNUSED(o);
    uint64_t s;
    int rc = cw_duration_parse(value, &s, err);
    if (rc == 0 && (s == 0 || s == CW_DURATION_UNLIMITED))
        rc = cw_fail(err, -EINVAL, "'%s' is no estimate: a time is expected", value);
    if (rc < 0)
        return rc;
    r->spec->has_time_est_s = true;
    r->spec->time_est_s = s;
    return 0;
}
