/* Cannot start, and says why. */
#include "test/minimal.h"

#include <errno.h>
#include <stdio.h>

static int event(void *ctx, const char *json)
{
    (void)ctx, (void)json;
    return 0;
}

static int open_fails(const struct cw_host *host, void **ret_ctx, struct cw_plugin_err *err)
{
    (void)host, (void)ret_ctx;
    snprintf(err->text, sizeof(err->text), "no bell on this machine");
    return -ENODEV;
}

static const struct cw_notify_ops ops = {.event = event};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    TEST_PLUGIN_HEAD("notify", "openfails"),
    .open = open_fails,
    .ops = &ops,
    .ops_size = sizeof(ops),
};
