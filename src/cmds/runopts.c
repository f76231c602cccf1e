/* runopts.c: see runopts.h. */
#include "cmds/runopts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/quantity.h"
#include "cmds/rawtty.h"

enum own { PTY, LABEL, UNBUFFERED, EXACT, OVERLAP, BAD_EXIT, WAIT, JOBID, INPUT };

static const struct row {
    const char *name;
    char letter;
    const char *argument; /* NULL: a flag; "[=...]": may be left out */
    const char *help;
} rows[] = {
    [PTY] = {"pty", 0, NULL, "one task on a terminal of its own, this one passed through"},
    [LABEL] = {"label", 'l', NULL, "the task's number in front of each line"},
    [UNBUFFERED] = {"unbuffered", 'u', NULL, "output as it comes, lines may be cut"},
    [EXACT] = {"exact", 0, NULL, "only the cores asked for, kept from other exact steps"},
    [OVERLAP] = {"overlap", 0, NULL, "share cores with other steps (what is done anyway)"},
    [BAD_EXIT] = {"kill-on-bad-exit", 'K', "[=0|1]", "the first bad end ends all tasks"},
    [WAIT] = {"wait", 'W', "SECONDS", "so long after the first end the others are ended; 0: never"},
    [JOBID] = {"jobid", 0, "ID", "a step of this job; default: the job around us"},
    [INPUT] = {"input", 'i', "all|none|N|FILE", "who reads our standard input, or a file instead"},
};

static bool optional(const struct row *r)
{
    return r->argument != NULL && r->argument[0] == '[';
}

static int read_number(const char *name, const char *value, uint32_t *ret, struct cw_error *err)
{
    uint64_t n;
    int rc = cw_cli_number(value, 365u * 86400u, &n, NULL, err);
    if (rc < 0)
        return cw_wrap(err, rc, "option --%s", name);
    *ret = (uint32_t)n;
    return 0;
}

static int apply(struct cw_runopts *o, enum own k, const char *value, struct cw_error *err)
{
    switch (k) {
    case PTY: o->pty = true; return 0;
    case LABEL: o->label = true; return 0;
    case UNBUFFERED: o->unbuffered = true; return 0;
    case EXACT: o->exact = true; return 0;
    case OVERLAP: o->overlap = true; return 0;
    case BAD_EXIT:
        if (value != NULL && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
            return cw_fail(err, -EINVAL, "option --kill-on-bad-exit: '%s' is not 0 or 1", value);
        o->has_kill_on_bad_exit = true;
        o->kill_on_bad_exit = value == NULL || value[0] == '1';
        return 0;
    case WAIT: return read_number("wait", value, &o->wait_s, err);
    case JOBID: o->jobid = value; return 0;
    case INPUT: o->input = value; return 0;
    }
    return 0;
}

/* --label=KEY=VALUE is the job's label. */
static const struct row *find_long(const char *word, const char **ret_value)
{
    size_t n = strcspn(word, "=");
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        if (strlen(rows[i].name) != n || strncmp(rows[i].name, word, n) != 0)
            continue;
        if (word[n] == '=' && rows[i].argument == NULL)
            return NULL;
        *ret_value = word[n] == '=' ? word + n + 1 : NULL;
        return &rows[i];
    }
    return NULL;
}

static const struct row *find_letter(char c)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        if (rows[i].letter != 0 && rows[i].letter == c)
            return &rows[i];
    return NULL;
}

static int take(struct cw_runopts *o, const struct row *r, const char *value, const char *next,
                struct cw_error *err)
{
    int used = 1;
    if (r->argument != NULL && !optional(r) && value == NULL) {
        if (next == NULL)
            return cw_fail(err, -EINVAL, "option --%s needs a value: %s", r->name, r->argument);
        value = next;
        used = 2;
    }
    int rc = apply(o, (enum own)(r - rows), value, err);
    return rc < 0 ? rc : used;
}

/* -l, -lu, -W5, -W 5; letters of both tables may not share a word. 0: none of ours. */
static int letters(struct cw_runopts *o, const char *word, const char *next, struct cw_error *err)
{
    for (const char *p = word; *p != '\0'; p++) {
        const struct row *r = find_letter(*p);
        if (r == NULL)
            return p == word ? 0
                             : cw_fail(err, -EINVAL, "option -%c: give it apart from -%.*s", *p,
                                       (int)(p - word), word);
        if (r->argument != NULL) {
            const char *value = p[1] == '\0' ? NULL : p[1] == '=' ? p + 2 : p + 1;
            return take(o, r, value, next, err);
        }
        int rc = take(o, r, NULL, NULL, err);
        if (rc < 0)
            return rc;
    }
    return 1;
}

