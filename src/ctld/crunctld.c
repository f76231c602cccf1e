/* crunctld: the controller. Reads the configuration, takes the state directory, loads what is
 * there, opens its sockets, and then decides, stores, acts and answers, one turn of the loop after
 * the other (doc/ARCHITECTURE.md). This file is the order of things: coming up, one turn, going
 * down. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crashpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "ctld/background.h"
#include "ctld/core.h"
#include "ctld/ctl_jobs.h"
#include "ctld/ctld.h"
#include "ctld/cycle.h"
#include "ctld/deadline.h"
#include "ctld/instancekey.h"
#include "ctld/listeners.h"
#include "ctld/nodewatch.h"
#include "ctld/recover.h"
#include "ctld/reload.h"
#include "ctld/retention.h"
#include "ctld/users.h"
#include "plug/plug.h"

#define NEXT_ID_MAX UINT64_C(1000000000000) /* far from where ids would run out */

struct args {
    const char *conf;
    uint64_t next_id; /* 0: not given */
    bool check, daemonize, verbose;
};

static void usage(FILE *to)
{
    fputs("Usage: crunctld [-c FILE] [-t] [-f] [--daemonize] [-v]\n"
          "The controller of crun-wlm.\n\n"
          "  -c, --config=FILE  configuration (default: $CRUN_CONF, "
          "~/.crun-wlm/crun.conf, " CW_SYSCONFDIR "/crun-wlm/crun.conf)\n"
          "  -t, --test         check the configuration, print every value with its origin, and "
          "exit\n"
          "  -f, --foreground   stay in the foreground (the default)\n"
          "      --daemonize    go into the background once ready; the log goes to "
          "RUN_DIR/crunctld.log\n"
          "      --next-id=N    no new job gets an id below N (after a restore of an older copy)\n"
          "  -v, --verbose      log debug messages\n"
          "  -V, --version\n"
          "  -h, --help\n",
          to);
}

static int die(const struct cw_error *err)
{
    fprintf(stderr, "crunctld: %s\n", err->text);
    return 1;
}

static bool parse_id(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || n == 0 || n > NEXT_ID_MAX)
        return false;
    *ret = n;
    return true;
}

