#pragma once
/* The submit options: one table that the command line, job-file directives, CRUN_OPT_* / SBATCH_*
 * environment, --help, man pages and doc/slurm-compat.md read. A row says: long name, short letter,
 * argument, what it sets and how, whether it is ours or Slurm's, and for Slurm flags that we do not
 * carry out: warn once or refuse (never silently dropped).
 *
 * Precedence low to high: defaults, directives, environment, command line - whatever the order of
 * the calls. Scalars replace (also another spelling of the same thing, --mem and --mem-per-cpu),
 * lists merge by key. Each value remembers its origin for --test-only. Pure but for reading what it
 * is given. Thread: a request belongs to one caller. Test: options_test.c, request_test.c. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "proto/wire.pb-c.h"

enum cw_origin { CW_ORIGIN_DEFAULT, CW_ORIGIN_DIRECTIVE, CW_ORIGIN_ENVIRONMENT, CW_ORIGIN_COMMAND };

/* A request being put together; messages live in its arena. */
struct cw_request {
    struct cw_arena *arena;
    Cw__JobSpec *spec;
    Cw__Payload *payload;
    /* client-side wishes that do not go into the spec */
    bool wait, parsable, json, test_only, quiet, help, version;
    const char *wrap;             /* --wrap text */
    const char *export_rule;      /* ALL, NONE, or a list; NULL: ALL for batch */
    const char *each_line, *from_json; /* files of entries, see entries.h */
    const char *shell;            /* --shell PATH for files without #! */
    const char *directive_prefix; /* --directive-prefix; NULL: #CRUN and #SBATCH */
    const char *source;           /* the job file's name, set by cw_jobfile_parse */
    bool saw_sbatch;              /* a #SBATCH directive was used */
    bool saw_dashes;         /* "--" ended the options: what follows is a command, not a job file */
    struct cw_strv env_set;  /* --env K=V, merged by key (after cw_request_finish) */
    struct cw_strv warnings; /* one sentence each */
    struct cw_strv origins;  /* "time=01:00:00 (line 4)" (after cw_request_finish) */
    size_t n_items;
    struct cw_request_item *items, **items_end; /* every value given, with its origin */
};
void cw_request_init(struct cw_request *r, struct cw_arena *a);
void cw_request_fini(struct cw_request *r);
/* Applies one option. name without dashes ("time" or "t"); value NULL when none was given. where is
 * for messages ("job.sh:4:9", "CRUN_OPT_TIME"; NULL for the command line). -EINVAL with "WHERE:
 * option --x: what is wrong, what is allowed". */
int cw_request_set(struct cw_request *r, const char *name, const char *value, enum cw_origin origin,
                   const char *where, struct cw_error *err);
/* words[i] as an option (--name=value, --name value, -n4, -n 4, -HQ). Returns how many words it
 * took (1 or 2), 0 when it is no option, or a negative errno. words[n] need not exist. */
int cw_request_word(struct cw_request *r, char *const *words, size_t n, size_t i,
                    enum cw_origin origin, const char *where, struct cw_error *err);
/* Reads argv like getopt's POSIX mode with exact long names: options stop at the first operand or
 * "--". *ret_used: how many of argv were options (argv[0] and "--" counted). */
int cw_request_args(struct cw_request *r, int argc, char *const *argv, int *ret_used,
                    struct cw_error *err);
/* The command behind "--", or the arguments of the job file: copied as they are into payload.argv.
 */
void cw_request_set_argv(struct cw_request *r, int argc, char *const *argv);
/* CRUN_OPT_<NAME> and, when sbatch is true, SBATCH_<NAME>. */
int cw_request_environ(struct cw_request *r, char *const *envp, bool sbatch, struct cw_error *err);
/* Completes the request after all sources: script of --wrap, name, env by export rule (job
 * variables CRUN_... but CRUN_CONF, SLURM_... and SBATCH_... of a parent are never inherited), mem,
 * workdir; then cw_check_spec. Call once. spec.submit_host is the caller's to set. */
int cw_request_finish(struct cw_request *r, char *const *envp, const char *cwd,
                      struct cw_error *err);
void cw_request_warn(struct cw_request *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

void cw_options_help(struct cw_buf *out); /* the option part of --help */
/* Each row in table order. letter 0: none; argument NULL: none, "[=...]": optional. status: "ours",
 * "supported" (as in Slurm), "warned" (ignored with one warning), "refused". */
void cw_options_each(void (*fn)(const char *name, char letter, const char *argument,
                                const char *help, const char *status, void *arg),
                     void *arg);