static int one(struct cw_runopts *o, int argc, char *const *argv, int i, struct cw_error *err)
{
    const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL, *value = NULL;
    int rc = 0;
    if (word[0] != '-' || word[1] == '\0')
        return 0;
    if (word[1] == '-') {
        const struct row *r = find_long(word + 2, &value);
        if (r != NULL)
            return take(o, r, value, next, err);
    } else if ((rc = letters(o, word + 1, next, err)) != 0) {
        return rc;
    }
    return cw_request_word(o->request, argv, (size_t)argc, (size_t)i, CW_ORIGIN_COMMAND, NULL, err);
}

int cw_runopts_parse(struct cw_runopts *o, int argc, char *const *argv, int *ret_first)
{
    struct cw_error err;
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") != 0) {
        int used = one(o, argc, argv, i, &err);
        if (used < 0)
            return cw_cli_usage(o->cli, "%s", err.text);
        if (used == 0)
            break;
        i += used;
    }
    if (i < argc && strcmp(argv[i], "--") == 0)
        i++;
    *ret_first = i;
    return -1;
}

void cw_runopts_help(struct cw_buf *out)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        char left[64];
        snprintf(left, sizeof left, "%c%c%c --%s%s%s", r->letter ? '-' : ' ',
                 r->letter ? r->letter : ' ', r->letter ? ',' : ' ', r->name,
                 r->argument == NULL || optional(r) ? "" : "=",
                 r->argument != NULL ? r->argument : "");
        cw_buf_addf(out, "  %-30s %s\n", left, r->help);
    }
}

/* ---- the step ------------------------------------------------------------------------------- */

static int set_input(const struct cw_runopts *o, Cw__StepSpec *s, struct cw_error *err)
{
    uint64_t n;
    if (o->input == NULL || strcmp(o->input, "all") == 0)
        return 0;
    if (strcmp(o->input, "none") == 0 || o->input[0] < '0' || o->input[0] > '9') {
        s->stdin_path = (char *)o->input;
        return 0;
    }
    int rc = cw_cli_number(o->input, INT32_MAX, &n, NULL, err);
    if (rc < 0)
        return cw_wrap(err, rc, "option --input");
    s->has_stdin_task = true;
    s->stdin_task = (int32_t)n;
    return 0;
}

/* What only a step of a job that is there already says again. */
static void set_size(const Cw__JobSpec *j, Cw__StepSpec *s)
{
    const Cw__Settings *t = j->settings;
    s->has_ntasks = j->has_ntasks;
    s->ntasks = j->ntasks;
    s->has_nodes = j->has_nodes_min;
    s->nodes = j->nodes_min;
    s->nodelist = j->nodelist;
    s->has_time_limit_s = j->has_time_limit_s && j->time_limit_s != UINT64_MAX;
    s->time_limit_s = j->time_limit_s;
    if (t == NULL)
        return;
    s->has_cpus_per_task = t->has_cpus_per_task;
    s->cpus_per_task = t->cpus_per_task;
    s->has_gpus = t->has_gpus;
    s->gpus = t->gpus;
    s->has_mem_bytes = t->has_mem_bytes;
    s->mem_bytes = t->mem_bytes;
}

int cw_runopts_step(const struct cw_runopts *o, bool in_job, Cw__StepSpec **ret,
                    struct cw_error *err)
{
    const struct cw_request *r = o->request;
    const Cw__JobSpec *j = r->spec;
    unsigned rows_n = 0, cols = 0;
    Cw__StepSpec *s = cw_arena_alloc(r->arena, sizeof *s);
    cw__step_spec__init(s);
    s->name = j->name;
    s->n_argv = r->payload->n_argv;
    s->argv = r->payload->argv;
    s->n_env = r->payload->n_env;
    s->env = r->payload->env;
    s->workdir = j->workdir;
    s->stdout_path = j->stdout_path;
    s->stderr_path = j->stderr_path;
    s->distribution = j->distribution;
    s->has_exact = s->exact = o->exact;
    s->has_kill_on_bad_exit = s->kill_on_bad_exit = o->kill_on_bad_exit;
    s->has_wait_s = o->wait_s > 0;
    s->wait_s = o->wait_s;
    s->has_unbuffered = s->unbuffered = o->unbuffered;
    if (j->settings != NULL) {
        s->cpu_bind = j->settings->cpu_bind;
        s->gpu_bind = j->settings->gpu_bind;
    }
    if (j->has_slurm_env) {
        s->has_slurm_env = true;
        s->slurm_env = j->slurm_env;
    }
    if (in_job)
        set_size(j, s);
    if (o->pty) {
        cw_rawtty_size(STDIN_FILENO, &rows_n, &cols);
        s->has_pty = s->pty = true;
        s->has_rows = s->has_cols = rows_n > 0;
        s->rows = rows_n;
        s->cols = cols;
        s->has_ntasks = s->has_nodes = true; /* one terminal, one task */
        s->ntasks = s->nodes = 1;
    }
    *ret = s;
    return set_input(o, s, err);
}
