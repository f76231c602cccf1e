/* The one table of what a configuration may say.
 *
 * Rows are read in order, and a default may name only earlier rows. Test: conf_test.c. */
#include "config.h"

#include "conf/conf_schema.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/paths.h"
#include "base/quantity.h"
#include "conf/conf.h"

/* Where the kernel lets us make cgroups, jobs are put into them; see ISOLATION in crun.conf(5). */
static const char *default_isolation(void)
{
    static const char *const probes[] = { "/sys/fs/cgroup/cgroup.procs",
                                          "/sys/fs/cgroup/memory/cgroup.procs",
                                          "/sys/fs/cgroup/pids/cgroup.procs" };

    if (geteuid() != 0)
        return "none";
    for (size_t i = 0; i < CW_ARRAY_LEN(probes); i++) {
        if (access(probes[i], W_OK) == 0)
            return "cgroup";
    }
    return "none";
}

/* name, kind, field, default as written in a file, explanation, and what few rows have */
#define ROW(n, k, f, d, text, ...)                                                                 \
    {                                                                                              \
        .name = n, .kind = CW_CONF_##k, .offset = AT(f), .def = d, .doc = text, ##__VA_ARGS__      \
    }

#define AT(field) offsetof(struct cw_conf, field)
static const struct cw_conf_row root_rows[] = {
    ROW("cluster", NAME, cluster, "crun", "Name of the cluster."),
    ROW("dir", BASEDIR, dir, ".",
        "Base of relative paths; itself relative to the directory of this file."),
    ROW("state_dir", PATH, state_dir, "state", "The controller's database."),
    ROW("run_dir", PATH, run_dir, "run", "Sockets and locks."),
    ROW("node_dir", PATH, node_dir, "node", "What a node keeps, in NODE_DIR/NAME."),
    ROW("plugin_path", PATHS, plugin_path, NULL, "Directories of plugins, separated by colons.",
        .computed = cw_paths_plugins),
    ROW("client_listen", URL, client_listen, "ipc://@run_dir@/ctl.sock",
        "Where the controller listens for commands."),
    ROW("node_listen", URL, node_listen, "ipc://@run_dir@/nodes.sock",
        "Where the controller listens for nodes."),
    ROW("client_connect", URL, client_connect, "@client_listen@", "What commands dial."),
    ROW("node_connect", URL, node_connect, "@node_listen@", "What nodes dial."),
    ROW("session_listen", URL, session_listen, "ipc://@node_dir@/%n/log.sock",
        "A node's own socket for logs and sessions; %n is the node's name."),
    ROW("key_file", PATH, key_file, "key",
        "The cluster's key: 32 bytes, readable by its owner only."),
    ROW("public_key_file", PATH, public_key_file, "controller.pub",
        "The controller's public key as hex; everybody may read it."),
    ROW("door", SOCKET, door, "@run_dir@/door.sock",
        "The socket at which auth/key tells users apart."),
    ROW("auth", NAME, auth, "key", "The auth plugin."),
    ROW("sched", NAME, sched, "fifo", "The sched plugin."),
    ROW("backfill", CHOICE, backfill, "easy",
        "What may start behind a job that waits for room.",
        .choices = "easy conservative none"),
    ROW("backfill_depth", COUNT32, backfill_depth, "50",
        "Waiting jobs of a partition that conservative backfill keeps room for.", .min = 1,
        .max = 100000),
    ROW("default_isolation", NAME, default_isolation, NULL,
        "The isolation plugin of jobs that name none: cgroup where cgroups can be made, else none.",
        .computed = default_isolation),
    ROW("allow_users", USERS, allow_users, "",
        "Who may submit, separated by commas; empty: everybody."),
    ROW("admins", USERS, admins, "",
        "Who may see and change everything, beside root and the owner of dir."),
    ROW("allow_root_jobs", BOOL, allow_root_jobs, "false", "Whether root may run jobs."),
    ROW("slurm_env", CHOICE, slurm_env, "auto",
        "Whether jobs get SLURM_* variables; auto: those with #SBATCH lines.",
        .choices = "auto yes no"),
    ROW("kill_grace", SECONDS, kill_grace_s, "30", "From SIGTERM to SIGKILL.", .max = 86400),
    ROW("heartbeat", MS, heartbeat_ms, "5s", "How often a node tells the controller that it lives.",
        .min = 10, .max = 3600000),
    ROW("node_lost", SECONDS, node_lost_s, "60", "Silence after which a node counts as lost.",
        .min = 1, .max = 604800),
    ROW("max_requeues", COUNT32, max_requeues, "3",
        "How often a job is started again for a fault that is not its own.", .max = 1000000),
    ROW("disk_reserve", SIZE, disk_reserve_bytes, "64M",
        "Free space of state_dir below which no new work is taken."),
    ROW("reserve_mem", SIZE, reserve_mem_bytes, "0", "Memory of each node that jobs never get."),
    ROW("reserve_cores", COUNT32, reserve_cores, "0", "Cores of each node that jobs never get.",
        .max = 65536),
    ROW("retention", SECONDS64, retention_s, "30d", "How long records of finished jobs are kept.",
        .max = CW_DURATION_MAX),
    ROW("max_array", COUNT64, max_array, "1000000", "Most elements of one array.", .min = 1,
        .max = 100000000),
    ROW("max_jobs", COUNT64, max_jobs, "1000000",
        "Most jobs that are not finished; an array counts once.", .min = 1, .max = 100000000),
    ROW("log_level", CHOICE, log_level, "info", "What the daemons log.",
        .choices = "error warn info debug"),
    ROW("store_sync", CHOICE, store_sync, "full",
        "full: nothing accepted is lost in a power cut; meta: the last commit may be; none: tests "
        "only.",
        .choices = "full meta none"),
};
#undef AT

