/* crun-wait: blocks until jobs have ended; its exit code is that of the worst. */
#include <string.h>

#include "base/quantity.h"
#include "cmds/jobwait.h"
#include "cmds/jobquery.h"

static const struct cw_arg args[] = {
    {"timeout", 'W', "TIME", "give up after this time (30s, 5m, 1:00:00)"},
    {NULL, 0, NULL, NULL},
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    uint64_t *timeout_s = arg;
    (void)opt;
    int rc = cw_duration_parse(value, timeout_s, err);
    if (rc == 0 && *timeout_s == CW_DURATION_UNLIMITED)
        *timeout_s = 0;
    return rc;
}

int cw_cmd_wait(struct cw_cli *c, int argc, char *const *argv)
{
    uint64_t timeout_s = 0;
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, on_option, &timeout_s);
    if (rc >= 0)
        return rc;
    if (c->operand.n == 0)
        return cw_cli_usage(c, "no job given");
    if ((rc = cw_jobquery_check_ids(c)) >= 0)
        return rc;
    if ((rc = cw_cli_connect(c)) >= 0)
        return rc;
    return cw_jobwait(c, c->operand.v, c->operand.n, timeout_s * 1000);
}
