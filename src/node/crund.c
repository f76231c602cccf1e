/* crund: the daemon of a node; see README and crund(8). It takes inventory, finds or starts
 * shepherds, and passes records between them and the controller. It never makes a task's process,
 * and its own death costs none: everything it knows comes back from the shepherds. */
#include "config.h"

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crashpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/ctllink.h"
#include "node/graves.h"
#include "node/inventory.h"
#include "node/logserver.h"
#include "node/crund.h"
#include "node/readyfd.h"
#include "node/shepherds.h"
#include "node/stepserver.h"
#include "node/task_table.h"
#include "node/taskflow.h"
#include "wire/ticket.h"

#define NODE_NAME_MAX 63

struct daemon {
    struct cw_node node;
    const char *conf_arg, *synthetic;
    bool daemonize, verbose;
    int ready_fd; /* told when the start is over, -1 none */
    char *conf_path, *pid_path;
    struct cw_conf *conf;
    struct cw_arena *arena;
    Cw__Inventory *inventory;
    int lock;
};

static int usage(FILE *f, int code)
{
    fputs("usage: crund -N NAME [-c FILE] [--synthetic TOPOLOGY] [--daemonize] [-f] [-v]\n", f);
    return code;
}

/* 0 go on, else exit code + 1. */
static int parse_args(int argc, char **argv, struct daemon *d)
{
    static const struct option longs[] = {
        { "conf", required_argument, NULL, 'c' },
        { "node", required_argument, NULL, 'N' },
        { "synthetic", required_argument, NULL, 's' },
        { "daemonize", no_argument, NULL, 'd' },
        { "foreground", no_argument, NULL, 'f' },
        { "verbose", no_argument, NULL, 'v' },
        { "version", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    for (int c; (c = getopt_long(argc, argv, "c:N:fvhV", longs, NULL)) != -1;) {
        if (c == 'c')
            d->conf_arg = optarg;
        else if (c == 'N')
            d->node.name = optarg;
        else if (c == 's')
            d->synthetic = optarg;
        else if (c == 'd' || c == 'f')
            d->daemonize = c == 'd';
        else if (c == 'v')
            d->verbose = true;
        else if (c == 'V') {
            puts("crund " PACKAGE_VERSION);
            return 1;
        } else
            return 1 + usage(c == 'h' ? stdout : stderr, c == 'h' ? 0 : 2);
    }
    if (optind != argc || d->node.name == NULL) {
        fputs("crund: the name of this node is needed: -N NAME\n", stderr);
        return 1 + usage(stderr, 2);
    }
    return 0;
}

static int check_name(const char *name, struct cw_error *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    size_t n = strlen(name);
    if (n == 0 || n > NODE_NAME_MAX || name[strspn(name, allowed)] != '\0' || name[0] == '.' ||
        name[0] == '-')
        return cw_fail(err, -EINVAL, "node name %.80s: letters, digits, '-', '.', '_', at most %d",
                       name, NODE_NAME_MAX);
    return 0;
}

static int load_conf(struct daemon *d, struct cw_error *err)
{
    cw_autofree char *path = NULL;
    int rc = check_name(d->node.name, err);
    if (rc < 0 || (rc = cw_conf_find(d->conf_arg, &path, err)) < 0)
        return rc;
    d->conf_path = realpath(path, NULL);
    if (d->conf_path == NULL)
        return cw_fail_errno(err, -errno, "%s", path);
    rc = cw_conf_load(d->conf_path, &d->conf, err);
    if (rc < 0)
        return rc;
    enum cw_log_level level = CW_LOG_INFO;
    cw_log_parse_level(d->conf->log_level, &level);
    cw_log_set_level(d->verbose ? CW_LOG_DEBUG : level);
    d->node.conf = d->conf;
    d->node.dir = cw_file_join(d->conf->node_dir, d->node.name);
    return 0;
}

static void warn(const char *text, void *arg)
{
    (void)arg;
    cw_log_warn("%s", text);
}

static int load_plugins(struct daemon *d, struct cw_error *err)
{
    static const char *const families[] = { "gpu", NULL };
    struct cw_plug *auth;
    d->node.plugs = cw_plug_registry_create(d->conf, d->node.name);
    int rc = cw_plug_load_configured(d->node.plugs, families, warn, NULL, err);
    return rc < 0 ? rc : cw_plug_load(d->node.plugs, "auth", d->conf->auth, &auth, err);
}

static int take_dir(struct daemon *d, struct cw_error *err)
{
    cw_autofree char *shep = cw_file_join(d->node.dir, "shep");
    cw_autofree char *tasks = cw_file_join(d->node.dir, "tasks");
    cw_autofree char *lock = cw_file_join(d->node.dir, "crund.lock");
    int rc = cw_file_mkdirs(d->node.dir, 0711, err);
    if (rc < 0 || (rc = cw_file_mkdirs(shep, 0700, err)) < 0 ||
        (rc = cw_file_mkdirs(tasks, 0711, err)) < 0 ||
        (rc = cw_file_mkdirs(d->conf->run_dir, 0755, err)) < 0)
        return rc;
    rc = cw_file_lock(lock, &d->lock, err);
    return rc < 0 ? cw_wrap(err, rc, "node %s is in use", d->node.name) : 0;
}

static int load_keys(struct daemon *d, struct cw_error *err)
{
    cw_autofree char *own = cw_file_join(d->node.dir, "node.key");
    cw_autobuf struct cw_buf key = { 0 };
    int rc = cw_file_read(d->conf->key_file, 4096, &key, err);
    if (rc < 0)
        return cw_wrap(err, rc, "the cluster's key");
    if (key.len != 32)
        return cw_fail(err, -EINVAL, "%s: the cluster's key has 32 bytes, this file %zu",
                       d->conf->key_file, key.len);
    rc = cw_keypair_load(own, NULL, true, &d->node.key, err);
    if (rc == 0)
        cw_ticket_node_key((const uint8_t *)key.data, d->node.name, d->node.ticket_key);
    explicit_bzero(key.data, key.len);
    return rc;
}

/* %n is the name of the node. */
static char *expand_address(const char *pattern, const char *name)
{
    cw_autobuf struct cw_buf b = { 0 };
    for (const char *p = pattern; *p != '\0'; p++)
        if (p[0] == '%' && p[1] == 'n') {
            cw_buf_add_str(&b, name);
            p++;
        } else {
            cw_buf_add(&b, p, 1);
        }
    return cw_buf_steal(&b);
}

static int start_shepherds(struct daemon *d, struct cw_error *err)
{
    struct cw_node *n = &d->node;
    n->tasks = cw_tasktab_create();
    n->shepherds = cw_shepherds_create(n, d->conf_path, &cw_taskflow_shepherds_ops, n);
    n->graves = cw_graves_create(n, &cw_taskflow_graves_ops, n);
    int rc = cw_shepherds_adopt(n->shepherds, cw_taskflow_dead, n, err);
    if (rc < 0 || (rc = cw_shepherds_start_resident(n->shepherds, err)) < 0)
        return rc;
    cw_shepherds_attach(n->shepherds);
    return 0;
}

static int make_inventory(struct daemon *d, struct cw_error *err)
{
    struct cw_shepherd_link *l = cw_shepherds_resident(d->node.shepherds, err);
    d->arena = cw_arena_create();
    return l == NULL ? -EAGAIN
                     : cw_inventory_make(&d->node, &l->isolations, d->arena, &d->inventory, err);
}

static int write_pid(struct daemon *d, struct cw_error *err)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%d\n", getpid());
    d->pid_path = cw_xasprintf("%s/crund.%s.pid", d->conf->run_dir, d->node.name);
    return cw_file_write_atomic(d->pid_path, text, (size_t)n, 0644, err);
}

static void on_turn_end(void *arg)
{
    struct cw_node *n = arg;
    bool sent = cw_shepherds_flush(n->shepherds);
    cw_taskflow_sent();
    if (n->ctl != NULL)
        cw_ctllink_turn_end(n->ctl, sent);
}

static void on_stop(int signo, void *arg)
{
    struct cw_node *n = arg;
    cw_log_info("signal %d: stopping; running tasks go on", signo);
    cw_loop_stop(n->loop);
}

static void on_hangup(int signo, void *arg)
{
    (void)signo;
    (void)arg; /* a terminal that goes is no reason to stop */
}

static int start(struct daemon *d, struct cw_error *err)
{
    struct cw_node *n = &d->node;
    int rc = load_conf(d, err);
    if (rc < 0 || (rc = cw_topo_open(d->synthetic, &n->topo, err)) < 0 ||
        (rc = load_plugins(d, err)) < 0 || (rc = take_dir(d, err)) < 0 ||
        (rc = load_keys(d, err)) < 0)
        return rc;
    n->epoch = (uint64_t)cw_clock_real_ns();
    n->address = expand_address(d->conf->session_listen, n->name);
    n->loop = cw_loop_create();
    if (n->loop == NULL)
        return cw_fail_errno(err, -errno, "event loop");
    if ((rc = start_shepherds(d, err)) < 0 || (rc = make_inventory(d, err)) < 0 ||
        (n->steps = cw_stepserver_create(n)) == NULL ||
        (rc = cw_logserver_open(n, &n->logs, err)) < 0 ||
        (rc = cw_ctllink_open(n, d->inventory, &n->ctl, err)) < 0 || (rc = write_pid(d, err)) < 0)
        return rc;
    cw_loop_on_turn_end(n->loop, on_turn_end, n);
    cw_loop_signal(n->loop, SIGTERM, on_stop, n);
    cw_loop_signal(n->loop, SIGINT, on_stop, n);
    cw_loop_signal(n->loop, SIGHUP, on_hangup, n);
    return 0;
}

static void stop(struct daemon *d)
{
    struct cw_node *n = &d->node;
    if (n->shepherds != NULL)
        cw_shepherds_quit(n->shepherds);
    cw_stepserver_destroy(n->steps); /* first: its calls are the socket's */
    n->steps = NULL;
    cw_logserver_close(n->logs);
    cw_ctllink_close(n->ctl);
    n->ctl = NULL;
    cw_graves_destroy(n->graves);
    cw_shepherds_destroy(n->shepherds);
    cw_tasktab_destroy(n->tasks);
    cw_plug_registry_destroy(n->plugs);
    cw_topo_close(n->topo);
    if (n->loop != NULL)
        cw_loop_destroy(n->loop);
    cw_arena_destroy(d->arena);
    if (d->pid_path != NULL)
        unlink(d->pid_path);
    cw_keypair_clear(&n->key);
    explicit_bzero(n->ticket_key, sizeof n->ticket_key);
    cw_conf_destroy(d->conf);
    free(n->address);
    free(n->dir);
    free(d->conf_path);
    free(d->pid_path);
}

/* ---- in the background ---------------------------------------------------------------------- */

/* In the parent: the start's result is the exit code. */
static int await_start(int fd, pid_t child)
{
    char byte;
    int status = 0;
    if (read(fd, &byte, 1) == 1)
        return 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1;
}

/* Forks before there are threads or sockets. -1: we are the daemon; else the parent's exit code. */
static int go_background(struct daemon *d)
{
    int p[2];
    if (!d->daemonize)
        return -1;
    if (pipe2(p, O_CLOEXEC) < 0) {
        perror("crund: pipe");
        return 1;
    }
    pid_t child = fork();
    if (child < 0) {
        perror("crund: fork");
        return 1;
    }
    if (child > 0) {
        close(p[1]);
        return await_start(p[0], child);
    }
    close(p[0]);
    setsid();
    d->ready_fd = p[1];
    return -1;
}

/* The start is over: errors go to the log file from now on. */
static int tell_ready(struct daemon *d, struct cw_error *err)
{
    if (d->ready_fd < 0)
        return 0;
    cw_autofree char *path = cw_file_join(d->node.dir, "crund.log");
    cw_autoclose int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    cw_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (log < 0 || null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
        chdir("/") < 0)
        return cw_fail_errno(err, -errno, "%s", path);
    int rc = cw_file_write_all(d->ready_fd, "k", 1);
    close(d->ready_fd);
    d->ready_fd = -1;
    return rc;
}

static void raise_limits(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max && r.rlim_cur < 65536) {
        r.rlim_cur = r.rlim_max < 65536 ? r.rlim_max : 65536;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

int main(int argc, char **argv)
{
    struct daemon d = { .lock = -1, .ready_fd = -1 };
    struct cw_error err = { 0 };
    int rc = parse_args(argc, argv, &d);
    if (rc != 0)
        return rc - 1;
    rc = go_background(&d);
    if (rc >= 0)
        return rc;
    cw_log_init("crund", CW_LOG_INFO);
    cw_crashpoint_init();
    cw_readyfd_init();
    signal(SIGPIPE, SIG_IGN);
    umask(0022);
    rc = start(&d, &err);
    if (rc == 0)
        rc = tell_ready(&d, &err);
    if (rc < 0) {
        fprintf(stderr, "crund: %s\n", err.text);
        stop(&d);
        return 1;
    }
    cw_log_info("node %s is up: %zu cores, %zu GPUs, logs at %s", d.node.name, d.inventory->n_cores,
                d.inventory->n_gpus, d.node.address);
    raise_limits();
    cw_loop_run(d.node.loop);
    stop(&d);
    return 0;
}
