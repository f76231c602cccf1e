/* The table of submit options (contract: options.h). One row per spelling; a row that Slurm has and
 * we do not carry out is here too, with the reason, so that no flag is dropped in silence.
 * doc/slurm-compat.md shows the same rows (options_test.c compares). */
#include "spec/options.h"

#include <string.h>

#include "spec/optiontable.h"

#define SPEC(field) offsetof(Cw__JobSpec, field)
#define WISH(field) offsetof(struct cw_request, field)
#define OURS CW_OPTION_OURS
#define SLURM CW_OPTION_SUPPORTED

static const struct cw_option rows[] = {
    /* what runs */
    {"job-name", 'J', SLURM, "NAME", "name", cw_opt_name, SPEC(name), NULL,
     "name of the job (default: that of the file or command)"},
    {"wrap", 0, SLURM, "TEXT", "wrap", cw_opt_text, WISH(wrap), NULL,
     "run this text with /bin/sh instead of a file"},
    {"shell", 0, OURS, "PATH", "shell", cw_opt_shell, WISH(shell), NULL,
     "interpreter for a file that has no #! line"},
    {"directive-prefix", 0, OURS, "TEXT", "directive-prefix", cw_opt_prefix, WISH(directive_prefix),
     NULL, "read directives of this kind instead of #CRUN and #SBATCH"},
    {"chdir", 'D', SLURM, "DIR", "workdir", cw_opt_path, SPEC(workdir), NULL,
     "directory to run in (default: the current one)"},
    {"workdir", 0, OURS, "DIR", "workdir", cw_opt_path, SPEC(workdir), NULL, "the same as --chdir"},
    {"array", 'a', SLURM, "SPEC[%N]", "array", cw_opt_array, 0, "ARRAY_INX",
     "one element per index, as in 0-9,20-30:2; at most N at once"},
    {"each-line", 0, OURS, "FILE", "entries", cw_opt_text, WISH(each_line), NULL,
     "an array with an element for each line, which it finds in CRUN_ENTRY; -: standard input"},
    {"from-json", 0, OURS, "FILE", "entries", cw_opt_text, WISH(from_json), NULL,
     "the same for each value of a JSON array"},
    {"dependency", 'd', SLURM, "LIST", "dependency", cw_opt_dependency, 0, NULL,
     "start after others: afterok:ID[:ID...], afterany, afternotok, after:ID[+MIN], singleton; commas: all, ?: one"},
    {"hold", 'H', SLURM, NULL, "hold", cw_opt_hold, 0, NULL,
     "keep the job waiting until it is released"},
    /* what it gets */
    {"ntasks", 'n', SLURM, "N", "ntasks", cw_opt_ntasks, SPEC(ntasks), NULL,
     "number of tasks (default: one a node)"},
    {"cpus-per-task", 'c', SLURM, "N", "cpus-per-task", cw_opt_cpus, 0, NULL,
     "whole cores per task (default 1)"},
    {"mem", 0, SLURM, "SIZE", "mem", cw_opt_mem, 0, "MEM_PER_NODE",
     "memory on each node, MiB without a unit: 4G, 1500M"},
    {"mem-per-cpu", 0, SLURM, "SIZE", "mem", cw_opt_mem_per_cpu, 0, NULL,
     "memory per core; replaces --mem of a weaker source"},
    {"mem-per-gpu", 0, SLURM, "SIZE", "mem", cw_opt_mem_per_gpu, 0, NULL,
     "memory per GPU; replaces --mem of a weaker source"},
    {"gpus", 'G', SLURM, "[TYPE:]N", "gpus", cw_opt_gpus, 0, NULL, "number of GPUs"},
    {"gpus-per-node", 0, SLURM, "[TYPE:]N", "gpus", cw_opt_gpus_per_node, 0, NULL,
     "GPUs of each node"},
    {"gpus-per-task", 0, SLURM, "[TYPE:]N", "gpus", cw_opt_gpus_per_task, 0, NULL,
     "GPUs of each task"},
    {"gres", 0, SLURM, "gpu:[TYPE:]N", "gpus", cw_opt_gres, 0, NULL,
     "GPUs of each node; no other resources"},
    {"time", 't', SLURM, "TIME", "time", cw_opt_time, 0, "TIMELIMIT",
     "time limit: M, M:S, H:M:S, D-H:M:S, 90s, 2h, unlimited"},
    {"nodes", 'N', SLURM, "MIN[-MAX]", "nodes", cw_opt_nodes, 0, NULL,
     "number of nodes (default: as few as hold the tasks)"},
    {"ntasks-per-node", 0, SLURM, "N", "ntasks-per-node", cw_opt_ntasks_per_node, 0, NULL,
     "most tasks of a node; without --ntasks exactly so many of each"},
    {"partition", 'p', SLURM, "NAME", "partition", cw_opt_word, SPEC(partition), NULL,
     "partition to run in"},
    {"queue", 0, OURS, "NAME", "partition", cw_opt_word, SPEC(partition), NULL,
     "the same as --partition"},
    {"account", 'A', SLURM, "NAME", "account", cw_opt_word, SPEC(account), NULL,
     "account to charge"},
    {"isolation", 0, OURS, "NAME", "isolation", cw_opt_isolation, 0, NULL,
     "isolation plugin (default: the partition's)"},
    {"volume", 0, OURS, "SRC:DST[:ro]", "volume", cw_opt_volume, 0, NULL,
     "make a volume or directory visible at DST; repeatable"},
    {"vol", 0, OURS, "SRC:DST[:ro]", "volume", cw_opt_volume, 0, NULL, "the same as --volume"},
    {"kill-grace", 0, OURS, "SECONDS", "kill-grace", cw_opt_kill_grace, 0, NULL,
     "time between TERM and KILL"},
    {"signal", 0, SLURM, "[B:]SIG[@S]", "signal", cw_opt_signal, 0, NULL,
     "send SIG once, S seconds (60) before the limit; B: to the leader alone"},
    {"requeue", 0, SLURM, NULL, "requeue", cw_opt_requeue, 0, NULL,
     "run again after a node failure (default)"},
    {"no-requeue", 0, SLURM, NULL, "requeue", cw_opt_no_requeue, 0, NULL,
     "do not run again after a node failure"},
    {"kill-on-invalid-dep", 0, SLURM, "yes|no", "kill-on-invalid-dep", cw_opt_invalid_dep, 0, NULL,
     "no: wait for ever when a dependency can never be met (default yes: the job ends)"},
    {"keep-on-invalid-dep", 0, OURS, NULL, "kill-on-invalid-dep", cw_opt_keep_invalid_dep, 0, NULL,
     "the same as --kill-on-invalid-dep=no"},
    {"begin", 'b', SLURM, "TIME", "begin", cw_opt_begin, 0, NULL,
     "not before: now+2hours, 16:00, tomorrow, 2027-01-31T08:00"},
    {"deadline", 0, SLURM, "TIME", "deadline", cw_opt_deadline, 0, NULL,
     "ended by then, running or not"},
    {"retries", 0, OURS, "N", "retries", cw_opt_retries, 0, NULL,
     "run again up to N times after a failure"},
    {"retry-on", 0, OURS, "LIST", "retry-on", cw_opt_retry_on, 0, NULL,
     "which failures: exit:N, exit:N-M, signal:NAME, oom, timeout, fail (default: any)"},
    {"retry-delay", 0, OURS, "TIME", "retry-delay", cw_opt_retry_delay, 0, NULL,
     "before the first retry, doubled each time up to an hour; not for arrays"},
    {"nodelist", 'w', SLURM, "LIST", "nodelist", cw_opt_hosts, SPEC(nodelist), NULL,
     "these nodes and, with a larger --nodes, others too: n1,n[3-5]"},
    {"exclude", 'x', SLURM, "LIST", "exclude", cw_opt_hosts, SPEC(exclude), NULL,
     "none of these nodes"},
    {"constraint", 'C', SLURM, "LABELS", "constraint", cw_opt_constraint, SPEC(constraint), NULL,
     "only nodes with these labels: a100&!debug|(x&y)"},
    {"prefer", 0, SLURM, "LABELS", "prefer", cw_opt_constraint, SPEC(prefer), NULL,
     "rather nodes with these labels"},
    {"exclusive", 0, SLURM, "[=user]", "exclusive", cw_opt_exclusive, 0, NULL,
     "whole nodes that nobody else uses; =user is refused"},
    {"nice", 0, SLURM, "[=N]", "nice", cw_opt_nice, 0, NULL,
     "rank lower by N (default 100); negative for administrators"},
    {"priority", 0, SLURM, "N", "priority", cw_opt_priority, 0, NULL,
     "this rank instead of the computed one; administrators only"},
    {"time-est", 0, OURS, "TIME", "time-est", cw_opt_time_est, 0, NULL,
     "how long it will probably run: backfill plans with this, the limit stays"},
    /* input, output, environment */
    {"output", 'o', SLURM, "PATTERN", "output", cw_opt_outpath, SPEC(stdout_path), NULL,
     "output file, %j = job id (default crun-%j.out); none: discard"},
    {"error", 'e', SLURM, "PATTERN", "error", cw_opt_outpath, SPEC(stderr_path), NULL,
     "file for standard error (default: with the output)"},
    {"input", 'i', SLURM, "PATTERN", "input", cw_opt_outpath, SPEC(stdin_path), NULL,
     "file for standard input (default: none)"},
    {"open-mode", 0, SLURM, "append|truncate", "open-mode", cw_opt_open_mode, 0, NULL,
     "how output files are opened (default append)"},
    {"env", 0, OURS, "NAME=VALUE", "env", cw_opt_env, 0, NULL,
     "set a variable in the job; repeatable"},
    {"export", 0, SLURM, "ALL|NONE|LIST", "export", cw_opt_export, WISH(export_rule), NULL,
     "which variables the job gets (default ALL); LIST holds NAME and NAME=VALUE"},
    /* notes */
    {"comment", 0, SLURM, "TEXT", "comment", cw_opt_note, SPEC(comment), NULL, "kept with the job"},
    {"label", 0, OURS, "KEY=VALUE", "label", cw_opt_label, 0, NULL,
     "kept with the job, for selecting; repeatable"},
    /* the command itself */
    {"wait", 'W', SLURM, NULL, "wait", cw_opt_wish, WISH(wait), NULL,
     "wait for the end and exit with the job's status"},
    {"parsable", 0, SLURM, NULL, "parsable", cw_opt_wish, WISH(parsable), NULL,
     "print the id only"},
    {"json", 0, OURS, NULL, "json", cw_opt_wish, WISH(json), NULL, "print JSON"},
    {"test-only", 0, SLURM, NULL, "test-only", cw_opt_wish, WISH(test_only), NULL,
     "check and show the request, submit nothing"},
    {"quiet", 'Q', SLURM, NULL, "quiet", cw_opt_wish, WISH(quiet), NULL,
     "print nothing but errors"},
    {"help", 'h', SLURM, NULL, "help", cw_opt_wish, WISH(help), NULL, "print this text"},
    {"version", 'V', SLURM, NULL, "version", cw_opt_wish, WISH(version), NULL, "print the version"},

/* clang-format off: one row a line */
#define WARNED(name, letter, argument, why) \
    {name, letter, CW_OPTION_WARNED, argument, name, NULL, 0, NULL, why}
#define REFUSED(name, letter, argument, why) \
    {name, letter, CW_OPTION_REFUSED, argument, name, NULL, 0, NULL, why}
    WARNED("acctg-freq", 0, "LIST", "usage is read from the kernel, not sampled"),
    REFUSED("batch", 0, "LIST", "node features cannot be asked for yet"),
    REFUSED("bb", 0, "SPEC", "there are no burst buffers"),
    REFUSED("bbf", 0, "FILE", "there are no burst buffers"),
    REFUSED("cluster-constraint", 0, "LIST", "there is one cluster"),
    REFUSED("clusters", 'M', "LIST", "there is one cluster"),
    REFUSED("container", 0, "PATH", "containers cannot be asked for yet"),
    REFUSED("container-id", 0, "ID", "containers cannot be asked for yet"),
    WARNED("contiguous", 0, NULL, "nodes are not numbered by place"),
    REFUSED("core-spec", 'S', "N", "cores cannot be set aside for the system by a job"),
    REFUSED("cores-per-socket", 0, "N", "the shape of a node cannot be asked for yet"),
    WARNED("cpu-bind", 0, "RULE", "tasks are always bound to the cores of the job"),
    WARNED("cpu-freq", 0, "RULE", "CPU frequencies are not set"),
    REFUSED("cpus-per-gpu", 0, "N", "use --cpus-per-task"),
    WARNED("delay-boot", 0, "MINUTES", "nodes are not booted for a job"),
    WARNED("distribution", 'm', "RULE", "tasks are spread evenly over the nodes"),
    REFUSED("export-file", 0, "FILE", "use --env or --export"),
    WARNED("extra", 0, "TEXT", "only a site's plugin would read it; use --label or --comment"),
    REFUSED("extra-node-info", 'B', "SPEC", "the shape of a node cannot be asked for yet"),
    WARNED("get-user-env", 0, "[=TIME]", "the job gets the environment of the submit command"),
    REFUSED("gid", 0, "GROUP", "a job runs as whoever submits it"),
    WARNED("gpu-bind", 0, "RULE", "all processes of a job see all its GPUs"),
    WARNED("gpu-freq", 0, "RULE", "GPU frequencies are not set"),
    REFUSED("gpus-per-socket", 0, "[TYPE:]N", "use --gpus"),
    WARNED("gres-flags", 0, "LIST", "cores near the GPUs are preferred anyway"),
    WARNED("hint", 0, "RULE", "whole cores are granted, with all their threads"),
    WARNED("ignore-pbs", 0, NULL, "#PBS lines are never read"),
    REFUSED("immediate", 'I', "[=SECONDS]", "a batch job cannot be dropped for not starting at once"),
    WARNED("kill-on-bad-exit", 'K', "[=0|1]", "a batch job has one task that the daemon starts"),
    REFUSED("licenses", 'L', "LIST", "licences cannot be counted yet"),
    WARNED("mail-type", 0, "LIST", "no mail is sent; use crun-wait"),
    WARNED("mail-user", 0, "ADDRESS", "no mail is sent; use crun-wait"),
    REFUSED("mcs-label", 0, "LABEL", "there are no security labels"),
    WARNED("mem-bind", 0, "RULE", "memory is local to the job's cores where the kernel can"),
    REFUSED("mincpus", 0, "N", "use --cpus-per-task or --ntasks"),
    REFUSED("network", 0, "RULE", "interconnect resources cannot be asked for"),
    WARNED("no-kill", 'k', "[=off]", "a job ends with the first of its nodes"),
    REFUSED("nodefile", 'F', "FILE", "nodes cannot be chosen by name yet"),
    REFUSED("ntasks-per-core", 0, "N", "whole cores are granted"),
    REFUSED("ntasks-per-gpu", 0, "N", "use --ntasks and --gpus"),
    REFUSED("ntasks-per-socket", 0, "N", "the shape of a node cannot be asked for yet"),
    REFUSED("overcommit", 'O', NULL, "a core is never promised twice"),
    REFUSED("oversubscribe", 's', NULL, "a core is never shared"),
    WARNED("power", 0, "FLAGS", "power is not managed per job"),
    WARNED("profile", 0, "LIST", "no profiles are taken; usage is in crun-acct"),
    WARNED("propagate", 0, "[=LIST]", "limits come from the node's configuration"),
    WARNED("qos", 'q', "NAME", "there are no classes of service yet: all jobs are equal"),
    REFUSED("reboot", 0, NULL, "a job cannot reboot a node"),
    REFUSED("reservation", 0, "NAME", "there are no reservations yet"),
    WARNED("resv-ports", 0, "[=N]", "ports are not handed out"),
    WARNED("segment", 0, "N", "switches are not known"),
    REFUSED("sockets-per-node", 0, "N", "the shape of a node cannot be asked for yet"),
    WARNED("spread-job", 0, NULL, "give --nodes"),
    WARNED("stepmgr", 0, NULL, "there is nothing to switch on"),
    WARNED("switches", 0, "N[@TIME]", "switches are not known"),
    REFUSED("thread-spec", 0, "N", "threads cannot be set aside for the system by a job"),
    REFUSED("threads-per-core", 0, "N", "whole cores are granted, with all their threads"),
    REFUSED("time-min", 0, "TIME", "a limit is not shortened to start earlier"),
    REFUSED("tmp", 0, "SIZE", "disk space cannot be asked for yet"),
    WARNED("tres-bind", 0, "RULE", "all processes of a job see all it got"),
    REFUSED("tres-per-task", 0, "LIST", "use --cpus-per-task, --mem and --gpus"),
    REFUSED("uid", 0, "USER", "a job runs as whoever submits it"),
    WARNED("unbuffered", 'u', NULL, "output goes straight into the file"),
    WARNED("use-min-nodes", 0, NULL, "the fewest nodes are taken anyway"),
    WARNED("verbose", 'v', NULL, "use --test-only to see the request"),
    WARNED("wait-all-nodes", 0, "0|1", "a job starts when all its nodes are ready"),
    WARNED("wckey", 0, "KEY", "there are no workload keys; use --label"),
};
/* clang-format on */