/* Returns -1 to go on, else an exit code. */
static int parse_args(int argc, char **argv, struct args *a)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'}, {"test", no_argument, NULL, 't'},
        {"foreground", no_argument, NULL, 'f'},   {"daemonize", no_argument, NULL, 'd'},
        {"next-id", required_argument, NULL, 'n'},
        {"verbose", no_argument, NULL, 'v'},      {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    int o;
    while ((o = getopt_long(argc, argv, "c:tfvVh", longs, NULL)) != -1) {
        switch (o) {
        case 'c': a->conf = optarg; break;
        case 't': a->check = true; break;
        case 'f': a->daemonize = false; break;
        case 'd': a->daemonize = true; break;
        case 'n':
            if (!parse_id(optarg, &a->next_id)) {
                fprintf(stderr, "crunctld: --next-id: '%s' is not a job id (1 to %llu)\n", optarg,
                        (unsigned long long)NEXT_ID_MAX);
                return 2;
            }
            break;
        case 'v': a->verbose = true; break;
        case 'V': printf("crunctld %s\n", PACKAGE_VERSION); return 0;
        case 'h': usage(stdout); return 0;
        default: usage(stderr); return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "crunctld: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    return -1;
}

/* ---- coming up ------------------------------------------------------------------------------ */

static void raise_limits(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

static enum cw_store_sync sync_of(const struct cw_conf *conf)
{
    if (strcmp(conf->store_sync, "none") == 0)
        return CW_STORE_SYNC_NONE;
    return strcmp(conf->store_sync, "meta") == 0 ? CW_STORE_SYNC_META : CW_STORE_SYNC_FULL;
}

static int open_state(struct cw_ctld *c, struct cw_error *err)
{
    int rc = cw_file_mkdirs(c->conf->state_dir, 0700, err);
    if (rc == 0)
        rc = cw_store_open(c->conf->state_dir, sync_of(c->conf), &c->store, err);
    if (rc == 0)
        rc = cw_file_mkdirs(c->conf->run_dir, 0755, err);
    if (rc == 0)
        rc = cw_instancekey_load(c, err);
    if (rc == 0)
        rc = cw_users_load_admins(c, err);
    return rc;
}

static void plugin_warning(const char *text, void *arg)
{
    (void)arg;
    cw_log_warn("%s", text);
}

static int load_plugins(struct cw_ctld *c, struct cw_error *err)
{
    static const char *const families[] = {"auth", "sched", "volume", NULL};
    struct cw_plug *sched;
    c->plugins = cw_plug_registry_create(c->start_conf, NULL);
    int rc = cw_plug_load(c->plugins, "auth", c->conf->auth, &c->auth, err);
    if (rc == 0)
        rc = cw_plug_load(c->plugins, "sched", c->conf->sched, &sched, err);
    if (rc == 0)
        rc = cw_plug_load_configured(c->plugins, families, plugin_warning, NULL, err);
    if (rc < 0)
        return rc;
    c->policy = (struct cw_pass_policy){.ops = CW_PLUG_OPS(sched, sched),
                                        .ctx = cw_plug_ctx(sched),
                                        .caps = cw_plug_desc(sched)->caps,
                                        .backfill = cw_reload_backfill(c->conf),
                                        .depth = c->conf->backfill_depth};
    return 0;
}

static void on_stop_signal(int signo, void *arg)
{
    cw_log_info("signal %d: stopping", signo);
    cw_core_stop(arg);
}

static void on_reload_signal(int signo, void *arg)
{
    struct cw_error err = {0};
    cw_autobuf struct cw_buf text = {0};
    (void)signo;
    cw_reload(arg, (uint32_t)geteuid(), &text, &err); /* it logs how it went */
}

static void end_of_turn(void *arg);

static int come_up(struct cw_ctld *c, struct cw_error *err)
{
    c->start_ns = cw_clock_real_ns();
    c->loop = cw_loop_create();
    if (c->loop == NULL)
        return cw_fail_errno(err, -errno, "event loop");
    int rc = open_state(c, err);
    if (rc == 0)
        rc = load_plugins(c, err);
    if (rc < 0)
        return rc;
    cw_core_create(c);
    rc = cw_recover(c, err);
    if (rc == 0)
        rc = cw_ctl_pause_load(c, err);
    if (rc == 0)
        rc = cw_listeners_open(c, err);
    if (rc < 0)
        return rc;
    c->nodewatch = cw_nodewatch_create(c);
    c->retention = cw_retention_create(c);
    cw_loop_signal(c->loop, SIGTERM, on_stop_signal, c);
    cw_loop_signal(c->loop, SIGINT, on_stop_signal, c);
    cw_loop_signal(c->loop, SIGHUP, on_reload_signal, c);
    cw_loop_on_turn_end(c->loop, end_of_turn, c);
    cw_deadline_run(c->deadline);
    cw_cycle_want(c->cycle);
    return 0;
}

/* ---- one turn ------------------------------------------------------------------------------- */

static void end_of_turn(void *arg)
{
    cw_core_turn(arg);
}

/* ---- going down ----------------------------------------------------------------------------- */

static void go_down(struct cw_ctld *c)
{
    cw_loop_timer_close(c->stop_timer);
    cw_retention_destroy(c->retention);
    cw_nodewatch_destroy(c->nodewatch);
    cw_core_destroy(c);
    cw_listeners_close(c);
    cw_plug_registry_destroy(c->plugins);
    cw_store_close(c->store);
    cw_loop_destroy(c->loop);
    free(c->admin_uids);
    cw_keypair_clear(&c->key);
    sodium_memzero(c->cluster_key, sizeof c->cluster_key);
}

/* ---- story ---------------------------------------------------------------------------------- */

static int load_conf(const struct args *a, struct cw_conf **ret, struct cw_error *err)
{
    cw_autofree char *path = NULL;
    int rc = cw_conf_find(a->conf, &path, err);
    return rc < 0 ? rc : cw_conf_load(path, ret, err);
}

static int print_conf(const struct cw_conf *conf)
{
    cw_autobuf struct cw_buf text = {0};
    cw_conf_dump(conf, &text);
    return fputs(cw_buf_str(&text), stdout) < 0 || fflush(stdout) != 0;
}

static void start_log(const struct cw_conf *conf, const struct args *a)
{
    enum cw_log_level level = CW_LOG_INFO;
    cw_log_parse_level(conf->log_level, &level);
    cw_log_init("crunctld", a->verbose ? CW_LOG_DEBUG : level);
}

/* Kept by the first submit, which stores the mark. */
static void raise_next_id(struct cw_ctld *c, uint64_t id)
{
    if (id > cw_model_next_id(c->model))
        cw_model_set_next_id(c->model, id);
}

static int run(struct cw_ctld *c, const struct args *a, struct cw_error *err)
{
    cw_autofree char *pid_path = cw_file_join(c->conf->run_dir, "crunctld.pid");
    cw_autofree char *log_path = cw_file_join(c->conf->run_dir, "crunctld.log");
    int rc = come_up(c, err);
    if (rc == 0)
        raise_next_id(c, a->next_id); /* the loop has not run: nobody has submitted yet */
    if (rc == 0)
        rc = cw_background_write_pid(pid_path, err);
    if (rc == 0 && a->daemonize)
        rc = cw_background_log_to(log_path, err);
    if (rc < 0)
        return rc;
    cw_log_info("ready: version %s, pid %d, commands at %s, nodes at %s", PACKAGE_VERSION,
                (int)getpid(), c->conf->client_listen, c->conf->node_listen);
    cw_background_ready();
    cw_loop_run(c->loop);
    unlink(pid_path);
    return 0;
}

int main(int argc, char **argv)
{
    struct args a = {0};
    struct cw_error err = {0};
    struct cw_ctld c = {0};
    int rc = parse_args(argc, argv, &a);
    if (rc >= 0)
        return rc;
    if (sodium_init() < 0) {
        fprintf(stderr, "crunctld: libsodium does not start\n");
        return 1;
    }
    if (load_conf(&a, &c.conf, &err) < 0)
        return die(&err);
    c.start_conf = c.conf;
    if (a.check) {
        rc = print_conf(c.conf);
        cw_conf_destroy(c.conf);
        return rc;
    }
    if (a.daemonize && cw_background_enter(&err) < 0)
        return die(&err);
    signal(SIGPIPE, SIG_IGN);
    raise_limits();
    cw_crashpoint_init();
    start_log(c.conf, &a);
    rc = run(&c, &a, &err);
    go_down(&c);
    if (c.conf != c.start_conf)
        cw_conf_destroy(c.conf);
    cw_conf_destroy(c.start_conf);
    if (rc < 0)
        return die(&err);
    cw_log_info("stopped");
    return 0;
}
