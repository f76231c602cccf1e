/* crun-attach: joins a step that runs: a detached one, or one whose command is somewhere else. Of a
 * batch job without a step it follows the log. Test: testsuite/t2400-run.t. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmds/jobquery.h"
#include "cmds/stepstdio.h"
#include "spec/outcome.h"

static const struct cw_arg args[] = {
    {"label", 'l', NULL, "the task's number in front of each line"},
    {"no-input", 0, NULL, "only look: standard input stays here"},
    {"pty", 't', NULL, "the step has a terminal: pass this one through"},
    {NULL, 0, NULL, NULL},
};

struct attach {
    bool label, no_input, pty;
    bool has_step;
    uint32_t step;
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct attach *x = arg;
    (void)value, (void)err;
    if (strcmp(opt->name, "label") == 0)
        x->label = true;
    else if (strcmp(opt->name, "pty") == 0)
        x->pty = true;
    else
        x->no_input = true;
    return 0;
}

/* "12.3" becomes "12" and 3. */
static int split(struct attach *x, struct cw_cli *c)
{
    char *dot = strchr(c->operand.v[0], '.');
    struct cw_error err;
    uint64_t n;
    if (dot == NULL)
        return -1;
    if (cw_cli_number(dot + 1, UINT32_MAX, &n, NULL, &err) < 0)
        return cw_cli_usage(c, "step of job %s: %s", c->operand.v[0], err.text);
    *dot = '\0';
    x->has_step = true;
    x->step = (uint32_t)n;
    return -1;
}

/* The step that was named, else the newest that runs. NULL: none. */
static const Cw__StepRecord *pick(const struct attach *x, const Cw__JobsReply *r)
{
    const Cw__StepRecord *found = NULL;
    for (size_t i = 0; i < r->n_jobs; i++)
        for (size_t k = 0; k < r->jobs[i]->n_steps; k++) {
            const Cw__StepRecord *s = r->jobs[i]->steps[k];
            if (x->has_step ? s->step == x->step : !cw_state_terminal(s->state) && !s->exec)
                found = s;
        }
    return found;
}

static int join(struct attach *x, struct cw_cli *c, const Cw__StepRecord *step)
{
    struct cw_stepsession *s;
    struct cw_stepsession_ops ops;
    struct cw_error err;
    struct cw_stepstdio io = {.cli = c,
                              .ntasks = step->has_ntasks ? step->ntasks : 1,
                              .label = x->label,
                              .pty = x->pty,
                              .input = !x->no_input,
                              .keep_input = true,
                              .detach_keys = true};
    cw_stepstdio_ops(&ops);
    int rc = cw_stepstdio_begin(&io, &err);
    if (rc == 0)
        rc = cw_stepsession_attach(cw_client_conf(c->client)->path, c->client, step, &ops, &io, &s,
                                   &err);
    if (rc < 0) {
        cw_stepstdio_end(&io);
        return cw_cli_fail(c, &err);
    }
    rc = cw_stepstdio_run(&io, s);
    cw_stepstdio_end(&io);
    cw_stepsession_close(s);
    return rc;
}

static int attach(struct attach *x, struct cw_cli *c)
{
    Cw__JobsRequest q = CW__JOBS_REQUEST__INIT;
    Cw__JobFilter f = CW__JOB_FILTER__INIT;
    ProtobufCMessage *m;
    f.n_ids = 1;
    f.ids = c->operand.v;
    q.filter = &f;
    q.has_attempts = q.attempts = q.has_steps = q.steps = true;
    int rc = cw_cli_call(c, CW_KIND_JOBS, &q.base, 0, &m);
    if (rc >= 0)
        return rc;
    const Cw__JobsReply *r = (const Cw__JobsReply *)m;
    const Cw__StepRecord *s = pick(x, r);
    if (s != NULL)
        return join(x, c, s);
    if (x->has_step || (r->n_jobs > 0 && r->jobs[0]->spec->allocation)) {
        fprintf(stderr, "%s: job %s has no %s\n", c->name, c->operand.v[0],
                x->has_step ? "such step" : "step that runs");
        return CW_EXIT_REFUSED;
    }
    char *follow[] = {(char *)c->name, (char *)"-f", c->operand.v[0], NULL};
    cw_client_close(c->client);
    c->client = NULL;
    cw_autofree char *id = cw_xstrdup(c->operand.v[0]);
    follow[2] = id;
    cw_strv_fini(&c->operand);
    return cw_cmd_logs(c, 3, follow);
}

int cw_cmd_attach(struct cw_cli *c, int argc, char *const *argv)
{
    struct attach x = {0};
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, on_option, &x);
    if (rc < 0 && c->operand.n != 1)
        rc = cw_cli_usage(c, "give one job or step");
    if (rc < 0)
        rc = split(&x, c);
    if (rc < 0 && x.pty && !isatty(STDIN_FILENO))
        rc = cw_cli_usage(c, "--pty: standard input is no terminal");
    if (rc < 0)
        rc = cw_cli_connect(c);
    return rc < 0 ? attach(&x, c) : rc;
}
