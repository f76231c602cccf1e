/* isolation/cgroup: a control group per task. Memory, processes and CPUs are limited by the kernel,
 * and every process of the task is found and killed whatever it does; mounts, pids and network are
 * shared with the machine (a plan that mounts something elsewhere needs another plugin).
 *
 * The site (where groups are made) is opened by the first call that needs it, since the controller
 * loads this plugin too and must not make groups. Test: cgroup_test.c. */
#include <crunwlm/plugin.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/boxplan.h"
#include "isolation/cgroup/groupbox.h"
#include "isolation/cgroup/groupsite.h"

#define SITE_TRIES 3 /* another process of ours may remove the empty base while we open it */

struct cgroup_ctx {
    const struct cw_host *host;
    struct groupsite_options options;
    int64_t pids; /* default limit, BOXPLAN_NONE: none */
    bool swap;
    struct groupsite site;
};

static const struct cw_option options[] = {
    {"base", CW_OPT_STRING, "", "group below which boxes are made; empty: crun-wlm/CLUSTER/NODE"},
    {"pids", CW_OPT_INT, "0", "most processes and threads of a task; 0: no limit"},
    {"require", CW_OPT_STRING, "memory", "controllers that must be there, separated by commas"},
    {"root", CW_OPT_STRING, "", "directory that stands for the mount point, for tests"},
    {"swap", CW_OPT_BOOL, "false", "may memory beyond the limit go to swap"},
    {"version", CW_OPT_STRING, "auto", "auto, 1 or 2"},
    {NULL, CW_OPT_STRING, NULL, NULL},
};

static int refuse(struct cw_plugin_err *err, const char *option, const char *value,
                  const char *allowed)
{
    snprintf(err->text, sizeof(err->text), "option '%s': '%.100s', allowed: %s", option, value,
             allowed);
    return -EINVAL;
}

/* Every name of the list must be one of ours. */
static int parse_require(const char *list, unsigned *ret, struct cw_plugin_err *err)
{
    unsigned set = 0;

    for (const char *at = list; *at != '\0';) {
        size_t len = strcspn(at, ",");
        unsigned bit = group_controller_parse(at, len);
        if (bit == 0)
            return refuse(err, "require", list, "freezer, cpuacct, memory, pids, cpuset");
        set |= bit;
        at += len + (at[len] == ',');
    }
    *ret = set;
    return 0;
}

static int cgroup_open(const struct cw_host *host, void **ret_ctx, struct cw_plugin_err *err)
{
    struct cgroup_ctx *c = calloc(1, sizeof(*c));
    const char *version;
    int64_t pids;
    int r;

    if (c == NULL)
        return -ENOMEM;
    c->host = host;
    c->options.root = host->option(host, "root");
    c->options.base = host->option(host, "base");
    c->options.version = version = host->option(host, "version");
    c->swap = strcmp(host->option(host, "swap"), "true") == 0;
    pids = strtoll(host->option(host, "pids"), NULL, 10);
    c->pids = pids > 0 ? pids : BOXPLAN_NONE;
    r = parse_require(host->option(host, "require"), &c->options.require, err);
    if (r == 0 && strcmp(version, "auto") != 0 && strcmp(version, "1") != 0 &&
        strcmp(version, "2") != 0)
        r = refuse(err, "version", version, "auto, 1, 2");
    if (r < 0) {
        free(c);
        return r;
    }
    *ret_ctx = c;
    return 0;
}

static void cgroup_close(void *ctx)
{
    struct cgroup_ctx *c = ctx;

    groupsite_close(&c->site, true);
    free(c);
}

static int site_need(struct cgroup_ctx *c, struct cw_plugin_err *err)
{
    int r = -ENOENT;

    for (int i = 0; i < SITE_TRIES && !c->site.is_open && r < 0; i++)
        r = groupsite_open(&c->site, c->host, &c->options, err);
    return c->site.is_open ? 0 : r;
}

static int cgroup_probe(void *ctx, struct cw_plugin_err *err)
{
    return site_need(ctx, err) < 0 ? -ENOTSUP : 0;
}

/* -ENOENT: another process, sweeping or ending, removed our empty base. It is made anew. */
static int create_box(struct cgroup_ctx *c, const char *key, const struct groupbox_want *want,
                      struct groupbox **ret, struct cw_plugin_err *err)
{
    int r = groupbox_create(&c->site, key, want, ret, err);

    for (int i = 0; i < SITE_TRIES && r == -ENOENT; i++) {
        struct groupsite fresh;
        r = groupsite_open(&fresh, c->host, &c->options, err);
        if (r < 0)
            continue;
        groupsite_close(&c->site, false);
        c->site = fresh; /* boxes refer to it by its place, which stays */
        r = groupbox_create(&c->site, key, want, ret, err);
    }
    return r;
}

static int cgroup_prepare(void *ctx, const struct cw_task_view *task, const struct cw_plan *plan,
                          void **ret_box, struct cw_plugin_err *err)
{
    struct cgroup_ctx *c = ctx;
    struct groupbox_want want = {.swap = c->swap};
    struct groupbox *b = NULL;
    int r = boxplan_read(c->host, task, plan, &want.plan, err);

    if (want.plan.pids == BOXPLAN_NONE)
        want.plan.pids = c->pids;
    if (r == 0)
        r = site_need(c, err);
    if (r == 0)
        r = create_box(c, task->key, &want, &b, err);
    if (r < 0)
        return r;
    *ret_box = b;
    return 0;
}

static int cgroup_enter(void *ctx, void *box)
{
    (void)ctx;
    return groupbox_enter(box);
}

static int cgroup_signal(void *ctx, void *box, int sig)
{
    (void)ctx;
    return groupbox_signal(box, sig);
}

static int cgroup_kill(void *ctx, void *box)
{
    (void)ctx;
    return groupbox_kill(box);
}

static int cgroup_usage(void *ctx, void *box, struct cw_box_usage *ret)
{
    const struct groupbox *b = box;

    (void)ctx;
    *ret = (struct cw_box_usage){.size = sizeof(*ret), .source = b->site->backend->source};
    return b->site->backend->usage(b, ret);
}

static int cgroup_release(void *ctx, void *box)
{
    (void)ctx;
    return box == NULL ? 0 : groupbox_destroy(box);
}

static int cgroup_reclaim(void *ctx, const char *key, struct cw_plugin_err *err)
{
    struct cgroup_ctx *c = ctx;
    int r = site_need(c, err);

    return r < 0 ? r : groupbox_reclaim(&c->site, key, err);
}

static const struct cw_isolation_ops ops = {
    .probe = cgroup_probe,
    .prepare = cgroup_prepare,
    .enter = cgroup_enter,
    .signal = cgroup_signal,
    .kill = cgroup_kill,
    .usage = cgroup_usage,
    .release = cgroup_release,
    .reclaim = cgroup_reclaim,
};

CW_PLUGIN_EXPORT const struct cw_plugin cw_plugin = {
    .magic = CW_PLUGIN_MAGIC,
    .size = sizeof(struct cw_plugin),
    .abi_major = CW_PLUGIN_ABI_MAJOR,
    .abi_minor = CW_PLUGIN_ABI_MINOR,
    .family = "isolation",
    .name = "cgroup",
    .version = "1.0",
    .caps = CW_ISOLATION_CAP_LIMITS | CW_ISOLATION_CAP_CPUSET | CW_ISOLATION_CAP_CONTAIN,
    .options = options,
    .open = cgroup_open,
    .close = cgroup_close,
    .ops = &ops,
    .ops_size = sizeof(ops),
};
