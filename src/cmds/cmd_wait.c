/* crun-wait: blocks until jobs have ended; its exit code is that of the worst. */
#include <string.h>

#include "cmds/eventwait.h"
#include "cmds/jobquery.h"
#include "cmds/jobwait.h"

static const struct cw_arg args[] = {
    {"for", 0, "EVENT", "until each job has had this event: start, running, end (default), ..."},
    {"timeout", 'W', "TIME", "give up after this time (30s, 5m, 1:00:00)"},
    {NULL, 0, NULL, NULL},
};

struct wait {
    uint64_t timeout_ms;
    const char *event; /* NULL: the end */
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct wait *w = arg;
    if (strcmp(opt->name, "timeout") == 0)
        return cw_cli_timeout(value, &w->timeout_ms, err);
    w->event = strcmp(value, "end") == 0 ? NULL : value;
    return 0;
}

int cw_cmd_wait(struct cw_cli *c, int argc, char *const *argv)
{
    struct wait w = {0};
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, on_option, &w);
    if (rc >= 0)
        return rc;
    if (c->operand.n == 0)
        return cw_cli_usage(c, "no job given");
    if ((rc = cw_jobquery_check_ids(c)) >= 0)
        return rc;
    if ((rc = cw_cli_connect(c)) >= 0 || (rc = cw_jobquery_resolve(c, &c->operand, 0)) >= 0)
        return rc;
    if (w.event != NULL)
        return cw_eventwait(c, &c->operand, w.event, w.timeout_ms);
    return cw_jobwait(c, c->operand.v, c->operand.n, w.timeout_ms);
}
