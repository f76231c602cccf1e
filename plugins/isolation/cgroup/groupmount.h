#pragma once
/* Where this machine's control group hierarchies are mounted. Pure text work. Test: cgroup_test.c.
 */
#include <stddef.h>

/* What a task's box uses; a v2 tree always has FREEZER (cgroup.kill) and CPUACCT (cpu.stat). */
enum group_controller {
    GROUP_FREEZER = 1,
    GROUP_CPUACCT = 2,
    GROUP_MEMORY = 4,
    GROUP_PIDS = 8,
    GROUP_CPUSET = 16
};
#define GROUP_CONTROLLERS 5

struct group_mount {
    int version; /* 1 or 2 */
    unsigned controllers;
    char point[256];
    char root[256]; /* the part of the hierarchy that is visible at point; "/" is all of it */
};

/* One controller by the name the kernel uses, 0: not one of ours. */
unsigned group_controller_parse(const char *name, size_t len);
/* All of ours in a list separated by any of separators. */
unsigned group_controllers_parse(const char *list, const char *separators);
/* Text of /proc/self/mountinfo; returns how many are in ret, at most cap. */
size_t group_mounts_parse(const char *mountinfo, struct group_mount *ret, size_t cap);
/* Text of /proc/self/cgroup: our own group in the hierarchy of m, relative to what m shows. "" when
 * we are at its top or outside. */
void group_self_path(const char *self_cgroup, const struct group_mount *m, char *buf, size_t cap);
