/* The environment that a job is submitted with: the submitter's by the --export rule, then --env.
 * What describes a surrounding job (CRUN_*, SLURM_*, SBATCH_*) is never inherited: a job submitted
 * from inside a job would silently take over its parent's shape. CRUN_CONF names the instance and
 * stays. Test: request_test.c. */
#include <string.h>

#include "base/table.h"
#include "spec/fieldrule.h"
#include "spec/optiontable.h"

static bool is_job_variable(const char *s)
{
    if (strncmp(s, "CRUN_CONF", 9) == 0 && (s[9] == '=' || s[9] == '\0'))
        return false;
    return strncmp(s, "CRUN_", 5) == 0 || strncmp(s, "SLURM_", 6) == 0 ||
           strncmp(s, "SLURMD_", 7) == 0 || strncmp(s, "SBATCH_", 7) == 0;
}

/* Takes the next item of "A,B='x,y',C" off *p into item: commas inside quotes stay, quotes go.
 * Returns false at the end. */
static bool next_item(const char **p, struct cw_buf *item)
{
    char quote = 0;
    cw_buf_clear(item);
    if (**p == '\0')
        return false;
    for (; **p != '\0' && (quote != 0 || **p != ','); (*p)++) {
        if (quote == 0 && (**p == '\'' || **p == '"'))
            quote = **p;
        else if (**p == quote)
            quote = 0;
        else
            cw_buf_add(item, *p, 1);
    }
    if (**p == ',')
        (*p)++;
    return true;
}

int cw_export_check(const char *rule, struct cw_error *err)
{
    cw_autobuf struct cw_buf item = {0};
    if (rule[0] == '\0')
        return cw_fail(err, -EINVAL, "is empty: ALL, NONE or a list is expected");
    for (const char *p = rule; next_item(&p, &item);) {
        cw_autofree char *pair = cw_xasprintf("%s%s", cw_buf_str(&item),
                                              strchr(cw_buf_str(&item), '=') != NULL ? "" : "=");
        int rc = cw_field_variable(pair, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Entries by name; a later one replaces an earlier one in place. */
struct envset {
    struct cw_strv list;
    struct cw_strtable *by_name; /* name -> index + 1 */
    struct cw_arena *arena;
};

static void put(struct envset *e, const char *pair)
{
    const char *name = cw_arena_printf(e->arena, "%.*s", (int)strcspn(pair, "="), pair);
    uintptr_t at = (uintptr_t)cw_strtable_find(e->by_name, name);
    if (at != 0) {
        free(e->list.v[at - 1]);
        e->list.v[at - 1] = cw_xstrdup(pair);
        return;
    }
    cw_strv_add(&e->list, pair);
    cw_strtable_set(e->by_name, name, (void *)(uintptr_t)e->list.n);
}

static const char *get(char *const *envp, const char *name)
{
    size_t n = strlen(name);
    for (; envp != NULL && *envp != NULL; envp++)
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
            return *envp;
    return NULL;
}

static void put_all(struct envset *e, char *const *envp)
{
    for (; envp != NULL && *envp != NULL; envp++)
        if (!is_job_variable(*envp) && strchr(*envp, '=') != NULL && (*envp)[0] != '=')
            put(e, *envp);
}

/* One name or pair of a list. A job variable that is named is left out with a notice. */
static void put_named(struct cw_request *r, struct envset *e, const char *item, char *const *envp)
{
    if (is_job_variable(item)) {
        cw_request_warn(r, "option --export: %.*s belongs to the surrounding job and is left out",
                        (int)strcspn(item, "="), item);
        return;
    }
    const char *pair = strchr(item, '=') != NULL ? item : get(envp, item);
    if (pair != NULL)
        put(e, pair);
}

static void put_rule(struct cw_request *r, struct envset *e, char *const *envp)
{
    cw_autobuf struct cw_buf item = {0};
    const char *p = r->export_rule != NULL ? r->export_rule : "ALL";
    while (next_item(&p, &item)) {
        const char *s = cw_buf_str(&item);
        if (strcmp(s, "ALL") == 0)
            put_all(e, envp);
        else if (strcmp(s, "NONE") != 0 && strcmp(s, "NIL") != 0)
            put_named(r, e, s, envp);
    }
    const char *conf = get(envp, "CRUN_CONF"); /* the instance to talk to, whatever the rule */
    if (conf != NULL)
        put(e, conf);
}

int cw_request_fold_env(struct cw_request *r, char *const *envp, const char *cwd,
                        struct cw_error *err)
{
    struct envset e = {.by_name = cw_strtable_create(), .arena = r->arena};
    Cw__Payload *p = r->payload;
    (void)err;
    put_rule(r, &e, envp);
    for (size_t i = 0; i < r->env_set.n; i++)
        put(&e, r->env_set.v[i]);
    /* Where the submit happened: the spec keeps only the directory to run in. */
    if (strcmp(cwd, r->spec->workdir) != 0)
        put(&e, cw_arena_printf(r->arena, "CRUN_SUBMIT_DIR=%s", cwd));
    p->env = cw_arena_alloc(r->arena, (e.list.n + 1) * sizeof *p->env);
    for (size_t i = 0; i < e.list.n; i++)
        p->env[i] = cw_arena_strdup(r->arena, e.list.v[i]);
    p->n_env = e.list.n;
    cw_strtable_destroy(e.by_name);
    cw_strv_fini(&e.list);
    return 0;
}