#define AT(field) offsetof(struct cw_conf_partition, field)
static const struct cw_conf_row partition_rows[] = {
    ROW("nodes", NODES, nodes, "ALL", "A host list, or ALL."),
    ROW("default", BOOL, is_default, "false",
        "Takes jobs that name no partition; without any, the first does."),
    ROW("max_time", JOBTIME, max_time_s, "unlimited",
        "Longest time limit; a bare number is minutes, as for --time."),
    ROW("default_time", JOBTIME, default_time_s, "1:00:00",
        "Time limit of jobs that give none (at most max_time)."),
    ROW("default_mem", SIZE, default_mem_bytes, "0",
        "Memory a core of jobs that give none; 0: the node's memory shared by cores."),
    ROW("isolation", OPTNAME, isolation, "",
        "Isolation plugin of jobs that name none; empty: default_isolation."),
};
#undef AT

#define AT(field) offsetof(struct cw_conf_plugin, field)
static const struct cw_conf_row plugin_rows[] = {
    ROW("required", BOOL, required, "false", "A daemon refuses to start without it."),
    ROW("exec", COMMAND, exec, "", "A program that speaks line JSON, instead of a shared object."),
};
#undef AT

static const struct cw_conf_section plugin_subs[] = { { .name = "options", .free_keys = true } };

static const struct cw_conf_section root_subs[] = {
    { .name = "partition",
      .titled = true,
      .rows = partition_rows,
      .n_rows = CW_ARRAY_LEN(partition_rows) },
    { .name = "plugin",
      .titled = true,
      .rows = plugin_rows,
      .n_rows = CW_ARRAY_LEN(plugin_rows),
      .subs = plugin_subs,
      .n_subs = CW_ARRAY_LEN(plugin_subs) },
};

const struct cw_conf_section cw_conf_schema_root = {
    .name = "",
    .rows = root_rows,
    .n_rows = CW_ARRAY_LEN(root_rows),
    .subs = root_subs,
    .n_subs = CW_ARRAY_LEN(root_subs),
};

const struct cw_conf_row *cw_conf_schema_row(const struct cw_conf_section *s, const char *name)
{
    for (size_t i = 0; i < s->n_rows; i++) {
        if (strcmp(s->rows[i].name, name) == 0)
            return &s->rows[i];
    }
    return NULL;
}

const struct cw_conf_section *cw_conf_schema_sub(const struct cw_conf_section *s, const char *name)
{
    for (size_t i = 0; i < s->n_subs; i++) {
        if (strcmp(s->subs[i].name, name) == 0)
            return &s->subs[i];
    }
    return NULL;
}

#define NEAR_MAX 32

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;

    return m < c ? m : c;
}

/* Edit distance (Levenshtein 1965), two rows at a time. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[NEAR_MAX + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > NEAR_MAX || m > NEAR_MAX)
        return NEAR_MAX;
    for (unsigned j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[m];
}

const char *cw_conf_schema_nearest(const struct cw_conf_section *s, const char *name)
{
    const char *best = NULL;
    unsigned least = 4; /* three typing mistakes, and fewer than half of the letters */

    for (size_t i = 0; i < s->n_rows + s->n_subs; i++) {
        const char *known = i < s->n_rows ? s->rows[i].name : s->subs[i - s->n_rows].name;
        unsigned d = distance(name, known);
        if (d < least && d * 2 <= strlen(known)) {
            least = d;
            best = known;
        }
    }
    return best;
}
