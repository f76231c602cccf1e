/* Made for an interface of another major version. */
#include "test/minimal.h"

static int record(void *ctx, const char *json)
{
    (void)ctx, (void)json;
    return 0;
}

static const struct cw_acct_ops ops = {.record = record};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = sizeof(struct cw_plugin),
    .abi_major = CW_PLUGIN_ABI_MAJOR + 1,
    .abi_minor = 7,
    .family = "acct",
    .name = "wrongabi",
    .version = "1.0",
    .ops = &ops,
    .ops_size = sizeof(ops),
};
