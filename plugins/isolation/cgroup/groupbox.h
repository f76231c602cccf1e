#pragma once
/* One task's group in every hierarchy of a site: make, limit, signal, kill, measure, remove. What
 * differs between the two versions of control groups is in struct group_backend (group_v1.c,
 * group_v2.c); the rest is here once. Test: cgroup_test.c. */
#include <crunwlm/plugin.h>

#include "isolation/boxplan.h"
#include "isolation/cgroup/groupsite.h"

#define GROUP_KEY_MAX 96

struct groupbox {
    struct groupsite *site;
    char key[GROUP_KEY_MAX];
    int procs[GROUP_CONTROLLERS]; /* where a process enters hierarchy i; -1: not used */
    struct boxplan limits;
};

struct groupbox_want {
    struct boxplan plan;
    bool swap; /* memory may go to swap beyond the limit */
};

struct group_backend {
    const char *source; /* of usage */
    /* The file by which the new process, alone in its thread group, puts itself in. Version 1: "tasks",
     * because moving only the caller's thread needs no lock over all thread groups of the machine;
     * taking that lock waits for an RCU grace period, 5-15 ms when it has not been taken lately. */
    const char *entry;
    /* Writes the limits into the new groups; *ret_file: what failed. */
    int (*limit)(const struct groupbox *b, const struct groupbox_want *want, const char **ret_file);
    /* SIGKILL to all of one group's tree; how many processes it had. */
    int (*kill)(const struct groupsite *s, const char *key);
    int (*usage)(const struct groupbox *b, struct cw_box_usage *ret);
};
extern const struct group_backend group_backend_v1, group_backend_v2;

/* Reclaims what an earlier box of the key left, then makes a new one. */
int groupbox_create(struct groupsite *s, const char *key, const struct groupbox_want *want,
                    struct groupbox **ret, struct cw_plugin_err *err);
int groupbox_enter(const struct groupbox *b); /* async-signal-safe */
int groupbox_signal(const struct groupbox *b, int sig);
int groupbox_kill(const struct groupbox *b);
int groupbox_destroy(struct groupbox *b); /* -EBUSY: processes are left, the box stays */
int groupbox_reclaim(struct groupsite *s, const char *key, struct cw_plugin_err *err);

/* For the backends. */
int groupbox_write(const struct groupbox *b, size_t hier, const char *file, const char *text);
int groupbox_write_i64(const struct groupbox *b, size_t hier, const char *file, int64_t value);
/* The hierarchy of a controller that this box uses, or -1. */
int groupbox_hier(const struct groupbox *b, unsigned controller);
