/* Says that its descriptor is smaller than version 1.0 ever was. */
#include "test/minimal.h"

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = offsetof(struct cw_plugin, ops),
    .abi_major = CW_PLUGIN_ABI_MAJOR,
    .family = "notify",
    .name = "tiny",
    .version = "1.0",
};
