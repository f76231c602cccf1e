/* Reads a plan for a box that shares the machine's mounts and devices. Environment and hooks are
 * the shepherd's; device lines are advice here, nothing keeps a task from a device it may open
 * anyway. */
#include "isolation/boxplan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static int has_option(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, ",");
        if (n == len && strncmp(at, name, n) == 0)
            return 1;
        at += n + (at[n] == ',');
    }
    return 0;
}

/* A directory is where it is already; nothing can be put elsewhere or made read-only here. */
static int check_mount(const struct cw_plan_line *l, struct cw_plugin_err *err)
{
    const char *how = has_option(l->c, "ro") ? "read-only mount" : "mount";

    if (strcmp(l->a, l->b) == 0 && !has_option(l->c, "ro"))
        return 0;
    snprintf(err->text, sizeof(err->text), "%s of %.100s on %.100s needs a private box", how, l->a,
             l->b);
    return -EINVAL;
}

static void take_limit(const struct cw_plan_line *l, struct boxplan *b)
{
    if (strcmp(l->a, "memory") == 0)
        b->mem_bytes = l->n1;
    else if (strcmp(l->a, "pids") == 0)
        b->pids = l->n1;
    else if (strcmp(l->a, "nofile") == 0)
        b->nofile = l->n1;
    else if (strcmp(l->a, "core") == 0)
        b->core = l->n1;
}

int boxplan_read(const struct cw_host *host, const struct cw_task_view *task,
                 const struct cw_plan *plan, struct boxplan *ret, struct cw_plugin_err *err)
{
    struct boxplan b = {
        .mem_bytes = task->mem_bytes > 0 && task->mem_bytes <= INT64_MAX ? (int64_t)task->mem_bytes
                                                                         : BOXPLAN_NONE,
        .pids = BOXPLAN_NONE,
        .nofile = BOXPLAN_NONE,
        .core = BOXPLAN_NONE,
    };
    const struct cw_plan_line *l;

    for (uint32_t i = 0; plan != NULL && (l = host->plan_get(host, plan, i)) != NULL; i++) {
        if (l->kind == CW_PLAN_MOUNT && check_mount(l, err) < 0)
            return -EINVAL;
        if (l->kind == CW_PLAN_LIMIT)
            take_limit(l, &b);
        if (l->kind == CW_PLAN_CPUS) {
            b.cpus = l->a;
            b.mems = l->b;
        }
    }
    *ret = b;
    return 0;
}

static int set_rlimit(int64_t value, int resource)
{
    struct rlimit lim = {.rlim_cur = (rlim_t)value, .rlim_max = (rlim_t)value};

    if (value == BOXPLAN_NONE)
        return 0;
    return setrlimit((__rlimit_resource_t)resource, &lim) < 0 ? -errno : 0;
}

int boxplan_set_rlimits(const struct boxplan *b)
{
    int r = set_rlimit(b->nofile, RLIMIT_NOFILE);

    return r < 0 ? r : set_rlimit(b->core, RLIMIT_CORE);
}
