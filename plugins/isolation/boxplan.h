#pragma once
/* What an isolation plugin without a private box takes from a plan: CPUs, limits, and a refusal of
 * the rest. Shared by isolation/none and isolation/cgroup. Test: none/none_test.c. */
#include <crunwlm/plugin.h>

#define BOXPLAN_NONE (-1) /* no such limit */

struct boxplan {
    const char *cpus, *mems; /* borrowed from the plan; NULL: not bound */
    int64_t mem_bytes, pids; /* BOXPLAN_NONE: no limit */
    int64_t nofile, core;    /* become resource limits of the process */
};

/* -EINVAL: a mount whose target is not its source needs a private box. */
int boxplan_read(const struct cw_host *host, const struct cw_task_view *task,
                 const struct cw_plan *plan, struct boxplan *ret, struct cw_plugin_err *err);
/* Async-signal-safe. 0 or a negative errno. */
int boxplan_set_rlimits(const struct boxplan *b);
