#pragma once
/* What all crun-* commands share: the table of commands, opening the client, printing errors the
 * one way, exit codes. Commands are files cmd_NAME.c with one entry function each. */
#include <jansson.h>
#include <signal.h>

#include "client/client.h"
#include "cmds/args.h"

struct cw_cli {
    const char *name;          /* "crun-queue" */
    const char *operands;      /* for --help: "[ID ...]" */
    const char *summary;       /* one line */
    const struct cw_arg *args; /* NULL: the command parses by itself */
    struct cw_args_common common;
    struct cw_strv operand; /* filled by cw_cli_begin */
    struct cw_arena *arena;
    struct cw_client *client; /* open after cw_cli_connect */
};

/* Exit codes of the commands themselves (doc: crun-wlm(7)). */
enum { CW_EXIT_OK = 0, CW_EXIT_REFUSED = 1, CW_EXIT_USAGE = 2, CW_EXIT_UNKNOWN = 240 };

extern volatile sig_atomic_t
    cw_cli_interrupted; /* set by SIGINT and SIGTERM after cw_cli_connect */

/* Parses options; answers --help and --version. Returns -1 to go on, else the exit code. */
int cw_cli_begin(struct cw_cli *c, int argc, char *const *argv, cw_args_fn on_option, void *arg);
/* Opens the client. Returns -1 to go on, else the exit code (message printed). */
int cw_cli_connect(struct cw_cli *c);
/* Prints "NAME: text" to stderr and returns the exit code that belongs to the error. With --json
 * the error goes to stdout too, as {"schema":"crun/error/1","error":{"code":..,"text":..}}. */
int cw_cli_fail(const struct cw_cli *c, const struct cw_error *err);
int cw_cli_usage(const struct cw_cli *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* One request; -1 to go on, else the exit code. */
int cw_cli_call(struct cw_cli *c, enum cw_kind kind, const ProtobufCMessage *m, uint32_t timeout_ms,
                ProtobufCMessage **ret);
/* Prints {"schema": "crun/WHAT/1", "generated": now, ...} and frees root. */
void cw_cli_print_json(const char *what, json_t *root);
/* One object on a line of its own, and frees it. */
void cw_cli_print_jsonl(json_t *o);
/* Digits; -EINVAL with what is allowed. ret_has may be NULL. */
int cw_cli_number(const char *text, uint64_t max, uint64_t *ret, protobuf_c_boolean *ret_has,
                  struct cw_error *err);
/* A duration as milliseconds; 0 for an unlimited one. */
int cw_cli_timeout(const char *text, uint64_t *ret_ms, struct cw_error *err);
/* uid of a name or number; -EINVAL. */
int cw_cli_uid(const char *text, uint32_t *ret, struct cw_error *err);
const char *cw_cli_user(const Cw__Owner *o); /* name, or the number as text (static storage) */

int cw_cmd_submit(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_queue(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_why(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_cancel(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_wait(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_logs(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_acct(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_info(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_node(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_events(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_stat(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_diag(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_prio(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_run(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_exec(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_alloc(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_attach(struct cw_cli *c, int argc, char *const *argv);
int cw_cmd_ctl(struct cw_cli *c, int argc, char *const *argv);
