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
    static const char *const probes[] = { "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs",
                                          "/sys/fs/cgroup/pids/cgroup.procs" };

    if (geteuid() != 0)
        return "none";
    for (size_t i = 0; i < CW_ARRAY_LEN(probes); i++) {
        if (access(probes[i], W_OK) == 0)
            return "cgroup";
    }
    return "none";
}

#define AT(field) offsetof(struct cw_conf, field)
static const struct cw_conf_row root_rows[] = {
    { .name = "cluster", .kind = CW_CONF_NAME, .offset = AT(cluster), .def = "crun",
      .doc = "Name of the cluster." },
    { .name = "dir", .kind = CW_CONF_BASEDIR, .offset = AT(dir), .def = ".",
      .doc = "Base of relative paths; itself relative to the directory of this file." },
    { .name = "state_dir", .kind = CW_CONF_PATH, .offset = AT(state_dir), .def = "state",
      .doc = "The controller's database." },
    { .name = "run_dir", .kind = CW_CONF_PATH, .offset = AT(run_dir), .def = "run",
      .doc = "Sockets and locks." },
    { .name = "node_dir", .kind = CW_CONF_PATH, .offset = AT(node_dir), .def = "node",
      .doc = "What a node keeps, in NODE_DIR/NAME." },
    { .name = "plugin_path", .kind = CW_CONF_PATHS, .offset = AT(plugin_path), .computed = cw_paths_plugins,
      .doc = "Directories of plugins, separated by colons." },
    { .name = "client_listen", .kind = CW_CONF_URL, .offset = AT(client_listen),
      .def = "ipc://@run_dir@/ctl.sock", .doc = "Where the controller listens for commands." },
    { .name = "node_listen", .kind = CW_CONF_URL, .offset = AT(node_listen),
      .def = "ipc://@run_dir@/nodes.sock", .doc = "Where the controller listens for nodes." },
    { .name = "client_connect", .kind = CW_CONF_URL, .offset = AT(client_connect), .def = "@client_listen@",
      .doc = "What commands dial." },
    { .name = "node_connect", .kind = CW_CONF_URL, .offset = AT(node_connect), .def = "@node_listen@",
      .doc = "What nodes dial." },
    { .name = "session_listen", .kind = CW_CONF_URL, .offset = AT(session_listen),
      .def = "ipc://@node_dir@/%n/log.sock",
      .doc = "A node's own socket for logs and sessions; %n is the node's name." },
    { .name = "key_file", .kind = CW_CONF_PATH, .offset = AT(key_file), .def = "key",
      .doc = "The cluster's key: 32 bytes, readable by its owner only." },
    { .name = "public_key_file", .kind = CW_CONF_PATH, .offset = AT(public_key_file), .def = "controller.pub",
      .doc = "The controller's public key as hex; everybody may read it." },
    { .name = "door", .kind = CW_CONF_SOCKET, .offset = AT(door), .def = "@run_dir@/door.sock",
      .doc = "The socket at which auth/key tells users apart." },
    { .name = "auth", .kind = CW_CONF_NAME, .offset = AT(auth), .def = "key", .doc = "The auth plugin." },
    { .name = "sched", .kind = CW_CONF_NAME, .offset = AT(sched), .def = "fifo", .doc = "The sched plugin." },
    { .name = "default_isolation", .kind = CW_CONF_NAME, .offset = AT(default_isolation),
      .computed = default_isolation,
      .doc = "The isolation plugin of jobs that name none: cgroup where cgroups can be made, else none." },
    { .name = "allow_users", .kind = CW_CONF_USERS, .offset = AT(allow_users), .def = "",
      .doc = "Who may submit, separated by commas; empty: everybody." },
    { .name = "admins", .kind = CW_CONF_USERS, .offset = AT(admins), .def = "",
      .doc = "Who may see and change everything, beside root and the owner of dir." },
    { .name = "allow_root_jobs", .kind = CW_CONF_BOOL, .offset = AT(allow_root_jobs), .def = "false",
      .doc = "Whether root may run jobs." },
    { .name = "slurm_env", .kind = CW_CONF_CHOICE, .offset = AT(slurm_env), .def = "auto",
      .choices = "auto yes no", .doc = "Whether jobs get SLURM_* variables; auto: those with #SBATCH lines." },
    { .name = "kill_grace", .kind = CW_CONF_SECONDS, .offset = AT(kill_grace_s), .def = "30", .max = 86400,
      .doc = "From SIGTERM to SIGKILL." },
    { .name = "heartbeat", .kind = CW_CONF_MS, .offset = AT(heartbeat_ms), .def = "5s", .min = 10,
      .max = 3600000, .doc = "How often a node tells the controller that it lives." },
    { .name = "node_lost", .kind = CW_CONF_SECONDS, .offset = AT(node_lost_s), .def = "60", .min = 1,
      .max = 604800, .doc = "Silence after which a node counts as lost." },
    { .name = "max_requeues", .kind = CW_CONF_COUNT32, .offset = AT(max_requeues), .def = "3", .max = 1000000,
      .doc = "How often a job is started again for a fault that is not its own." },
    { .name = "disk_reserve", .kind = CW_CONF_SIZE, .offset = AT(disk_reserve_bytes), .def = "64M",
      .doc = "Free space of state_dir below which no new work is taken." },
    { .name = "reserve_mem", .kind = CW_CONF_SIZE, .offset = AT(reserve_mem_bytes), .def = "0",
      .doc = "Memory of each node that jobs never get." },
    { .name = "reserve_cores", .kind = CW_CONF_COUNT32, .offset = AT(reserve_cores), .def = "0", .max = 65536,
      .doc = "Cores of each node that jobs never get." },
    { .name = "retention", .kind = CW_CONF_SECONDS64, .offset = AT(retention_s), .def = "30d",
      .max = CW_DURATION_MAX, .doc = "How long records of finished jobs are kept." },
    { .name = "max_array", .kind = CW_CONF_COUNT64, .offset = AT(max_array), .def = "1000000", .min = 1,
      .max = 100000000, .doc = "Most elements of one array." },
    { .name = "max_jobs", .kind = CW_CONF_COUNT64, .offset = AT(max_jobs), .def = "1000000", .min = 1,
      .max = 100000000, .doc = "Most jobs that are not finished; an array counts once." },
    { .name = "log_level", .kind = CW_CONF_CHOICE, .offset = AT(log_level), .def = "info",
      .choices = "error warn info debug", .doc = "What the daemons log." },
    { .name = "store_sync", .kind = CW_CONF_CHOICE, .offset = AT(store_sync), .def = "full",
      .choices = "full meta none",
      .doc = "full: nothing accepted is lost in a power cut; meta: the last commit may be; none: tests only." },
};
#undef AT

