/* crun-exec: a command inside a running job, on one of its nodes, in the same box and with all of
 * its cores. Test: testsuite/t2400-run.t. */
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmds/rawtty.h"
#include "cmds/stepcreate.h"
#include "cmds/stepstdio.h"
#include "spec/outcome.h"

extern char **environ;

static const struct cw_arg args[] = {
    {"pty", 't', NULL, "on a terminal of its own, this one passed through"},
    {"detach", 'd', NULL, "begin it, print its number and leave"},
    {"timeout", 'T', "TIME", "end it after so long"},
    {"env", 0, "K=V", "set a variable"},
    {"nodelist", 'w', "NODE", "on this node of the job (default: its first)"},
    {"chdir", 'D', "DIR", "working directory (default: this one)"},
    {NULL, 0, NULL, NULL},
};

struct exec {
    bool pty, detach;
    uint64_t timeout_s;
    struct cw_strv env;
    const char *node, *dir;
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct exec *x = arg;
    uint64_t ms;
    if (strcmp(opt->name, "pty") == 0) {
        x->pty = true;
    } else if (strcmp(opt->name, "detach") == 0) {
        x->detach = true;
    } else if (strcmp(opt->name, "nodelist") == 0) {
        x->node = value;
    } else if (strcmp(opt->name, "chdir") == 0) {
        x->dir = value;
    } else if (strcmp(opt->name, "env") == 0) {
        if (value[0] == '=' || strchr(value, '=') == NULL)
            return cw_fail(err, -EINVAL, "'%s' is not NAME=VALUE", value);
        cw_strv_add(&x->env, value);
    } else {
        int rc = cw_cli_timeout(value, &ms, err);
        x->timeout_s = ms / 1000;
        return rc;
    }
    return 0;
}

/* Our environment without what describes a job, then --env. */
static void build_env(struct exec *x)
{
    struct cw_strv all = {0};
    for (char **e = environ; *e != NULL; e++)
        if (strncmp(*e, "CRUN_", 5) != 0 && strncmp(*e, "SLURM", 5) != 0)
            cw_strv_add(&all, *e);
    for (size_t i = 0; i < x->env.n; i++) {
        size_t n = strcspn(x->env.v[i], "=") + 1, k = 0;
        while (k < all.n && strncmp(all.v[k], x->env.v[i], n) != 0)
            k++;
        if (k < all.n) {
            free(all.v[k]);
            all.v[k] = cw_xstrdup(x->env.v[i]);
        } else {
            cw_strv_add(&all, x->env.v[i]);
        }
    }
    cw_strv_fini(&x->env);
    x->env = all;
}

static void fill(struct exec *x, struct cw_cli *c, Cw__StepSpec *s, char *cwd)
{
    unsigned rows = 0, cols = 0;
    cw__step_spec__init(s);
    s->n_argv = c->operand.n - 1;
    s->argv = c->operand.v + 1;
    s->n_env = x->env.n;
    s->env = x->env.v;
    s->workdir = x->dir != NULL ? (char *)x->dir : cwd;
    s->has_exec = s->exec = true;
    s->nodelist = (char *)x->node;
    s->has_detached = s->detached = x->detach;
    if (x->timeout_s > 0) {
        s->has_time_limit_s = true;
        s->time_limit_s = x->timeout_s;
    }
    if (!x->pty)
        return;
    cw_rawtty_size(STDIN_FILENO, &rows, &cols);
    s->has_pty = s->pty = true;
    s->has_rows = s->has_cols = rows > 0;
    s->rows = rows;
    s->cols = cols;
}

/* Until it runs on its node. */
static int begin_only(struct cw_cli *c, struct cw_stepsession *s, const Cw__StepCreateReply *r)
{
    struct pollfd p = {.fd = cw_stepsession_fd(s), .events = POLLIN};
    while (!cw_stepsession_started(s) && !cw_stepsession_run(s) && cw_cli_interrupted == 0)
        poll(&p, 1, -1);
    struct cw_stepresult res;
    cw_stepsession_result(s, &res);
    if (!cw_stepsession_started(s)) {
        fprintf(stderr, "%s: it did not start%s%s\n", c->name, res.message[0] != '\0' ? ": " : "",
                res.message);
        return CW_EXIT_LAUNCH;
    }
    printf("%s.%u\n", c->operand.v[0], r->step);
    return CW_EXIT_OK;
}

static int run(struct exec *x, struct cw_cli *c)
{
    const Cw__StepCreateReply *r;
    Cw__StepSpec spec;
    struct cw_stepsession *s;
    struct cw_stepsession_ops ops;
    struct cw_error err;
    char cwd[PATH_MAX];
    if (getcwd(cwd, sizeof cwd) == NULL)
        snprintf(cwd, sizeof cwd, "/");
    fill(x, c, &spec, cwd);
    int rc = cw_stepcreate(c, c->operand.v[0], &spec, false, &r);
    if (rc >= 0)
        return rc;
    struct cw_stepstdio io = {
        .cli = c, .ntasks = 1, .pty = x->pty, .input = !x->detach, .timeout_s = x->timeout_s};
    cw_stepstdio_ops(&ops);
    rc = x->detach ? 0 : cw_stepstdio_begin(&io, &err);
    if (rc == 0)
        rc = cw_stepsession_start(cw_client_conf(c->client)->path, r, &spec, &ops, &io, &s, &err);
    if (rc < 0) {
        cw_stepstdio_end(&io);
        return cw_cli_fail(c, &err);
    }
    rc = x->detach ? begin_only(c, s, r) : cw_stepstdio_run(&io, s);
    cw_stepstdio_end(&io);
    cw_stepsession_close(s);
    return rc;
}

int cw_cmd_exec(struct cw_cli *c, int argc, char *const *argv)
{
    struct exec x = {0};
    c->args = args;
    argv = cw_args_end_at_operand(args, &argc, argv, c->arena); /* what follows is the command's */
    int rc = cw_cli_begin(c, argc, argv, on_option, &x);
    if (rc < 0 && c->operand.n < 2)
        rc = cw_cli_usage(c, "give a job and a command");
    if (rc < 0 && x.pty && x.detach)
        rc = cw_cli_usage(c, "--pty and --detach: give one of them");
    if (rc < 0 && x.pty && !isatty(STDIN_FILENO))
        rc = cw_cli_usage(c, "--pty: standard input is no terminal");
    if (rc < 0)
        rc = cw_cli_connect(c);
    if (rc < 0) {
        build_env(&x);
        rc = run(&x, c);
    }
    cw_strv_fini(&x.env);
    return rc;
}
