/* A submit request being put together from its sources (contract: options.h). Owns precedence,
 * origins and completion; the values themselves are optvalue.c's, reading words optwords.c's. Test:
 * request_test.c. */
#include "spec/options.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "spec/check.h"
#include "spec/optiontable.h"

#define MAX_WARNINGS 100
#define MAX_ITEMS 4096

void cw_request_init(struct cw_request *r, struct cw_arena *a)
{
    memset(r, 0, sizeof *r);
    r->arena = a;
    r->spec = cw_arena_alloc(a, sizeof *r->spec);
    cw__job_spec__init(r->spec);
    r->spec->settings = cw_arena_alloc(a, sizeof *r->spec->settings);
    cw__settings__init(r->spec->settings);
    r->payload = cw_arena_alloc(a, sizeof *r->payload);
    cw__payload__init(r->payload);
    r->items_end = &r->items;
}

void cw_request_fini(struct cw_request *r)
{
    cw_strv_fini(&r->env_set);
    cw_strv_fini(&r->warnings);
    cw_strv_fini(&r->origins);
}

/* The same sentence twice is one warning. */
void cw_request_warn(struct cw_request *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cw_autofree char *text = cw_xvasprintf(fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < r->warnings.n; i++)
        if (strcmp(r->warnings.v[i], text) == 0)
            return;
    if (r->warnings.n < MAX_WARNINGS)
        cw_strv_add(&r->warnings, text);
}

static struct cw_request_item *find_item(struct cw_request *r, const char *slot, const char *key)
{
    for (struct cw_request_item *i = r->items; i != NULL; i = i->next)
        if (strcmp(i->option->slot, slot) == 0 && strcmp(i->key, key) == 0)
            return i;
    return NULL;
}

static int remember(struct cw_request *r, struct cw_request_item *old,
                    const struct cw_request_item *given, struct cw_error *err)
{
    if (old != NULL) {
        struct cw_request_item *next = old->next;
        *old = *given;
        old->next = next;
        return 0;
    }
    if (r->n_items >= MAX_ITEMS)
        return cw_fail(err, -E2BIG, "more than %d options", MAX_ITEMS);
    struct cw_request_item *i = cw_arena_alloc(r->arena, sizeof *i);
    *i = *given;
    *r->items_end = i;
    r->items_end = &i->next;
    r->n_items++;
    return 0;
}

/* A value that a stronger source has replaced already still has to be a good one. */
static int check_only(struct cw_request *r, const struct cw_option *o, const char *value,
                      struct cw_error *err)
{
    struct cw_request shadow;
    cw_request_init(&shadow, r->arena);
    int rc = o->apply(&shadow, o, value, err);
    cw_request_fini(&shadow);
    return rc;
}

static int not_carried_out(struct cw_request *r, const struct cw_option *o, const char *where,
                           struct cw_error *err)
{
    if (o->status == CW_OPTION_REFUSED)
        return cw_fail(err, -EINVAL, "not carried out: %s", o->help);
    cw_request_warn(r, "%s%soption --%s is ignored: %s", where != NULL ? where : "",
                    where != NULL ? ": " : "", o->name, o->help);
    return 0;
}

/* What decides how the job file is read, or that there is none, cannot stand in it. */
static bool is_for_command_line(const struct cw_option *o)
{
    static const char *const slots[] = {"wrap", "shell", "directive-prefix", "help", "version"};
    for (size_t i = 0; i < CW_ARRAY_LEN(slots); i++)
        if (strcmp(o->slot, slots[i]) == 0)
            return true;
    return false;
}

static int set_option(struct cw_request *r, const struct cw_option *o, const char *value,
                      enum cw_origin origin, const char *where, struct cw_error *err)
{
    if (o->argument == NULL && value != NULL)
        return cw_fail(err, -EINVAL, "takes no value, '%s' was given", value);
    if (value == NULL && !cw_option_may_lack_value(o))
        return cw_fail(err, -EINVAL, "needs a value: %s", o->argument);
    if (origin != CW_ORIGIN_COMMAND && is_for_command_line(o))
        return cw_fail(err, -EINVAL, "is for the command line only");
    if (o->apply == NULL)
        return not_carried_out(r, o, where, err);
    const char *key = cw_option_key(o, r->arena, value != NULL ? value : "");
    struct cw_request_item *old = find_item(r, o->slot, key);
    if (old != NULL && old->origin > origin)
        return check_only(r, o, value, err);
    if (old != NULL && old->origin == origin && old->option != o && strcmp(o->slot, "mem") == 0)
        return cw_fail(err, -EINVAL, "excludes --%s, which was given too", old->option->name);
    int rc = o->apply(r, o, value, err);
    if (rc < 0)
        return rc;
    struct cw_request_item given = {.option = o, .key = key, .origin = origin};
    given.value = value != NULL ? cw_arena_strdup(r->arena, value) : NULL;
    given.where = where != NULL ? cw_arena_strdup(r->arena, where) : NULL;
    return remember(r, old, &given, err);
}

static int unknown(const char *name, struct cw_error *err)
{
    const char *close = cw_option_suggest(name);
    const char *dashes = name[0] != '\0' && name[1] == '\0' ? "-" : "--";
    if (close != NULL)
        return cw_fail(err, -EINVAL, "unknown option %s%s (--%s?)", dashes, name, close);
    return cw_fail(err, -EINVAL, "unknown option %s%s", dashes, name);
}

