#pragma once
/* The plugin host: finds, checks and loads plugins of every family, gives them their options and
 * the host services, and hands out typed ops. A pre-flight dlopen(RTLD_NOW) yields the true error
 * text before libltdl does the loading; only absolute, resolved paths are opened, so no library
 * path of the environment counts. A file that others than root or we could have written is refused.
 * Plugins are never unloaded; their ops are used inside ops_size only (CW_PLUG_HAS). Loop thread
 * only. Test: plug_test.c. */
#include <stdbool.h>
#include <stddef.h>

#include <crunwlm/plugin.h>

#include "base/buf.h"
#include "base/error.h"
#include "conf/conf.h"

struct cw_plug;          /* a loaded and opened plugin */
struct cw_plug_registry; /* all of one process */

/* conf is borrowed (NULL: no options, the installed plugin directory); node: name of this node or
 * NULL. Plugins are looked for in conf->plugin_path. */
struct cw_plug_registry *cw_plug_registry_create(const struct cw_conf *conf, const char *node);
/* Closes plugins in reverse order. NULL allowed. */
void cw_plug_registry_destroy(struct cw_plug_registry *r);
/* Loads and opens family/name with the site's options; a second call gives the same. Errors say
 * file and true cause: "plugin gpu/nvml: /usr/lib/.../gpu-nvml.so: libnvidia-ml.so.1: cannot open
 * ...". */
int cw_plug_load(struct cw_plug_registry *r, const char *family, const char *name,
                 struct cw_plug **ret, struct cw_error *err);
/* Loaded already, or NULL. */
struct cw_plug *cw_plug_find(struct cw_plug_registry *r, const char *family, const char *name);
/* Loads every `plugin` section of the configuration that belongs to one of families
 * (NULL-terminated). A required one that fails is an error; others go to warn (NULL allowed). */
int cw_plug_load_configured(struct cw_plug_registry *r, const char *const *families,
                            void (*warn)(const char *text, void *arg), void *arg,
                            struct cw_error *err);
const struct cw_plugin *cw_plug_desc(const struct cw_plug *p);
const struct cw_host *cw_plug_host(const struct cw_plug *p);
const char *cw_plug_file(const struct cw_plug *p);
void *cw_plug_ctx(const struct cw_plug *p);
/* In the order of loading; family NULL: all. */
void cw_plug_each(struct cw_plug_registry *r, const char *family,
                  void (*fn)(struct cw_plug *p, void *arg), void *arg);
/* Checks a file without opening the plugin: ABI, family, name, exported symbols. `out` gets a
 * report. */
int cw_plug_check(const char *file, struct cw_buf *out, struct cw_error *err);
extern const char *const cw_plug_families[]; /* NULL-terminated */

/* ops of family F (struct cw_F_ops const *), and whether a member is there. */
#define CW_PLUG_OPS(F, p) ((const struct cw_##F##_ops *)cw_plug_desc(p)->ops)
#define CW_PLUG_HAS(F, p, member)                                                                  \
    (cw_plug_desc(p)->ops_size >=                                                                  \
         offsetof(struct cw_##F##_ops, member) + sizeof(void (*)(void)) &&                         \
     CW_PLUG_OPS(F, p)->member != NULL)