#define AT(field) offsetof(struct cw_conf_partition, field)
static const struct cw_conf_row partition_rows[] = {
    { .name = "nodes", .kind = CW_CONF_NODES, .offset = AT(nodes), .def = "ALL",
      .doc = "A host list, or ALL." },
    { .name = "default", .kind = CW_CONF_BOOL, .offset = AT(is_default), .def = "false",
      .doc = "Takes jobs that name no partition; without any, the first does." },
    { .name = "max_time", .kind = CW_CONF_JOBTIME, .offset = AT(max_time_s), .def = "unlimited",
      .doc = "Longest time limit; a bare number is minutes, as for --time." },
    { .name = "default_time", .kind = CW_CONF_JOBTIME, .offset = AT(default_time_s), .def = "1:00:00",
      .doc = "Time limit of jobs that give none (at most max_time)." },
    { .name = "default_mem", .kind = CW_CONF_SIZE, .offset = AT(default_mem_bytes), .def = "0",
      .doc = "Memory a core of jobs that give none; 0: the node's memory shared by cores." },
    { .name = "isolation", .kind = CW_CONF_OPTNAME, .offset = AT(isolation), .def = "",
      .doc = "Isolation plugin of jobs that name none; empty: default_isolation." },
};
#undef AT

#define AT(field) offsetof(struct cw_conf_plugin, field)
static const struct cw_conf_row plugin_rows[] = {
    { .name = "required", .kind = CW_CONF_BOOL, .offset = AT(required), .def = "false",
      .doc = "A daemon refuses to start without it." },
    { .name = "exec", .kind = CW_CONF_COMMAND, .offset = AT(exec), .def = "",
      .doc = "A program that speaks line JSON, instead of a shared object." },
};
#undef AT

static const struct cw_conf_section plugin_subs[] = { { .name = "options", .free_keys = true } };

static const struct cw_conf_section root_subs[] = {
    { .name = "partition", .titled = true, .rows = partition_rows, .n_rows = CW_ARRAY_LEN(partition_rows) },
    { .name = "plugin", .titled = true, .rows = plugin_rows, .n_rows = CW_ARRAY_LEN(plugin_rows),
      .subs = plugin_subs, .n_subs = CW_ARRAY_LEN(plugin_subs) },
};

const struct cw_conf_section cw_conf_schema_root = {
    .name = "", .rows = root_rows, .n_rows = CW_ARRAY_LEN(root_rows),
    .subs = root_subs, .n_subs = CW_ARRAY_LEN(root_subs),
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
