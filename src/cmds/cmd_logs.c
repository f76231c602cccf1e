/* crun-logs: the output of a job, read through its node; -f goes on until the job has ended.
 * Test: testsuite/t1050-logs.t. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/idset.h"
#include "base/quantity.h"
#include "cmds/cli.h"
#include "cmds/jobquery.h"

#define FOLLOW_WAIT_MS 20000u /* one long poll of the node; data comes as soon as it is there */

static const struct cw_arg args[] = {
    {"follow", 'f', NULL, "go on until the job has ended"},
    {"err", 'e', NULL, "standard error, where it has a file of its own"},
    {"attempt", 0, "N", "this attempt (default: the newest)"},
    {"tail", 0, "SIZE", "begin this far before the end (bare number: bytes)"},
    {NULL, 0, NULL, NULL},
};

struct logs {
    bool follow, err_stream, has_tail;
    uint32_t attempt;
    uint64_t tail;
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct logs *l = arg;
    if (strcmp(opt->name, "follow") == 0) {
        l->follow = true;
    } else if (strcmp(opt->name, "err") == 0) {
        l->err_stream = true;
    } else if (strcmp(opt->name, "tail") == 0) {
        l->has_tail = true;
        return cw_size_parse(value, 1, &l->tail, err);
    } else {
        char *end;
        errno = 0;
        unsigned long n = strtoul(value, &end, 10);
        if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || n == 0 ||
            n > UINT32_MAX)
            return cw_fail(err, -EINVAL, "attempt '%s': a number from 1", value);
        l->attempt = (uint32_t)n;
    }
    return 0;
}

static int copy(struct cw_cli *c, struct cw_logreader *r, const struct logs *l)
{
    cw_autobuf struct cw_buf b = {0};
    struct cw_error err;
    for (bool eof = false; !eof;) {
        cw_buf_clear(&b);
        if (cw_logreader_read(r, l->follow ? FOLLOW_WAIT_MS : 0, &b, &eof, &err) != 0)
            return cw_cli_fail(c, &err);
        if (b.len == 0 && !l->follow)
            break; /* the job goes on, but we were asked for what is there */
        int rc = cw_file_write_all(STDOUT_FILENO, b.data, b.len);
        if (rc != 0) {
            cw_fail_errno(&err, rc, "standard output");
            return cw_cli_fail(c, &err);
        }
    }
    return CW_EXIT_OK;
}

int cw_cmd_logs(struct cw_cli *c, int argc, char *const *argv)
{
    struct logs l = {0};
    struct cw_error err;
    struct cw_logreader *r;
    c->args = args;
    int rc = cw_cli_begin(c, argc, argv, on_option, &l);
    if (rc >= 0)
        return rc;
    if (c->operand.n != 1)
        return cw_cli_usage(c, "give one job");
    if ((rc = cw_jobquery_check_ids(c)) >= 0)
        return rc;
    if ((rc = cw_cli_connect(c)) >= 0 || (rc = cw_jobquery_resolve(c, &c->operand, 0)) >= 0)
        return rc;
    if (cw_logreader_open(c->client, c->operand.v[0], l.attempt, l.err_stream, &r, &err) != 0)
        return cw_cli_fail(c, &err);
    if (l.has_tail)
        cw_logreader_seek_end(r, l.tail);
    rc = copy(c, r, &l);
    cw_logreader_close(r);
    return rc;
}
