#pragma once
/* The smallest plugin of a family: TEST_PLUGIN("image", "minimal", ops). For src/plug/plug_test.c.
 */
#include <crunwlm/plugin.h>

#define TEST_PLUGIN_HEAD(family_text, name_text)                                                   \
    .magic = CW_PLUGIN_MAGIC, .size = sizeof(struct cw_plugin), .abi_major = CW_PLUGIN_ABI_MAJOR,  \
    .abi_minor = CW_PLUGIN_ABI_MINOR, .family = family_text, .name = name_text, .version = "1.0"
#define TEST_PLUGIN(family_text, name_text, the_ops)                                               \
    CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {                                          \
        TEST_PLUGIN_HEAD(family_text, name_text), .ops = &(the_ops), .ops_size = sizeof(the_ops)}
