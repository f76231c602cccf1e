/* crun-run: tasks that run now, with this terminal as theirs. Inside a job (or with --jobid) they
 * are a step of it; else an allocation is made for them, kept while they run and given back with
 * their exit code. Test: testsuite/t2400-run.t, testsuite/t2410-run-cluster.t. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

#include "cmds/allocget.h"
#include "cmds/runopts.h"
#include "cmds/stepcreate.h"
#include "cmds/stepstdio.h"

extern char **environ;

struct run {
    struct cw_cli *cli;
    struct cw_request request;
    struct cw_runopts opts;
    Cw__StepSpec *step;
    char *job; /* "12" */
};

static int print_help(const struct cw_cli *c)
{
    cw_autobuf struct cw_buf b = {0};
    cw_buf_addf(&b, "Usage: %s [OPTION ...] %s\n%s.\n\n", c->name, c->operands, c->summary);
    cw_runopts_help(&b);
    cw_buf_addf(&b, "Options of crun-submit say what is asked for: see crun-submit --help.\n");
    fputs(cw_buf_str(&b), stdout);
    return CW_EXIT_OK;
}

/* -1, or the exit code of what was printed. */
static int build(struct run *x, int argc, char *const *argv)
{
    struct cw_error err;
    char cwd[PATH_MAX];
    int first;
    int rc = cw_runopts_parse(&x->opts, argc, argv, &first);
    if (rc >= 0)
        return rc;
    if (x->request.help)
        return print_help(x->cli);
    if (x->request.version) {
        printf("%s (crun-wlm) %s\n", x->cli->name, PACKAGE_VERSION);
        return CW_EXIT_OK;
    }
    if (first >= argc)
        return cw_cli_usage(x->cli, "nothing to run: give a command");
    cw_request_set_argv(&x->request, argc - first, argv + first);
    rc = cw_request_environ(&x->request, environ, false, &err);
    if (rc == 0 && getcwd(cwd, sizeof cwd) == NULL)
        rc = cw_fail_errno(&err, -errno, "current directory");
    if (rc == 0)
        rc = cw_request_finish(&x->request, environ, cwd, &err);
    if (rc == 0 && x->request.spec->array != NULL)
        rc = cw_fail(&err, -EINVAL, "option --array: is for crun-submit");
    if (rc < 0) {
        fprintf(stderr, "%s: %s\n", x->cli->name, err.text);
        return CW_EXIT_USAGE;
    }
    for (size_t i = 0; i < x->request.warnings.n && !x->request.quiet; i++)
        fprintf(stderr, "%s: warning: %s\n", x->cli->name, x->request.warnings.v[i]);
    return -1;
}

static bool reads_input(const struct run *x)
{
    return x->step->stdin_path == NULL;
}

/* The step of a job that runs; -1 never. */
static int run_step(struct run *x, struct cw_allockeeper *keeper)
{
    struct cw_cli *c = x->cli;
    const Cw__StepCreateReply *r;
    struct cw_stepsession *s;
    struct cw_stepsession_ops ops;
    struct cw_error err;
    int rc = cw_stepcreate(c, x->job, x->step, x->request.quiet, &r);
    if (rc >= 0)
        return rc;
    struct cw_stepstdio io = {.cli = c,
                              .ntasks = r->parts[0]->layout->ntasks,
                              .label = x->opts.label,
                              .unbuffered = x->opts.unbuffered,
                              .pty = x->opts.pty,
                              .input = reads_input(x),
                              .kill_on_bad_exit = x->opts.kill_on_bad_exit,
                              .wait_s = x->opts.wait_s,
                              .quiet = x->request.quiet,
                              .keeper = keeper};
    cw_stepstdio_ops(&ops);
    rc = cw_stepstdio_begin(&io, &err);
    if (rc == 0)
        rc = cw_stepsession_start(cw_client_conf(c->client)->path, r, x->step, &ops, &io, &s, &err);
    if (rc < 0) {
        cw_stepstdio_end(&io);
        return cw_cli_fail(c, &err);
    }
    rc = cw_stepstdio_run(&io, s);
    cw_stepstdio_end(&io);
    cw_stepsession_close(s);
    return rc;
}

/* The files are the step's, not the job's. */
static void strip_job(Cw__JobSpec *j)
{
    j->stdout_path = j->stderr_path = j->stdin_path = NULL;
    j->has_open_append = false;
}

static int run_in_allocation(struct run *x)
{
    struct cw_cli *c = x->cli;
    struct cw_allockeeper *keeper = NULL;
    Cw__JobInfo *job;
    struct cw_error err;
    uint64_t id;
    strip_job(x->request.spec);
    int rc = cw_allocget(c, &x->request, &id, &job);
    if (rc >= 0)
        return rc;
    x->job = cw_arena_printf(c->arena, "%" PRIu64, id);
    if (cw_allockeeper_start(cw_client_conf(c->client)->path, id, cw_allocget_lease(), &keeper,
                             &err) < 0)
        rc = cw_cli_fail(c, &err);
    else
        rc = run_step(x, keeper);
    cw_allocget_release(c, id, rc);
    cw_allockeeper_stop(keeper);
    return rc;
}

int cw_cmd_run(struct cw_cli *c, int argc, char *const *argv)
{
    struct run x = {.cli = c};
    struct cw_error err;
    x.opts.cli = c;
    x.opts.request = &x.request;
    cw_request_init(&x.request, c->arena);
    int rc = build(&x, argc, argv);
    if (rc < 0) {
        x.job = (char *)(x.opts.jobid != NULL ? x.opts.jobid : getenv("CRUN_JOB_ID"));
        if (cw_runopts_step(&x.opts, x.job != NULL, &x.step, &err) < 0)
            rc = cw_cli_usage(c, "%s", err.text);
        else if (x.opts.pty && !isatty(STDIN_FILENO))
            rc = cw_cli_usage(c, "--pty: standard input is no terminal");
    }
    if (rc < 0)
        rc = cw_cli_connect(c);
    if (rc < 0)
        rc = x.job != NULL ? run_step(&x, NULL) : run_in_allocation(&x);
    cw_request_fini(&x.request);
    return rc;
}