int cw_request_set(struct cw_request *r, const char *name, const char *value, enum cw_origin origin,
                   const char *where, struct cw_error *err)
{
    int rc;
    const struct cw_option *o = cw_option_find(name);
    if (o == NULL) {
        rc = unknown(name, err);
    } else {
        rc = set_option(r, o, value, origin, where, err);
        if (rc < 0)
            cw_wrap(err, rc, "option --%s", o->name);
    }
    if (rc < 0 && where != NULL)
        cw_wrap(err, rc, "%s", where);
    return rc;
}

void cw_request_set_argv(struct cw_request *r, int argc, char *const *argv)
{
    size_t n = argc > 0 ? (size_t)argc : 0;
    r->payload->argv = cw_arena_alloc(r->arena, (n + 1) * sizeof *r->payload->argv);
    for (size_t i = 0; i < n; i++)
        r->payload->argv[i] = cw_arena_strdup(r->arena, argv[i]);
    r->payload->n_argv = n;
}

/* ---- completion ---- */
static int fold_script(struct cw_request *r, struct cw_error *err)
{
    Cw__Payload *p = r->payload;
    if (r->wrap != NULL && (p->has_script || p->n_argv > 0))
        return cw_fail(err, -EINVAL, "option --wrap: excludes a job file and a command");
    if (r->wrap != NULL) {
        char *text = cw_arena_printf(r->arena, "#!/bin/sh\n%s\n", r->wrap);
        p->has_script = 1;
        p->script.data = (uint8_t *)text;
        p->script.len = strlen(text);
    }
    if (!p->has_script && p->n_argv == 0)
        return cw_fail(err, -EINVAL, "nothing to run: give a job file, -- COMMAND or --wrap=TEXT");
    return 0;
}

static const char *basename_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static void fold_name(struct cw_request *r)
{
    const char *from = "stdin";
    if (r->spec->name != NULL)
        return;
    if (r->wrap != NULL)
        from = "wrap";
    else if (!r->payload->has_script)
        from = basename_of(r->payload->argv[0]);
    else if (r->source != NULL && strcmp(r->source, "-") != 0)
        from = basename_of(r->source);
    /* A file may be called anything; a job may not. */
    char *name = cw_arena_printf(r->arena, "%.200s", from[0] != '\0' ? from : "job");
    for (char *p = name; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    r->spec->name = name;
}

static void fold_workdir(struct cw_request *r, const char *cwd)
{
    if (r->spec->workdir == NULL)
        r->spec->workdir = cw_arena_strdup(r->arena, cwd);
    else if (r->spec->workdir[0] != '/')
        r->spec->workdir =
            cw_arena_printf(r->arena, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, r->spec->workdir);
}

/* The 4 of "job.sh:4:9"; the file's name may have colons of its own. */
static int line_of(const char *where)
{
    const char *end = strrchr(where, ':');
    while (end != NULL && end > where && end[-1] != ':')
        end--;
    return end != NULL ? (int)strtol(end, NULL, 10) : 0;
}

/* Times and sizes as they were understood: "-t 30" is often taken for seconds. */
static const char *shown_value(const struct cw_request_item *i, char *buf, size_t cap)
{
    uint64_t v;
    if (strcmp(i->option->slot, "time") == 0 && cw_duration_parse(i->value, &v, NULL) == 0)
        return cw_duration_format(v, buf, cap);
    if (strcmp(i->option->slot, "mem") == 0 && cw_size_parse(i->value, 1024 * 1024, &v, NULL) == 0)
        return cw_size_format(v, buf, cap);
    return i->value;
}

static void origin_line(struct cw_request *r, const struct cw_request_item *i)
{
    const char *where = i->where != NULL ? i->where : "command line";
    char buf[32];
    cw_autobuf struct cw_buf b = {0};
    cw_buf_add_str(&b, i->option->name);
    if (i->value != NULL)
        cw_buf_addf(&b, "=%s", shown_value(i, buf, sizeof buf));
    if (i->origin == CW_ORIGIN_DIRECTIVE)
        cw_buf_addf(&b, " (line %d)", line_of(where));
    else
        cw_buf_addf(&b, " (%s)", where);
    cw_strv_add(&r->origins, cw_buf_str(&b));
}

int cw_request_finish(struct cw_request *r, char *const *envp, const char *cwd,
                      struct cw_error *err)
{
    int rc = fold_script(r, err);
    if (rc < 0)
        return rc;
    r->spec->has_shape = 1;
    r->spec->shape = CW__SHAPE__SHAPE_BATCH;
    if (r->saw_sbatch) {
        r->spec->has_slurm_env = 1;
        r->spec->slurm_env = 1;
    }
    fold_name(r);
    fold_workdir(r, cwd);
    cw_option_fold_lists(r);
    rc = cw_request_fold_env(r, envp, cwd, err);
    if (rc < 0)
        return rc;
    for (const struct cw_request_item *i = r->items; i != NULL; i = i->next)
        origin_line(r, i);
    return cw_check_spec(r->spec, r->payload, err);
}
