/* crun-diag: what the controller counts and times. Test: testsuite/t2530-diag.t. */
#include <stdio.h>
#include <string.h>

#include "cmds/cli.h"

static const struct cw_arg args[] = {{NULL, 0, NULL, NULL}};

static int no_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    (void)value, (void)arg;
    return cw_fail(err, -EINVAL, "unknown option --%s", opt->name);
}

int cw_cmd_diag(struct cw_cli *c, int argc, char *const *argv)
{
    Cw__CtlRequest req = CW__CTL_REQUEST__INIT;
    ProtobufCMessage *m;
    json_error_t je;
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, no_option, NULL);
    if (rc >= 0)
        return rc;
    if (c->operand.n > 0)
        return cw_cli_usage(c, "'%s' is too much", c->operand.v[0]);
    req.verb = "diag";
    if ((rc = cw_cli_connect(c)) >= 0 || (rc = cw_cli_call(c, CW_KIND_CTL, &req.base, 0, &m)) >= 0)
        return rc;
    const Cw__CtlReply *r = (const Cw__CtlReply *)m;
    json_t *body = c->common.json && r->json != NULL ? json_loads(r->json, 0, &je) : NULL;
    if (body != NULL)
        cw_cli_print_json("diag", body);
    else
        fputs(r->text != NULL ? r->text : "", stdout);
    return CW_EXIT_OK;
}
