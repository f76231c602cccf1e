#pragma once
/* The row of the option table (options.c), for the units that read options (request.c, optwords.c) and
 * carry them out (optvalue.c). Nobody outside src/spec includes this. */
#include "spec/options.h"

enum cw_option_status {
    CW_OPTION_OURS,      /* not Slurm's */
    CW_OPTION_SUPPORTED, /* means what it means in Slurm */
    CW_OPTION_WARNED,    /* ignored with one warning */
    CW_OPTION_REFUSED    /* would change what the job gets */
};

struct cw_option;
/* Checks value and carries it out on r->spec or r. NULL value only for options without an argument. */
typedef int cw_option_fn(struct cw_request *r, const struct cw_option *o, const char *value,
                         struct cw_error *err);

struct cw_option {
    const char *name;
    char letter;
    enum cw_option_status status;
    const char *argument; /* NULL: takes none; "[=N]": may be left out */
    const char *slot;     /* what it sets; spellings of the same thing share it */
    cw_option_fn *apply;  /* NULL: warned and refused rows */
    size_t offset;        /* of the field that apply sets, where it sets a plain one */
    const char *env;      /* X in SBATCH_X where that is not the name; NULL: the name */
    const char *help;     /* what it does, or why it is not carried out */
};

/* Takes no value, may take one ("--nice" or "--nice=3"), needs one. */
static inline bool cw_option_may_lack_value(const struct cw_option *o)
{
    return o->argument == NULL || (o->argument[0] == '[' && o->argument[1] == '=');
}

const struct cw_option *cw_option_find(const char *name); /* "time" or "t"; NULL: none */
const struct cw_option *cw_option_at(size_t i);           /* NULL behind the last */
/* The known name closest to a mistyped one, or NULL. */
const char *cw_option_suggest(const char *name);

/* One value given, in the order first given. (slot, key) is unique. */
struct cw_request_item {
    struct cw_request_item *next;
    const struct cw_option *option;
    const char *key; /* "" for scalars */
    const char *value;
    enum cw_origin origin;
    const char *where;
};

/* The key under which a list option's value merges; "" for scalars. */
const char *cw_option_key(const struct cw_option *o, struct cw_arena *a, const char *value);
/* Puts all list values of the request into spec and env_set. */
void cw_option_fold_lists(struct cw_request *r);

cw_option_fn cw_opt_hold, cw_opt_wish, cw_opt_name, cw_opt_word, cw_opt_note, cw_opt_outpath,
    cw_opt_path, cw_opt_ntasks, cw_opt_ntasks_per_node, cw_opt_cpus, cw_opt_mem, cw_opt_mem_per_cpu,
    cw_opt_time, cw_opt_array, cw_opt_dependency, cw_opt_gpus, cw_opt_gres, cw_opt_open_mode,
    cw_opt_isolation, cw_opt_requeue, cw_opt_no_requeue, cw_opt_kill_grace, cw_opt_nodes,
    cw_opt_invalid_dep, cw_opt_env, cw_opt_label, cw_opt_volume, cw_opt_export, cw_opt_shell,
    cw_opt_prefix, cw_opt_text, cw_opt_exclusive, cw_opt_hosts, cw_opt_constraint,
    cw_opt_mem_per_gpu, cw_opt_gpus_per_node, cw_opt_gpus_per_task, cw_opt_nice, cw_opt_priority,
    cw_opt_time_est, cw_opt_signal, cw_opt_begin, cw_opt_deadline, cw_opt_retries, cw_opt_retry_on,
    cw_opt_retry_delay, cw_opt_keep_invalid_dep;

/* requestenv.c: payload.env from envp by the export rule and --env. */
int cw_request_fold_env(struct cw_request *r, char *const *envp, const char *cwd,
                        struct cw_error *err);
int cw_export_check(const char *rule, struct cw_error *err);