const struct cw_option *cw_option_at(size_t i)
{
    return i < CW_ARRAY_LEN(rows) ? &rows[i] : NULL;
}

const struct cw_option *cw_option_find(const char *name)
{
    bool one = name[0] != '\0' && name[1] == '\0';
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        if (one ? rows[i].letter == name[0] : strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* Levenshtein distance by one row; names longer than its room are never close. */
static size_t distance(const char *a, const char *b)
{
    size_t d[32];
    size_t n = strlen(b);
    if (n >= CW_ARRAY_LEN(d))
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        d[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = d[0];
        d[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = d[j];
            best = d[j] + 1 < best ? d[j] + 1 : best;
            d[j] = d[j - 1] + 1 < best ? d[j - 1] + 1 : best;
        }
    }
    return d[n];
}

const char *cw_option_suggest(const char *name)
{
    const char *best = NULL;
    size_t best_distance = 3, n = strlen(name);
    if (n < 2 || n > 32)
        return NULL;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        size_t d = strncmp(rows[i].name, name, n) == 0 ? 1 : distance(name, rows[i].name);
        if (d < best_distance) {
            best_distance = d;
            best = rows[i].name;
        }
    }
    return best;
}

void cw_options_each(void (*fn)(const char *name, char letter, const char *argument,
                                const char *help, const char *status, void *arg),
                     void *arg)
{
    static const char *const words[] = {"ours", "supported", "warned", "refused"};
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        fn(rows[i].name, rows[i].letter, rows[i].argument, rows[i].help, words[rows[i].status],
           arg);
}

static void help_line(const struct cw_option *o, struct cw_buf *out)
{
    cw_autobuf struct cw_buf left = {0};
    if (o->letter != 0)
        cw_buf_addf(&left, "  -%c, --%s", o->letter, o->name);
    else
        cw_buf_addf(&left, "      --%s", o->name);
    if (o->argument != NULL)
        cw_buf_addf(&left, "=%s", o->argument);
    cw_buf_addf(out, "%-33s %s\n", cw_buf_str(&left), o->help);
}

void cw_options_help(struct cw_buf *out)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        if (rows[i].status <= CW_OPTION_SUPPORTED)
            help_line(&rows[i], out);
    cw_buf_add_str(out, "Other options of sbatch are refused, or ignored with a warning: "
                        "see slurm-compat.\n");
}
