/* crun-submit: a job file, a command, a --wrap line or standard input becomes one stored job.
 * Sources are merged low to high: directives, environment, command line (spec/options.h). The id is
 * printed only after the controller has it on disk. Test: testsuite/t1000-submit.t. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "config.h"

#include "base/clock.h"
#include "base/file.h"
#include "cmds/cli.h"
#include "cmds/jobwait.h"
#include "proto/walk.h"
#include "spec/entries.h"
#include "spec/jobfile.h"
#include "spec/options.h"

extern char **environ;

struct submit {
    struct cw_cli *cli;
    int argc;
    char *const *argv;
    struct cw_request request;
};

static int usage_error(struct submit *s, const struct cw_error *err)
{
    if (err->code == -EINVAL && strstr(err->text, "unknown option") != NULL)
        return cw_cli_usage(s->cli, "%s", err->text);
    fprintf(stderr, "%s: %s\n", s->cli->name, err->text);
    return CW_EXIT_USAGE;
}

static int read_script(struct submit *s, const char *file, struct cw_error *err)
{
    cw_autobuf struct cw_buf text = {0};
    bool is_stdin = file == NULL || strcmp(file, "-") == 0;
    const char *name = is_stdin ? "stdin" : file;
    if (is_stdin && isatty(STDIN_FILENO))
        fprintf(stderr, "%s: reading the job file from the terminal, end with Ctrl-D\n",
                s->cli->name);
    int rc = is_stdin ? cw_file_read_fd(STDIN_FILENO, name, CW_JOBFILE_MAX, &text, err)
                      : cw_file_read(file, CW_JOBFILE_MAX, &text, err);
    if (rc != 0)
        return rc;
    return cw_jobfile_parse(&s->request, name, cw_buf_str(&text), text.len,
                            s->request.directive_prefix, err);
}

/* The entries of an array come from there. */
static bool wants_stdin(const struct cw_request *r)
{
    return (r->each_line != NULL && strcmp(r->each_line, "-") == 0) ||
           (r->from_json != NULL && strcmp(r->from_json, "-") == 0);
}

/* --each-line, --from-json. */
static int read_entries(struct submit *s, struct cw_error *err)
{
    struct cw_request *r = &s->request;
    const char *file = r->each_line != NULL ? r->each_line : r->from_json;
    cw_autobuf struct cw_buf text = {0};
    if (file == NULL)
        return 0;
    bool is_stdin = strcmp(file, "-") == 0;
    int rc = is_stdin ? cw_file_read_fd(STDIN_FILENO, "stdin", CW_ENTRIES_MAX, &text, err)
                      : cw_file_read(file, CW_ENTRIES_MAX, &text, err);
    if (rc < 0)
        return rc;
    rc = r->each_line != NULL ? cw_entries_lines(r, cw_buf_str(&text), text.len, err)
                              : cw_entries_json(r, cw_buf_str(&text), text.len, err);
    return rc < 0 ? cw_wrap(err, rc, "%s", is_stdin ? "stdin" : file) : 0;
}

static void set_submit_host(struct submit *s)
{
    char host[HOST_NAME_MAX + 1];
    if (gethostname(host, sizeof(host)) == 0)
        s->request.spec->submit_host = cw_arena_strdup(s->cli->arena, host);
}

/* The merged request (-1), or the exit code of the error that was printed. */
static int build(struct submit *s)
{
    struct cw_error err;
    struct cw_request *r = &s->request;
    int first; /* operand */
    int rc = cw_request_args(r, s->argc, s->argv, &first, &err);
    if (rc != 0 || r->help || r->version)
        return rc == 0 ? -1 : usage_error(s, &err);
    const char *file = first < s->argc ? s->argv[first] : NULL;
    bool command = r->saw_dashes && file != NULL;
    if (r->wrap != NULL && file != NULL)
        rc = cw_fail(&err, -EINVAL, "--wrap and '%s': give one of them", file);
    bool script = r->wrap == NULL && !command;
    if (rc == 0 && script && (file == NULL || strcmp(file, "-") == 0) && wants_stdin(r))
        rc = cw_fail(&err, -EINVAL, "standard input: the job file or the entries, not both");
    if (rc == 0 && script)
        rc = read_script(s, file, &err);
    if (rc == 0 && r->wrap == NULL && file != NULL)
        cw_request_set_argv(r, s->argc - first - !command, s->argv + first + !command);
    if (rc == 0)
        rc = cw_request_environ(r, environ, false, &err);
    if (rc == 0)
        rc = read_entries(s, &err);
    char cwd[PATH_MAX];
    if (rc == 0 && getcwd(cwd, sizeof(cwd)) == NULL)
        rc = cw_fail_errno(&err, -errno, "current directory");
    if (rc == 0)
        rc = cw_request_finish(r, environ, cwd, &err);
    if (rc != 0)
        return usage_error(s, &err);
    set_submit_host(s);
    return -1;
}

