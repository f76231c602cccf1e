/* Options as words: of a command line, of a directive, and of environment variables. Exact long
 * names only (an abbreviation would eat a job's own argument one day), and options stop at the
 * first operand. Test: request_test.c. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "spec/optiontable.h"

static int fail_at(const char *where, struct cw_error *err, const char *option)
{
    cw_fail(err, -EINVAL, "option %s: needs a value", option);
    return where != NULL ? cw_wrap(err, -EINVAL, "%s", where) : -EINVAL;
}

static bool needs_value(const struct cw_option *o)
{
    return o != NULL && !cw_option_may_lack_value(o);
}

static int long_option(struct cw_request *r, char *const *words, size_t n, size_t i,
                       enum cw_origin origin, const char *where, struct cw_error *err)
{
    const char *word = words[i] + 2;
    size_t len = strcspn(word, "=");
    cw_autofree char *name = cw_xstrndup(word, len);
    const char *value = word[len] == '=' ? word + len + 1 : NULL;
    const struct cw_option *o = name[0] != '\0' && name[1] != '\0' ? cw_option_find(name) : NULL;
    bool next = value == NULL && needs_value(o);
    if (next && i + 1 >= n)
        return fail_at(where, err, words[i]);
    if (o == NULL && name[0] != '\0' && name[1] == '\0') { /* "--t" is not -t */
        cw_fail(err, -EINVAL, "unknown option --%s (-%s?)", name, name);
        return where != NULL ? cw_wrap(err, -EINVAL, "%s", where) : -EINVAL;
    }
    int rc = cw_request_set(r, name, next ? words[i + 1] : value, origin, where, err);
    return rc < 0 ? rc : next ? 2 : 1;
}

/* "-n4", "-n 4", "-HQ", "-Hn4" */
static int short_options(struct cw_request *r, char *const *words, size_t n, size_t i,
                         enum cw_origin origin, const char *where, struct cw_error *err)
{
    for (const char *p = words[i] + 1; *p != '\0'; p++) {
        char name[2] = {*p, '\0'};
        const struct cw_option *o = cw_option_find(name);
        bool takes = o != NULL && o->argument != NULL;
        const char *value = takes && p[1] != '\0' ? p + 1 : NULL;
        bool next = value == NULL && needs_value(o);
        if (next && i + 1 >= n)
            return fail_at(where, err, words[i]);
        int rc = cw_request_set(r, name, next ? words[i + 1] : value, origin, where, err);
        if (rc < 0)
            return rc;
        if (takes)
            return next ? 2 : 1;
    }
    return 1;
}

int cw_request_word(struct cw_request *r, char *const *words, size_t n, size_t i,
                    enum cw_origin origin, const char *where, struct cw_error *err)
{
    const char *word = words[i];
    if (word[0] != '-' || word[1] == '\0' || strcmp(word, "--") == 0)
        return 0;
    if (word[1] == '-')
        return long_option(r, words, n, i, origin, where, err);
    return short_options(r, words, n, i, origin, where, err);
}

int cw_request_args(struct cw_request *r, int argc, char *const *argv, int *ret_used,
                    struct cw_error *err)
{
    size_t n = argc > 0 ? (size_t)argc : 0;
    size_t i = 1;
    while (i < n) {
        if (strcmp(argv[i], "--") == 0) {
            r->saw_dashes = true;
            i++;
            break;
        }
        int used = cw_request_word(r, argv, n, i, CW_ORIGIN_COMMAND, NULL, err);
        if (used < 0)
            return used;
        if (used == 0)
            break;
        i += (size_t)used;
    }
    *ret_used = (int)i;
    return 0;
}

/* ---- environment ---- */
static bool says_no(const char *value)
{
    return strcmp(value, "0") == 0 || strcasecmp(value, "no") == 0 ||
           strcasecmp(value, "false") == 0;
}

/* A variable cannot be without a value, so an option that takes none is switched by yes and no. */
static int set_from_variable(struct cw_request *r, const struct cw_option *o, const char *variable,
                             const char *value, struct cw_error *err)
{
    bool bare = o->argument == NULL || (value[0] == '\0' && cw_option_may_lack_value(o));
    if (o->argument == NULL && says_no(value))
        return 0;
    return cw_request_set(r, o->name, bare ? NULL : value, CW_ORIGIN_ENVIRONMENT, variable, err);
}

static int own_variable(struct cw_request *r, const char *variable, size_t len, const char *value,
                        struct cw_error *err)
{
    static const char prefix[] = "CRUN_OPT_";
    char name[64];
    size_t n = len - (sizeof prefix - 1);
    cw_autofree char *whole = cw_xstrndup(variable, len);
    const struct cw_option *o = NULL;
    if (n > 1 && n < sizeof name) {
        for (size_t i = 0; i < n; i++) {
            char c = variable[sizeof prefix - 1 + i];
            name[i] = c == '_' ? '-' : (char)tolower((unsigned char)c);
        }
        name[n] = '\0';
        o = cw_option_find(name);
    }
    if (o == NULL)
        return cw_fail(err, -EINVAL, "%s: there is no such option", whole);
    return set_from_variable(r, o, whole, value, err);
}

static bool is_sbatch_name(const struct cw_option *o, const char *name, size_t len)
{
    const char *want = o->env != NULL ? o->env : o->name;
    if (o->status == CW_OPTION_OURS || strlen(want) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((want[i] == '-' ? '_' : toupper((unsigned char)want[i])) != name[i])
            return false;
    return true;
}

/* SBATCH_ variables that name no option belong to somebody else. */
static int sbatch_variable(struct cw_request *r, const char *variable, size_t len,
                           const char *value, struct cw_error *err)
{
    cw_autofree char *whole = cw_xstrndup(variable, len);
    const struct cw_option *o;
    for (size_t i = 0; (o = cw_option_at(i)) != NULL; i++)
        if (is_sbatch_name(o, variable + strlen("SBATCH_"), len - strlen("SBATCH_")))
            return set_from_variable(r, o, whole, value, err);
    return 0;
}

int cw_request_environ(struct cw_request *r, char *const *envp, bool sbatch, struct cw_error *err)
{
    for (; envp != NULL && *envp != NULL; envp++) {
        const char *eq = strchr(*envp, '=');
        size_t len = eq != NULL ? (size_t)(eq - *envp) : 0;
        int rc = 0;
        if (strncmp(*envp, "CRUN_OPT_", 9) == 0 && len >= 9)
            rc = own_variable(r, *envp, len, eq + 1, err);
        else if (sbatch && strncmp(*envp, "SBATCH_", 7) == 0 && len > 7)
            rc = sbatch_variable(r, *envp, len, eq + 1, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}
