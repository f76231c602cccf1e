/* Control groups, version 1: one hierarchy per controller.
 * https://docs.kernel.org/admin-guide/cgroup-v1/ */
#include "isolation/cgroup/groupbox.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "isolation/cgroup/groupfile.h"
#include "isolation/cgroup/groupprocs.h"

#define FREEZE_TRIES 100 /* a millisecond each; a task in an uninterruptible sleep freezes late */

static int limit_cpuset(const struct groupbox *b, const struct groupbox_want *want,
                        const char **ret_file)
{
    int h = groupbox_hier(b, GROUP_CPUSET), r;

    if (h < 0)
        return 0;
    *ret_file = "cpuset.cpus";
    r = groupbox_write(b, (size_t)h, *ret_file, want->plan.cpus);
    if (r < 0)
        return r;
    *ret_file = "cpuset.mems";
    return groupbox_write(b, (size_t)h, *ret_file, want->plan.mems);
}

/* memsw counts memory and swap together: the same limit for both leaves no swap. */
static int limit_memory(const struct groupbox *b, const struct groupbox_want *want,
                        const char **ret_file)
{
    int h = groupbox_hier(b, GROUP_MEMORY), r;

    if (h < 0 || want->plan.mem_bytes == BOXPLAN_NONE)
        return 0;
    *ret_file = "memory.limit_in_bytes";
    r = groupbox_write_i64(b, (size_t)h, *ret_file, want->plan.mem_bytes);
    if (r < 0 || want->swap)
        return r;
    *ret_file = "memory.memsw.limit_in_bytes";
    r = groupbox_write_i64(b, (size_t)h, *ret_file, want->plan.mem_bytes);
    return r == -ENOENT ? 0 : r; /* a kernel without swap accounting */
}

static int limit_pids(const struct groupbox *b, const struct groupbox_want *want,
                      const char **ret_file)
{
    int h = groupbox_hier(b, GROUP_PIDS);

    if (h < 0 || want->plan.pids == BOXPLAN_NONE)
        return 0;
    *ret_file = "pids.max";
    return groupbox_write_i64(b, (size_t)h, *ret_file, want->plan.pids);
}

static int v1_limit(const struct groupbox *b, const struct groupbox_want *want,
                    const char **ret_file)
{
    int r = limit_cpuset(b, want, ret_file);

    if (r == 0)
        r = limit_memory(b, want, ret_file);
    return r < 0 ? r : limit_pids(b, want, ret_file);
}

/* From FREEZING on no process of the group runs its own code, so nobody can fork away; the signal
 * is acted on after THAWED. */
static int v1_kill(const struct groupsite *s, const char *key)
{
    char path[GROUP_KEY_MAX + 32], state[32] = "";
    int dir = s->hier[0].dir, n = 0;
    int r;

    snprintf(path, sizeof(path), "%s/freezer.state", key);
    r = groupfile_write(dir, path, "FROZEN", s->plain);
    if (r < 0)
        return r == -ENOENT || r == -ENODEV ? 0 : r;
    for (int i = 0; i < FREEZE_TRIES; i++) {
        bool frozen = groupfile_read(dir, path, state, sizeof(state)) >= 0 &&
                      strncmp(state, "FROZEN", 6) == 0;
        n = groupprocs_signal(dir, key, SIGKILL);
        if (n <= 0 || frozen)
            break;
        poll(NULL, 0, 1);
    }
    r = groupfile_write(dir, path, "THAWED", s->plain);
    return r < 0 ? r : n;
}

static void read_into(const struct groupbox *b, unsigned controller, const char *file,
                      uint64_t *ret)
{
    int h = groupbox_hier(b, controller);
    char path[GROUP_KEY_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", b->key, file);
    if (h >= 0)
        groupfile_read_u64(b->site->hier[h].dir, path, ret);
}

static int v1_usage(const struct groupbox *b, struct cw_box_usage *ret)
{
    char path[GROUP_KEY_MAX + 64];
    int h = groupbox_hier(b, GROUP_MEMORY);
    uint64_t kills = 0, anon = 0, shmem = 0;

    read_into(b, GROUP_CPUACCT, "cpuacct.usage_user", &ret->cpu_user_ns);
    read_into(b, GROUP_CPUACCT, "cpuacct.usage_sys", &ret->cpu_sys_ns);
    read_into(b, GROUP_MEMORY, "memory.max_usage_in_bytes", &ret->mem_peak_bytes);
    read_into(b, GROUP_MEMORY, "memory.usage_in_bytes", &ret->mem_now_bytes);
    snprintf(path, sizeof(path), "%s/memory.oom_control", b->key);
    if (h >= 0)
        groupfile_read_field(b->site->hier[h].dir, path, "oom_kill", &kills);
    ret->oom_kills = (uint32_t)kills;
    snprintf(path, sizeof(path), "%s/memory.stat", b->key);
    if (h >= 0) {
        groupfile_read_field(b->site->hier[h].dir, path, "total_rss", &anon);
        groupfile_read_field(b->site->hier[h].dir, path, "total_shmem", &shmem);
    }
    ret->mem_anon_bytes = anon + shmem;
    return 0;
}

const struct group_backend group_backend_v1 = {
    .source = "cgroup1",
    .entry = "tasks", .limit = v1_limit, .kill = v1_kill, .usage = v1_usage};
