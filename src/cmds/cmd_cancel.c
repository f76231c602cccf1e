/* crun-cancel: ends jobs, or sends a signal to their processes. Test: testsuite/t1030-cancel.t. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/jobquery.h"

static const struct cw_arg args[] = {
    CW_JOBQUERY_ARGS,
    {"signal", 's', "SIG", "send this signal (name or number) to the running processes instead"},
    {"quiet", 'Q', NULL, "say nothing about jobs that are not found"},
    {NULL, 0, NULL, NULL},
};

struct cancel {
    struct cw_jobquery query;
    int signo;
    bool quiet, narrowed;
};

static int parse_signal(const char *text, int *ret, struct cw_error *err)
{
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    char *end;
    long n = strtol(text, &end, 10);
    if (*text != '\0' && *end == '\0' && n > 0 && n < NSIG) {
        *ret = (int)n;
        return 0;
    }
    for (int s = 1; s < NSIG; s++) {
        const char *abbrev = sigabbrev_np(s);
        if (abbrev != NULL && strcasecmp(abbrev, name) == 0) {
            *ret = s;
            return 0;
        }
    }
    return cw_fail(err, -EINVAL,
                   "signal '%s' is unknown, allowed: a name like TERM or USR1, or 1-%d", text,
                   NSIG - 1);
}

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct cancel *k = arg;
    int rc = cw_jobquery_option(&k->query, opt, value, err);
    if (rc != 0) {
        k->narrowed = true;
        return rc < 0 ? rc : 0;
    }
    if (strcmp(opt->name, "signal") == 0)
        return parse_signal(value, &k->signo, err);
    k->quiet = true;
    return 0;
}

/* Operands JOB.STEP are told at once and taken out; the exit code of the worst. */
static int cancel_steps(const struct cancel *k, struct cw_cli *c)
{
    int code = CW_EXIT_OK;
    size_t kept = 0;
    for (size_t i = 0; i < c->operand.n; i++) {
        char *id = c->operand.v[i], *dot = strchr(id, '.');
        struct cw_error err;
        uint64_t step;
        if (dot == NULL) {
            c->operand.v[kept++] = id;
            continue;
        }
        *dot = '\0';
        int rc = cw_cli_number(dot + 1, UINT32_MAX, &step, NULL, &err);
        if (rc == 0)
            rc = cw_stepsend(c->client, id, (uint32_t)step,
                             k->signo != 0 ? CW__STEP_VERB__STEP_SIGNAL : CW__STEP_VERB__STEP_KILL,
                             (uint32_t)k->signo, &err);
        if (rc == -ESRCH && k->signo == 0) /* to cancel what has ended is harmless */
            rc = 0;
        if (rc < 0)
            code = cw_cli_fail(c, &err);
        free(id);
    }
    c->operand.n = kept;
    return code;
}

static bool names_steps(const struct cw_cli *c)
{
    for (size_t i = 0; i < c->operand.n; i++)
        if (strchr(c->operand.v[i], '.') != NULL)
            return true;
    return false;
}

int cw_cmd_cancel(struct cw_cli *c, int argc, char *const *argv)
{
    int step_code = CW_EXIT_OK;
    struct cancel k = {0};
    struct cw_error err;
    c->args = args;
    cw_jobquery_init(&k.query);
    int rc = cw_cli_begin(c, argc, argv, on_option, &k);
    if (rc < 0 && names_steps(c)) {
        rc = cw_cli_connect(c);
        if (rc < 0) {
            step_code = cancel_steps(&k, c);
            rc = c->operand.n == 0 && !k.narrowed ? step_code : -1;
        }
    }
    if (rc < 0 && cw_jobquery_operands(&k.query, &c->operand, &err) != 0)
        rc = cw_cli_usage(c, "%s", err.text);
    if (rc < 0 && !k.narrowed && c->operand.n == 0)
        rc = cw_cli_usage(c, "say which jobs: an ID, or an option such as --me");
    if (rc < 0 && c->client == NULL)
        rc = cw_cli_connect(c);
    if (rc < 0)
        rc = cw_jobquery_resolve(c, &k.query.ids, 0);
    if (rc < 0) {
        Cw__CancelRequest req = CW__CANCEL_REQUEST__INIT;
        ProtobufCMessage *m;
        req.filter = cw_jobquery_filter(&k.query);
        req.has_signal = k.signo != 0;
        req.signal = (uint32_t)k.signo;
        rc = cw_cli_call(c, CW_KIND_CANCEL, &req.base, 0, &m);
        if (rc < 0) {
            const Cw__CancelReply *r = (const Cw__CancelReply *)m;
            for (size_t i = 0; i < r->n_notes && !k.quiet; i++)
                fprintf(stderr, "crun-cancel: %s\n", r->notes[i]);
            if (c->common.json)
                cw_cli_print_json("cancel", json_pack("{s:I}", "matched", (json_int_t)r->matched));
            rc = r->n_notes > 0 && !k.quiet ? CW_EXIT_REFUSED : -1;
        }
    }
    cw_jobquery_fini(&k.query);
    return rc <= 0 ? step_code : rc;
}
