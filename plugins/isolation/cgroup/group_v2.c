/* Control groups, version 2: one hierarchy, all controllers in one directory.
 * https://docs.kernel.org/admin-guide/cgroup-v2.html */
#include "isolation/cgroup/groupbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "isolation/cgroup/groupfile.h"
#include "isolation/cgroup/groupprocs.h"

#define KILL_ROUNDS 100 /* kernels before 5.14 only */

static int limit_memory(const struct groupbox *b, const struct groupbox_want *want,
                        const char **ret_file)
{
    int r;

    if (want->plan.mem_bytes == BOXPLAN_NONE)
        return 0;
    *ret_file = "memory.max";
    r = groupbox_write_i64(b, 0, *ret_file, want->plan.mem_bytes);
    if (r < 0 || want->swap)
        return r;
    *ret_file = "memory.swap.max";
    r = groupbox_write(b, 0, *ret_file, "0");
    return r == -ENOENT ? 0 : r; /* a kernel without swap accounting */
}

static int v2_limit(const struct groupbox *b, const struct groupbox_want *want,
                    const char **ret_file)
{
    int r = limit_memory(b, want, ret_file);

    if (r == 0 && want->plan.pids != BOXPLAN_NONE) {
        *ret_file = "pids.max";
        r = groupbox_write_i64(b, 0, *ret_file, want->plan.pids);
    }
    if (r == 0 && want->plan.cpus != NULL) {
        *ret_file = "cpuset.cpus";
        r = groupbox_write(b, 0, *ret_file, want->plan.cpus);
    }
    if (r == 0 && want->plan.cpus != NULL && want->plan.mems[0] != '\0') {
        *ret_file = "cpuset.mems";
        r = groupbox_write(b, 0, *ret_file, want->plan.mems);
    }
    return r;
}

static int write_key(const struct groupsite *s, const char *key, const char *file, const char *text)
{
    char path[GROUP_KEY_MAX + 32];

    snprintf(path, sizeof(path), "%s/%s", key, file);
    return groupfile_write(s->hier[0].dir, path, text, s->plain);
}

/* Frozen, a tree cannot fork; a killed process dies frozen too (unlike in version 1). */
static int kill_frozen(const struct groupsite *s, const char *key)
{
    int n = 0, before = -1;

    write_key(s, key, "cgroup.freeze", "1");
    for (int i = 0; i < KILL_ROUNDS && n != before; i++) {
        before = n;
        n = groupprocs_signal(s->hier[0].dir, key, SIGKILL);
        if (n <= 0)
            break;
    }
    write_key(s, key, "cgroup.freeze", "0");
    return n;
}

static int v2_kill(const struct groupsite *s, const char *key)
{
    int n = groupprocs_signal(s->hier[0].dir, key, 0), r;

    if (n <= 0)
        return n;
    r = write_key(s, key, "cgroup.kill", "1");
    if (r == -ENOENT)
        return kill_frozen(s, key);
    return r < 0 ? r : n;
}

/* What it holds at the moment, and how long it had to wait for its quota. */
static void v2_now(const struct groupbox *b, struct cw_box_usage *ret)
{
    int dir = b->site->hier[0].dir;
    char path[GROUP_KEY_MAX + 32];
    uint64_t anon = 0, shmem = 0, waited_us = 0;

    snprintf(path, sizeof(path), "%s/memory.current", b->key);
    groupfile_read_u64(dir, path, &ret->mem_now_bytes);
    snprintf(path, sizeof(path), "%s/memory.stat", b->key);
    groupfile_read_field(dir, path, "anon", &anon);
    groupfile_read_field(dir, path, "shmem", &shmem);
    ret->mem_anon_bytes = anon + shmem;
    snprintf(path, sizeof(path), "%s/cpu.stat", b->key);
    groupfile_read_field(dir, path, "throttled_usec", &waited_us);
    ret->throttled_ns = waited_us * 1000;
}

static int v2_usage(const struct groupbox *b, struct cw_box_usage *ret)
{
    int dir = b->site->hier[0].dir;
    char path[GROUP_KEY_MAX + 32];
    uint64_t kills = 0;

    snprintf(path, sizeof(path), "%s/cpu.stat", b->key);
    if (groupfile_read_field(dir, path, "user_usec", &ret->cpu_user_ns) == 0)
        ret->cpu_user_ns *= 1000;
    if (groupfile_read_field(dir, path, "system_usec", &ret->cpu_sys_ns) == 0)
        ret->cpu_sys_ns *= 1000;
    snprintf(path, sizeof(path), "%s/memory.peak", b->key);
    groupfile_read_u64(dir, path, &ret->mem_peak_bytes);
    snprintf(path, sizeof(path), "%s/memory.events", b->key);
    groupfile_read_field(dir, path, "oom_kill", &kills);
    ret->oom_kills = (uint32_t)kills;
    v2_now(b, ret);
    return 0;
}

const struct group_backend group_backend_v2 = {
    .source = "cgroup2",
    .entry = "cgroup.procs", .limit = v2_limit, .kill = v2_kill, .usage = v2_usage};
