/* reload.c: the new configuration is built and checked aside, then swapped in one step. What cannot
 * change in a running process keeps the value that it started with (cw_conf_keep); everything else
 * is read from c->conf whenever it is needed, so that the swap is all it takes, or is applied here:
 * partitions, administrators, log level, the policy of the pass. Runs on the loop thread: the file
 * is small, and an administrator waits for the answer. */
#include "ctld/reload.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "ctld/users.h"
#include "model/job.h"
#include "model/node.h"

static const char *const live[] = {
    "backfill",     "backfill_depth", "default_isolation", "allow_users",  "admins", "allow_root_jobs",
    "slurm_env",    "kill_grace",     "node_lost",         "max_requeues", "disk_reserve",
    "retention",    "max_array",      "max_jobs",          "log_level",    NULL,
};

enum cw_backfill cw_reload_backfill(const struct cw_conf *conf)
{
    if (strcmp(conf->backfill, "easy") == 0)
        return CW_BACKFILL_EASY;
    return strcmp(conf->backfill, "none") == 0 ? CW_BACKFILL_NONE : CW_BACKFILL_CONSERVATIVE;
}

int cw_partition_of_conf(const struct cw_conf *conf, const struct cw_conf_partition *p,
                         struct cw_partition *ret, struct cw_strv *names, struct cw_error *err)
{
    *ret = (struct cw_partition){
        .name = p->name,
        .is_default = p->is_default,
        .max_time_s = p->max_time_s,
        .default_time_s = p->default_time_s,
        .default_mem_bytes = p->default_mem_bytes,
        .isolation = p->isolation,
        .all_nodes = strcmp(p->nodes, "ALL") == 0,
    };
    if (ret->all_nodes)
        return 0;
    int rc = cw_hostlist_parse(p->nodes, names, err);
    if (rc < 0)
        return cw_wrap(err, rc, "%s:%d: partition %s", conf->path, p->line, p->name);
    ret->nodes = cw_strtable_create();
    for (size_t i = 0; i < names->n; i++)
        cw_strtable_set(ret->nodes, names->v[i], names->v[i]);
    return 0;
}

static int set_partitions(struct cw_ctld *c, const struct cw_conf *conf, struct cw_error *err)
{
    size_t n = conf->n_partitions, k = 0;
    struct cw_partition *parts = cw_xcalloc(n + 1, sizeof *parts);
    struct cw_strv *names = cw_xcalloc(n + 1, sizeof *names);
    int rc = 0;
    for (; rc == 0 && k < n; k++)
        rc = cw_partition_of_conf(conf, &conf->partitions[k], &parts[k], &names[k], err);
    if (rc == 0) {
        rc = cw_model_partitions_set(c->model, parts, n);
        if (rc < 0)
            cw_fail_errno(err, rc, "%s: %zu partitions", conf->path, n);
    }
    for (size_t i = 0; i < k; i++) {
        cw_strtable_destroy(parts[i].nodes);
        cw_strv_fini(&names[i]);
    }
    free(parts);
    free(names);
    return rc;
}

static void set_log_level(const struct cw_conf *old, const struct cw_conf *next)
{
    enum cw_log_level level;
    if (strcmp(old->log_level, next->log_level) != 0 &&
        cw_log_parse_level(next->log_level, &level) == 0)
        cw_log_set_level(level);
}

static void swap_in(struct cw_ctld *c, struct cw_conf *next)
{
    struct cw_conf *old = c->conf;
    set_log_level(old, next);
    c->conf = next;
    c->policy.backfill = cw_reload_backfill(next);
    c->policy.depth = next->backfill_depth;
    if (old != c->start_conf)
        cw_conf_destroy(old);
}

int cw_reload(struct cw_ctld *c, uint32_t uid, struct cw_buf *ret, struct cw_error *err)
{
    struct cw_conf *next = NULL;
    struct cw_adminlist admins = {0};
    cw_autobuf struct cw_buf kept = {0};
    int rc = cw_conf_load(c->start_conf->path, &next, err);
    if (rc == 0)
        rc = cw_users_read_admins(next, &admins, err);
    if (rc == 0)
        cw_conf_keep(next, c->start_conf, live, &kept);
    if (rc == 0)
        rc = set_partitions(c, next, err); /* the last that can fail */
    if (rc < 0) {
        free(admins.uids);
        cw_conf_destroy(next);
        cw_log_error("reload: %s", err->text);
        return rc;
    }
    free(c->admin_uids);
    c->admin_uids = admins.uids;
    c->n_admin_uids = admins.n;
    swap_in(c, next);
    cw_buf_add_str(ret, "the configuration is read again");
    if (kept.len > 0)
        cw_buf_addf(ret, "; needs a restart: %s", cw_buf_str(&kept));
    cw_model_site_event(c->model, uid, "reload", cw_buf_str(ret));
    cw_log_info("reload: %s", cw_buf_str(ret));
    return 0;
}
