/* Has an option of every type; a submit sets the job's fields to what it got. */
#include "test/minimal.h"

#include <errno.h>
#include <stdlib.h>

static const struct cw_option options[] = {
    {"text", CW_OPT_STRING, NULL, "any text"},    {"number", CW_OPT_INT, "7", "a whole number"},
    {"flag", CW_OPT_BOOL, "no", "true or false"}, {"size", CW_OPT_SIZE, "1K", "bytes"},
    {"time", CW_OPT_DURATION, "2m", "seconds"},   {NULL, CW_OPT_STRING, NULL, NULL},
};

static int opened;

static int options_open(const struct cw_host *host, void **ret_ctx, struct cw_plugin_err *err)
{
    (void)err;
    opened++;
    host->log(host, 3, "opened");
    *ret_ctx = (void *)(uintptr_t)host;
    return 0;
}

static void options_close(void *ctx)
{
    const struct cw_host *host = ctx;

    opened--;
    host->log(host, 3, "closed");
}

static int submit(void *ctx, struct cw_job_view *job, struct cw_plugin_err *err)
{
    const struct cw_host *host = ctx;

    (void)err;
    for (const struct cw_option *o = options; o->name != NULL; o++)
        if (host->option(host, o->name) != NULL)
            job->set(job, o->name, host->option(host, o->name));
    job->set(job, "cluster", host->instance(host, "cluster"));
    job->set(job, "node", host->instance(host, "node"));
    return opened == 1 ? 0 : -EINVAL;
}

static const struct cw_submit_ops ops = {.submit = submit};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    TEST_PLUGIN_HEAD("submit", "options"),
    .options = options,
    .open = options_open,
    .close = options_close,
    .ops = &ops,
    .ops_size = sizeof(ops),
};
