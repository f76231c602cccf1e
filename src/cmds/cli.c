/* The multi-call program behind every crun-* command: argv[0] names the command. */
#include "cmds/cli.h"

#include "config.h"

#include <locale.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crashpoint.h"
#include "base/quantity.h"

volatile sig_atomic_t cw_cli_interrupted;

static void on_signal(int signo)
{
    (void)signo;
    cw_cli_interrupted = 1;
}

static const struct {
    const char *name, *operands, *summary;
    int (*run)(struct cw_cli *c, int argc, char *const *argv);
} commands[] = {
    {"crun-submit", "[FILE [ARG ...] | -- COMMAND [ARG ...]]", "submit a batch job", cw_cmd_submit},
    {"crun-run", "[--] COMMAND [ARG ...]", "run tasks now, as a step of this job or of a new one", cw_cmd_run},
    {"crun-exec", "ID [--] COMMAND [ARG ...]", "run a command inside a running job", cw_cmd_exec},
    {"crun-alloc", "[COMMAND [ARG ...]]", "get resources and use them from a shell here", cw_cmd_alloc},
    {"crun-attach", "ID[.STEP]", "join the input and output of a step that runs", cw_cmd_attach},
    {"crun-queue", "[ID ...]", "list jobs", cw_cmd_queue},
    {"crun-why", "ID ...", "explain why a job waits or how it ended", cw_cmd_why},
    {"crun-cancel", "[ID ...]", "cancel jobs or send them a signal", cw_cmd_cancel},
    {"crun-wait", "ID ...", "wait until jobs have ended", cw_cmd_wait},
    {"crun-logs", "ID", "show the output of a job", cw_cmd_logs},
    {"crun-acct", "[ID ...]", "accounting: what jobs used", cw_cmd_acct},
    {"crun-info", "[NODE ...]", "partitions and nodes at a glance", cw_cmd_info},
    {"crun-node", "list|show|drain|resume [NODE ...]", "look at and steer nodes", cw_cmd_node},
    {"crun-events", "[ID ...]", "the history of jobs, and what happens next", cw_cmd_events},
    {"crun-stat", "ID ...", "what running jobs use now", cw_cmd_stat},
    {"crun-diag", "", "statistics of the controller", cw_cmd_diag},
    {"crun-prio", "[ID ...]", "the terms of waiting jobs' ranks", cw_cmd_prio},
    {"crun-ctl", "VERB [ARG ...]", "control the instance", cw_cmd_ctl},
};

int cw_cli_usage(const struct cw_cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cw_autofree char *text = cw_xvasprintf(fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s: %s (see %s --help)\n", c->name, text, c->name);
    return CW_EXIT_USAGE;
}

int cw_cli_fail(const struct cw_cli *c, const struct cw_error *err)
{
    fprintf(stderr, "%s: %s\n", c->name, err->text);
    if (c->common.json) {
        json_t *e = json_pack("{s:i, s:s}", "code", -err->code, "text", err->text);
        cw_cli_print_json("error", json_pack("{s:o}", "error", e));
    }
    return cw_client_exit_code(err->code);
}

static void print_help(const struct cw_cli *c)
{
    cw_autobuf struct cw_buf b = {0};
    cw_buf_addf(&b, "Usage: %s [OPTION ...] %s\n%s.\n\n", c->name, c->operands, c->summary);
    cw_args_help(c->args, &b);
    fputs(cw_buf_str(&b), stdout);
}

int cw_cli_begin(struct cw_cli *c, int argc, char *const *argv, cw_args_fn on_option, void *arg)
{
    struct cw_error err;
    if (cw_args_parse(c->args, argc, argv, on_option, arg, &c->common, &c->operand, &err) != 0)
        return cw_cli_usage(c, "%s", err.text);
    if (c->common.help) {
        print_help(c);
        return CW_EXIT_OK;
    }
    if (c->common.version) {
        printf("%s (crun-wlm) %s\n", c->name, PACKAGE_VERSION);
        return CW_EXIT_OK;
    }
    return -1;
}

int cw_cli_connect(struct cw_cli *c)
{
    struct cw_error err;
    if (cw_client_open(c->common.conf, &c->client, &err) != 0)
        return cw_cli_fail(c, &err);
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    signal(SIGPIPE, SIG_DFL);
    cw_client_set_interrupt(c->client, &cw_cli_interrupted);
    return -1;
}

int cw_cli_call(struct cw_cli *c, enum cw_kind kind, const ProtobufCMessage *m, uint32_t timeout_ms,
                ProtobufCMessage **ret)
{
    struct cw_error err;
    if (cw_client_call(c->client, kind, m, timeout_ms, c->arena, ret, &err) != 0)
        return cw_cli_fail(c, &err);
    return -1;
}

void cw_cli_print_json(const char *what, json_t *root)
{
    char now[40];
    json_t *out = json_object();
    cw_autofree char *schema = cw_xasprintf("crun/%s/1", what);
    json_object_set_new(out, "schema", json_string(schema));
    json_object_set_new(out, "generated",
                        json_string(cw_clock_format(cw_clock_real_ns(), now, sizeof(now))));
    json_object_update(out, root);
    json_dumpf(out, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(out);
    json_decref(root);
}

void cw_cli_print_jsonl(json_t *o)
{
    json_dumpf(o, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(o);
}

int cw_cli_number(const char *text, uint64_t max, uint64_t *ret, protobuf_c_boolean *ret_has,
                  struct cw_error *err)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || n > max)
        return cw_fail(err, -EINVAL, "'%s' is not a number from 0 to %llu", text,
                       (unsigned long long)max);
    *ret = n;
    if (ret_has != NULL)
        *ret_has = true;
    return 0;
}

int cw_cli_timeout(const char *text, uint64_t *ret_ms, struct cw_error *err)
{
    uint64_t s;
    int rc = cw_duration_parse(text, &s, err);
    if (rc == 0)
        *ret_ms = s == CW_DURATION_UNLIMITED ? 0 : s * 1000;
    return rc;
}

int cw_cli_uid(const char *text, uint32_t *ret, struct cw_error *err)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && n < UINT32_MAX) {
        *ret = (uint32_t)n;
        return 0;
    }
    struct passwd *pw = getpwnam(text);
    if (pw == NULL)
        return cw_fail(err, -EINVAL, "user '%s' does not exist", text);
    *ret = pw->pw_uid;
    return 0;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, ""); /* names in UTF-8 are shown as they are */
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];
    if (strncmp(name, "lt-", 3) == 0)
        name += 3;
    if (strcmp(name, "crun-cli") == 0 && argc > 1) { /* crun-cli crun-queue ...: without a link */
        name = argv[1];
        argc--;
        argv++;
    }
    for (size_t i = 0; i < CW_ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].name, name) != 0)
            continue;
        cw_crashpoint_init();
        struct cw_cli c = {.name = commands[i].name,
                           .operands = commands[i].operands,
                           .summary = commands[i].summary,
                           .arena = cw_arena_create()};
        int code = commands[i].run(&c, argc, argv);
        if (fflush(stdout) != 0 && code == 0) {
            fprintf(stderr, "%s: standard output: %s\n", c.name, strerror(errno));
            code = CW_EXIT_REFUSED;
        }
        cw_client_close(c.client);
        cw_strv_fini(&c.operand);
        cw_arena_destroy(c.arena);
        return code;
    }
    fprintf(stderr, "crun-cli: no command is called '%s'\n", name);
    return CW_EXIT_USAGE;
}
