#pragma once
/* Behind a struct cw_conf: its memory, and the place of every value. Inside src/conf only. */
#include "base/mem.h"
#include "conf/conf.h"

#define CW_CONF_NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

struct cw_conf_place {
    const char *file; /* NULL: the default */
    int line;
};

struct cw_conf_full {
    struct cw_conf conf;               /* first: a struct cw_conf * is this */
    struct cw_arena *arena;            /* owns everything, this struct too */
    struct cw_conf_place *root_places; /* one a row of the schema */
    /* The rows of the first partition, then of the second, and so on. */
    struct cw_conf_place *partition_places;
    struct cw_conf_place *plugin_places;
    const char **partition_files, **plugin_files;
};
