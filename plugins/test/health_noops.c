/* Forgot its ops. */
#include "test/minimal.h"

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {TEST_PLUGIN_HEAD("health", "noops")};
