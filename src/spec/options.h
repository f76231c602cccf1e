#pragma once
/* The submit options: one table that the command line, job-file directives, CRUN_OPT_* / SBATCH_*
 * environment, --help, man pages and doc/slurm-compat.md read. A row says: long name, short letter,
 * argument, which sources may use it, how it changes the request, whether it is ours or Slurm's, and for
 * Slurm flags that we do not carry out: warn once or refuse (never silently dropped).
 *
 * Precedence low to high: defaults, directives, environment, command line. Scalars replace (also another
 * spelling of the same thing, --mem and --mem-per-cpu), lists merge by key. Each value remembers its
 * origin for --test-only. Pure but for reading what it is given. Test: options_test.c. */
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
    bool wait, parsable, json, test_only, quiet;
    const char *wrap;         /* --wrap text */
    const char *export_rule;  /* ALL, NONE, or a list; NULL: ALL for batch */
    const char *shell;        /* --shell PATH for files without #! */
    bool saw_sbatch;          /* a #SBATCH directive was used */
    struct cw_strv env_set;   /* --env K=V, merged by key */
    struct cw_strv warnings;  /* one sentence each */
    struct cw_strv origins;   /* "time=1:00:00 (line 4)" */
    uint64_t mem_per_cpu;     /* --mem-per-cpu, folded into mem_bytes by cw_request_finish */
};
void cw_request_init(struct cw_request *r, struct cw_arena *a);
void cw_request_fini(struct cw_request *r);
/* Applies one option. name without dashes ("time" or "t"); value NULL when none was given. where is for
 * messages ("job.sh:4:9" or "--time"). -EINVAL with "WHERE: option --x: what is wrong, what is allowed". */
int cw_request_set(struct cw_request *r, const char *name, const char *value, enum cw_origin origin, const char *where, struct cw_error *err);
/* Reads argv like getopt's POSIX mode with exact long names: options stop at the first operand or "--".
 * *ret_used: how many of argv were options (argv[0] counted). */
int cw_request_args(struct cw_request *r, int argc, char *const *argv, int *ret_used, struct cw_error *err);
/* CRUN_OPT_<NAME> and, when sbatch is true, SBATCH_<NAME>. */
int cw_request_environ(struct cw_request *r, char *const *envp, bool sbatch, struct cw_error *err);
/* Completes the request after all sources: defaults, env by export rule (job variables CRUN_... and SLURM_... of a parent
 * are never inherited), mem, workdir. */
int cw_request_finish(struct cw_request *r, char *const *envp, const char *cwd, struct cw_error *err);
void cw_options_help(struct cw_buf *out);      /* the option part of --help */
void cw_options_each(void (*fn)(const char *name, char letter, const char *argument, const char *help, const char *status, void *arg), void *arg);
