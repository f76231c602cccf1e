#pragma once
/* Options of the query commands, by one table per command: exact long names, single letters
 * (bundled or with an attached value), `--name=value` and `--name value`, operands anywhere, `--`
 * ends the options. Every command has --conf, --json, --help and --version without naming them.
 * crun-submit does not use this: its options are spec/options.h. Test: args_test.c. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

struct cw_arg {
    const char *name;     /* NULL ends the table */
    char letter;          /* 0: none */
    const char *argument; /* name of its argument for --help; NULL: a flag */
    const char *help;     /* one line */
};

struct cw_args_common {
    const char *conf; /* --conf FILE, or NULL */
    bool json, help, version;
};

/* Calls on_option for each option of the table in order of appearance (value NULL for flags) and
 * collects operands. on_option returns 0 or fails with a sentence. -EINVAL for anything not in the
 * table. */
typedef int (*cw_args_fn)(const struct cw_arg *opt, const char *value, void *arg,
                          struct cw_error *err);
int cw_args_parse(const struct cw_arg *table, int argc, char *const *argv, cw_args_fn on_option,
                  void *arg, struct cw_args_common *ret_common, struct cw_strv *ret_operands,
                  struct cw_error *err);
/* The same words with "--" behind the first operand, so that what follows it is not read as options
 * (a "--" there is left out). In the arena. */
struct cw_arena;
char *const *cw_args_end_at_operand(const struct cw_arg *table, int *argc, char *const *argv,
                                    struct cw_arena *a);
/* The option part of --help, common options included. */
void cw_args_help(const struct cw_arg *table, struct cw_buf *out);
