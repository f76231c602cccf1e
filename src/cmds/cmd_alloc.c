/* crun-alloc: resources for a command or a shell that runs here and starts steps there. The
 * allocation is kept while it runs and given back with its exit code. Test: testsuite/t2400-run.t. */
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"

#include "base/hostlist.h"
#include "client/allockeeper.h"
#include "cmds/allocget.h"
#include "spec/check.h"

extern char **environ;

static volatile sig_atomic_t child_pid, child_ended;

static void on_child(int signo)
{
    (void)signo;
    child_ended = 1;
}

/* To the command; what it does about it is what counts. */
static void on_forward(int signo)
{
    if (child_pid > 0)
        kill((pid_t)child_pid, signo);
}

static int print_help(const struct cw_cli *c)
{
    cw_autobuf struct cw_buf b = {0};
    cw_buf_addf(&b, "Usage: %s [OPTION ...] %s\n%s.\n\n", c->name, c->operands, c->summary);
    cw_buf_addf(&b, "Options of crun-submit say what is asked for: see crun-submit --help.\n");
    fputs(cw_buf_str(&b), stdout);
    return CW_EXIT_OK;
}

static int build(struct cw_cli *c, struct cw_request *r, int argc, char *const *argv,
                 char ***ret_command)
{
    struct cw_error err;
    char cwd[PATH_MAX];
    int first;
    int rc = cw_request_args(r, argc, argv, &first, &err);
    if (rc == 0 && r->help)
        return print_help(c);
    if (rc == 0 && r->version) {
        printf("%s (crun-wlm) %s\n", c->name, PACKAGE_VERSION);
        return CW_EXIT_OK;
    }
    char *shell = getenv("SHELL");
    char **command = cw_arena_alloc(c->arena, (size_t)(argc + 2) * sizeof(char *));
    for (int i = first; i < argc; i++)
        command[i - first] = argv[i];
    if (rc == 0 && first >= argc)
        command[0] = shell != NULL && shell[0] != '\0' ? shell : (char *)"/bin/sh";
    if (rc == 0) {
        cw_request_set_argv(r, 1, command);
        rc = cw_request_environ(r, environ, false, &err);
    }
    if (rc == 0 && getcwd(cwd, sizeof cwd) == NULL)
        rc = cw_fail_errno(&err, -errno, "current directory");
    if (rc == 0)
        rc = cw_request_finish(r, environ, cwd, &err);
    if (rc == 0 && r->spec->array != NULL)
        rc = cw_fail(&err, -EINVAL, "option --array: is for crun-submit");
    if (rc < 0) {
        fprintf(stderr, "%s: %s\n", c->name, err.text);
        return CW_EXIT_USAGE;
    }
    r->spec->stdout_path = r->spec->stderr_path = r->spec->stdin_path = NULL;
    *ret_command = command;
    return -1;
}

/* ---- the command ---------------------------------------------------------------------------- */

static void put(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cw_autofree char *value = cw_xvasprintf(fmt, ap);
    va_end(ap);
    setenv(name, value, 1);
}

static void set_environment(const struct cw_cli *c, const Cw__JobInfo *j)
{
    const Cw__AttemptRecord *at = j->attempt;
    cw_autostrv struct cw_strv names = {0};
    cw_autobuf struct cw_buf list = {0};
    uint64_t tasks = 0;
    for (size_t k = 0; k <= at->n_more_grants; k++) {
        const Cw__Grant *g = k == 0 ? at->grant : at->more_grants[k - 1];
        cw_strv_add(&names, g->node);
        tasks += g->has_ntasks ? g->ntasks : 1;
    }
    cw_hostlist_format(names.v, names.n, &list);
    put("CRUN_JOB_ID", "%" PRIu64, j->id);
    put("CRUN_JOB_NAME", "%s", j->spec->name != NULL ? j->spec->name : "");
    put("CRUN_ATTEMPT", "%u", at->attempt);
    put("CRUN_CLUSTER", "%s", cw_client_conf(c->client)->cluster);
    put("CRUN_PARTITION", "%s", j->spec->partition != NULL ? j->spec->partition : "");
    put("CRUN_NODELIST", "%s", cw_buf_str(&list));
    put("CRUN_NNODES", "%zu", names.n);
    put("CRUN_NTASKS", "%" PRIu64, tasks);
    put("CRUN_CPUS_PER_TASK", "%u", cw_spec_cpus_per_task(j->spec));
    put("CRUN_MEM_BYTES", "%" PRIu64, at->grant->mem_bytes);
    put("CRUN_SUBMIT_DIR", "%s", j->spec->workdir != NULL ? j->spec->workdir : "/");
    put("CRUN_CONF", "%s", cw_client_conf(c->client)->path);
    if (!j->spec->has_slurm_env || !j->spec->slurm_env)
        return;
    put("SLURM_JOB_ID", "%" PRIu64, j->id);
    put("SLURM_JOBID", "%" PRIu64, j->id);
    put("SLURM_JOB_NODELIST", "%s", cw_buf_str(&list));
    put("SLURM_NNODES", "%zu", names.n);
    put("SLURM_NTASKS", "%" PRIu64, tasks);
}

