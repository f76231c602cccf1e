#pragma once
/* The place below which boxes are made: one directory per hierarchy (v1) or one in all (v2), kept
 * open.
 *
 * Default place: crun-wlm/CLUSTER/NODE.HASH at the top of each hierarchy, or below our own group
 * where the top cannot be written. HASH is of the node's directory, so that two instances with the
 * same names never take each other's boxes. Opened by the first call that needs it. Test:
 * cgroup_test.c. */
#include <crunwlm/plugin.h>

#include <stdbool.h>
#include <stddef.h>

#include "isolation/cgroup/groupmount.h"

struct group_backend;

struct group_hier {
    unsigned controllers;
    int dir;         /* the base group */
    char path[1536]; /* of the base group, for messages and removal */
};

struct groupsite {
    const struct group_backend *backend;
    bool is_open;
    bool plain; /* not a control group file system: a directory in a test */
    bool default_base;
    unsigned have;
    struct group_hier hier[GROUP_CONTROLLERS]; /* the one that can kill comes first */
    size_t n;
    char cpus_online[512], mems_online[512], mems_base[512];
};

struct groupsite_options {
    const char *root;    /* "" : from mountinfo */
    const char *base;    /* "" : the default place */
    const char *version; /* auto, 1, 2 */
    unsigned require;    /* controllers without which the site is refused */
};

/* -ENOTSUP with the reason when no hierarchy can be used. */
int groupsite_open(struct groupsite *s, const struct cw_host *host,
                   const struct groupsite_options *opts, struct cw_plugin_err *err);
/* remove: also the default base groups, where they are empty. */
void groupsite_close(struct groupsite *s, bool remove);
