#pragma once
/* The option values of one plugin: the site's, checked against the plugin's own table, or its
 * defaults, in one plain form (a size in bytes, a duration in seconds, true or false). Test:
 * plug_test.c. */
#include <crunwlm/plugin.h>

#include "base/error.h"
#include "conf/conf.h"

struct cw_plug_options;

/* table NULL: no options; site NULL: nothing configured. conf_path is for messages: an unknown name
 * or a bad value gives -EINVAL and "FILE:LINE: plugin gpu/fake: option 'cuont': unknown, allowed:
 * count". */
int cw_plug_options_create(const struct cw_option *table, const struct cw_conf_plugin *site,
                           const char *conf_path, const char *origin, struct cw_plug_options **ret,
                           struct cw_error *err);
void cw_plug_options_destroy(struct cw_plug_options *o); /* NULL allowed */
const char *cw_plug_options_get(const struct cw_plug_options *o, const char *name); /* NULL: none */