static pid_t begin(const struct cw_cli *c, char **command)
{
    sigset_t set, old;
    struct sigaction sa = {.sa_handler = on_child};
    struct sigaction fwd = {.sa_handler = on_forward};
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &old);
    sigaction(SIGCHLD, &sa, NULL);
    signal(SIGINT, SIG_IGN); /* the terminal sends it to the command, too */
    signal(SIGQUIT, SIG_IGN);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &old, NULL);
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        execvp(command[0], command);
        int code = errno == ENOENT ? 127 : 126;
        fprintf(stderr, "%s: %s: %s\n", c->name, command[0], strerror(errno));
        _exit(code);
    }
    child_pid = pid;
    sigaction(SIGTERM, &fwd, NULL);
    sigaction(SIGHUP, &fwd, NULL);
    return pid;
}

/* Its exit code; says so when the allocation ends first. */
static int wait_command(const struct cw_cli *c, pid_t pid, struct cw_allockeeper *k)
{
    sigset_t none;
    char text[256];
    int status, job_status;
    bool told = false;
    sigemptyset(&none);
    while (waitpid(pid, &status, WNOHANG) != pid) {
        struct pollfd p = {.fd = told ? -1 : cw_allockeeper_fd(k), .events = POLLIN};
        ppoll(&p, 1, NULL, &none); /* SIGCHLD comes in here only */
        if (!told && cw_allockeeper_ended(k, &job_status, text, sizeof text)) {
            told = true;
            fprintf(stderr, "%s: the allocation has ended: %s\n", c->name, text);
        }
    }
    child_pid = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int use(struct cw_cli *c, uint64_t id, const Cw__JobInfo *job, char **command)
{
    struct cw_allockeeper *k;
    struct cw_error err;
    int rc = cw_allockeeper_start(cw_client_conf(c->client)->path, id, cw_allocget_lease(), &k,
                                  &err);
    if (rc < 0)
        return cw_cli_fail(c, &err);
    set_environment(c, job);
    pid_t pid = begin(c, command);
    int code = 1;
    if (pid < 0)
        fprintf(stderr, "%s: fork: %s\n", c->name, strerror(errno));
    else
        code = wait_command(c, pid, k);
    cw_allockeeper_stop(k);
    return code;
}

int cw_cmd_alloc(struct cw_cli *c, int argc, char *const *argv)
{
    struct cw_request r;
    char **command;
    Cw__JobInfo *job;
    uint64_t id;
    cw_request_init(&r, c->arena);
    int rc = build(c, &r, argc, argv, &command);
    if (rc < 0)
        rc = cw_cli_connect(c);
    if (rc < 0) {
        signal(SIGHUP, SIG_DFL);
        rc = cw_allocget(c, &r, &id, &job);
        if (rc < 0) {
            if (!r.quiet)
                fprintf(stderr, "%s: Granted job allocation %" PRIu64 "\n", c->name, id);
            rc = use(c, id, job, command);
            cw_allocget_release(c, id, rc);
            if (!r.quiet)
                fprintf(stderr, "%s: Relinquishing job allocation %" PRIu64 "\n", c->name, id);
        }
    }
    cw_request_fini(&r);
    return rc;
}