static void print_warnings(const struct submit *s)
{
    for (size_t i = 0; i < s->request.warnings.n && !s->request.quiet; i++)
        fprintf(stderr, "%s: warning: %s\n", s->cli->name, s->request.warnings.v[i]);
}

static void print_test_only(const struct submit *s, const Cw__SubmitResult *r)
{
    char when[40];
    json_t *origins = json_array();
    for (size_t i = 0; i < s->request.origins.n; i++)
        json_array_append_new(origins, json_string(s->request.origins.v[i]));
    if (s->request.json) {
        json_t *o = json_pack("{s:o, s:o}", "spec", cw_walk_json(&s->request.spec->base), "origins",
                              origins);
        if (r->has_start_ns)
            json_object_set_new(o, "start", json_string(cw_clock_format(r->start_ns, when,
                                                                        sizeof(when))));
        cw_cli_print_json("submit-test", o);
        return;
    }
    printf("The request is acceptable; nothing was submitted.\n");
    if (r->has_start_ns)
        printf("It would start at about %s.\n", cw_clock_format(r->start_ns, when, sizeof(when)));
    for (size_t i = 0; i < s->request.origins.n; i++)
        printf("  %s\n", s->request.origins.v[i]);
    json_decref(origins);
}

static int print_result(struct submit *s, const Cw__SubmitResult *r)
{
    char id[24];
    snprintf(id, sizeof(id), "%" PRIu64, r->job_id);
    if (s->request.json)
        cw_cli_print_json("submit",
                          json_pack("{s:I, s:b, s:I}", "job_id", (json_int_t)r->job_id, "existing",
                                    (int)r->existing, "count", (json_int_t)r->count));
    else if (s->request.parsable)
        printf("%s\n", id);
    else if (!s->request.quiet)
        printf("Submitted batch job %s\n", id);
    if (fflush(stdout) != 0 || ferror(stdout)) { /* the id must not be lost */
        fprintf(stderr, "%s: job %s is submitted, but standard output: %s\n", s->cli->name, id,
                strerror(errno));
        return CW_EXIT_REFUSED;
    }
    if (!s->request.wait)
        return CW_EXIT_OK;
    s->cli->common.json = false; /* one JSON object on standard output is enough */
    char *ids[] = {id};
    return cw_jobwait(s->cli, ids, 1, 0);
}

static int send(struct submit *s)
{
    uint8_t key[16];
    ProtobufCMessage *m;
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        abort();
    Cw__SubmitItem item = CW__SUBMIT_ITEM__INIT, *items[] = {&item};
    item.request_key.data = key;
    item.request_key.len = sizeof(key);
    item.spec = s->request.spec;
    item.payload = s->request.payload;
    Cw__SubmitRequest req = CW__SUBMIT_REQUEST__INIT;
    req.n_items = 1;
    req.items = items;
    req.has_test_only = req.test_only = s->request.test_only;
    int rc = cw_cli_call(s->cli, CW_KIND_SUBMIT, &req.base, 0, &m);
    if (rc >= 0)
        return rc;
    const Cw__SubmitReply *reply = (const Cw__SubmitReply *)m;
    if (reply->n_results != 1) {
        fprintf(stderr, "%s: the controller answered with %zu results for one job\n", s->cli->name,
                reply->n_results);
        return CW_EXIT_UNKNOWN;
    }
    const Cw__SubmitResult *r = reply->results[0];
    if (r->failure != NULL) {
        struct cw_error err;
        cw_fail(&err, -r->failure->code, "%s", r->failure->text);
        return cw_cli_fail(s->cli, &err);
    }
    if (s->request.test_only) {
        print_test_only(s, r);
        return CW_EXIT_OK;
    }
    return print_result(s, r);
}

static int print_help(const struct cw_cli *c)
{
    cw_autobuf struct cw_buf b = {0};
    cw_buf_addf(
        &b,
        "Usage: %s [OPTION ...] %s\n%s: from a job file (#CRUN or #SBATCH lines), a command, "
        "--wrap, or standard input.\n\n",
        c->name, c->operands, c->summary);
    cw_options_help(&b);
    fputs(cw_buf_str(&b), stdout);
    return CW_EXIT_OK;
}

int cw_cmd_submit(struct cw_cli *c, int argc, char *const *argv)
{
    struct submit s = {.cli = c, .argc = argc, .argv = argv};
    cw_request_init(&s.request, c->arena);
    int rc = build(&s);
    if (rc < 0 && s.request.help) {
        rc = print_help(c);
    } else if (rc < 0 && s.request.version) {
        printf("%s (crun-wlm) %s\n", c->name, PACKAGE_VERSION);
        rc = CW_EXIT_OK;
    }
    if (rc < 0) {
        c->common.json = s.request.json;
        print_warnings(&s);
        rc = cw_cli_connect(c);
    }
    if (rc < 0)
        rc = send(&s);
    cw_request_fini(&s.request);
    return rc;
}
