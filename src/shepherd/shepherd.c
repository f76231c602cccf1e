/* crun-shepherd: starts tasks, watches them, reports their ends; see README and crun-shepherd(8).
 *
 * One thread, four descriptors: signals, the listening socket, the node daemon, and one for the
 * sessions of all steps. It depends on no
 * other daemon to live: without a node daemon it goes on, keeps what has ended, and tells the next
 * one that connects (the newest wins). It goes when told to and empty, or after a minute alone with
 * nothing. */
#include "config.h"

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crashpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "conf/conf.h"
#include "shepherd/herd.h"
#include "shepherd/reclaim.h"
#include "shepherd/stepio.h"
#include "shepherd/stepserve.h"
#include "shepherd/stepset.h"

#define ALONE_MS 60000

struct args {
    const char *conf, *node, *id;
    int fd;
    bool unbound, reclaim;
};

struct shepherd {
    struct args args;
    struct cw_conf *conf;
    struct cw_herd herd;
    char *node_dir, *shep_dir, *journal_path, *sock_name;
    int lock, sig, listener;
    bool quit, terminated;
    int64_t alone_since_ms; /* 0: not alone, or not idle */
};

static int usage(const char *why)
{
    fprintf(stderr,
            "crun-shepherd: %s\nusage: crun-shepherd -c FILE -N NODE -i ID [--fd N] [--unbound] "
            "[--reclaim]\n",
            why);
    return 2;
}

static int parse_args(int argc, char **argv, struct args *a)
{
    static const struct option longs[] = {
        { "conf", required_argument, NULL, 'c' }, { "node", required_argument, NULL, 'N' },
        { "id", required_argument, NULL, 'i' },   { "fd", required_argument, NULL, 'f' },
        { "unbound", no_argument, NULL, 'u' },    { "reclaim", no_argument, NULL, 'r' },
        { "version", no_argument, NULL, 'V' },    { NULL, 0, NULL, 0 },
    };
    char *end = NULL;
    *a = (struct args){ .fd = -1 };
    for (int c; (c = getopt_long(argc, argv, "c:N:i:", longs, NULL)) != -1;) {
        if (c == 'c')
            a->conf = optarg;
        else if (c == 'N')
            a->node = optarg;
        else if (c == 'i')
            a->id = optarg;
        else if (c == 'f')
            a->fd = (int)strtol(optarg, &end, 10);
        else if (c == 'u')
            a->unbound = true;
        else if (c == 'r')
            a->reclaim = true;
        else if (c == 'V') {
            puts("crun-shepherd " PACKAGE_VERSION);
            exit(0);
        } else
            return usage("started by crund");
    }
    if (end != NULL && (*end != '\0' || a->fd < 3))
        return usage("--fd takes a descriptor from 3 on");
    if (a->conf == NULL || a->node == NULL || a->id == NULL || optind != argc ||
        strchr(a->id, '/') != NULL)
        return usage("-c, -N and -i are needed (it is started by crund)");
    return 0;
}

/* Standard descriptors that stay valid when a terminal or pipe of the node daemon goes. */
static int open_stdio(struct shepherd *s, struct cw_error *err)
{
    cw_autofree char *path = cw_file_join(s->node_dir, "shepherd.log"); /* of all of this node */
    cw_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    cw_autoclose int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0 || null < 0)
        return cw_fail_errno(err, -errno, "%s", path);
    if (dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        return cw_fail_errno(err, -errno, "standard descriptors");
    return 0;
}

/* A task costs some descriptors here (its box), so the ceiling goes up; tasks get the old one. */
static void raise_nofile(struct rlimit *ret_tasks)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    *ret_tasks = r;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

/* Nothing of whoever started us may leak into tasks. */
static int become_supervisor(struct shepherd *s, struct cw_error *err)
{
    struct rlimit core = { 0, RLIM_INFINITY };
    sigset_t mask;
    setsid();
    umask(0022);
    if (chdir("/") < 0)
        return cw_fail_errno(err, -errno, "chdir /");
    for (int i = 1; i < NSIG; i++)
        signal(i, i == SIGPIPE ? SIG_IGN : SIG_DFL);
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &core);
    }
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    if (sigprocmask(SIG_SETMASK, &mask, NULL) < 0)
        return cw_fail_errno(err, -errno, "signal mask");
    s->sig = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (s->sig < 0)
        return cw_fail_errno(err, -errno, "signalfd");
    /* Orphans of tasks come to us, so we hear of each death. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return cw_fail_errno(err, -errno, "become a subreaper");
    return 0;
}

/* Can every user walk to dir? */
static bool reachable(const char *dir)
{
    cw_autofree char *path = cw_xstrdup(dir);
    for (;;) {
        struct stat st;
        if (stat(path, &st) < 0 || (st.st_mode & S_IXOTH) == 0)
            return false;
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash == path)
            return true;
        *slash = '\0';
    }
}

static void warn(const char *text, void *arg)
{
    (void)arg;
    cw_log_warn("%s", text);
}

static void try_isolation(struct shepherd *s, const char *name)
{
    struct cw_plug *p;
    struct cw_error err;
    if (name == NULL || *name == '\0' || cw_plug_find(s->herd.plugs, "isolation", name) != NULL)
        return;
    if (cw_plug_load(s->herd.plugs, "isolation", name, &p, &err) < 0)
        cw_log_warn("%s", err.text);
}

static int load_plugins(struct shepherd *s, struct cw_error *err)
{
    static const char *const families[] = { "isolation", "gpu", "volume", NULL };
    s->herd.conf = s->conf;
    s->herd.plugs = cw_plug_registry_create(s->conf, s->args.node);
    int rc = cw_plug_load_configured(s->herd.plugs, families, warn, NULL, err);
    if (rc < 0)
        return rc;
    try_isolation(s, "cgroup");
    try_isolation(s, "none");
    try_isolation(s, s->conf->default_isolation);
    for (size_t i = 0; i < s->conf->n_partitions; i++)
        try_isolation(s, s->conf->partitions[i].isolation);
    struct cw_plug *p;
    struct cw_error ignored;
    if (cw_plug_find(s->herd.plugs, "volume", "local") == NULL &&
        cw_plug_load(s->herd.plugs, "volume", "local", &p, &ignored) < 0)
        cw_log_warn("%s", ignored.text);
    return 0;
}

static int open_all(struct shepherd *s, struct cw_error *err)
{
    struct cw_herd *h = &s->herd;
    int rc = cw_conf_load(s->args.conf, &s->conf, err);
    if (rc < 0)
        return rc;
    s->node_dir = cw_file_join(s->conf->node_dir, s->args.node);
    s->shep_dir = cw_file_join(s->node_dir, "shep");
    s->journal_path = cw_xasprintf("%s/%s.journal", s->shep_dir, s->args.id);
    s->sock_name = cw_xasprintf("%s.sock", s->args.id);
    cw_autofree char *tasks = cw_file_join(s->node_dir, "tasks");
    cw_autofree char *lock = cw_xasprintf("%s/%s.lock", s->shep_dir, s->args.id);
    if ((rc = cw_file_mkdirs(s->node_dir, 0711, err)) < 0 ||
        (rc = cw_file_mkdirs(s->shep_dir, 0700, err)) < 0 ||
        (rc = cw_file_mkdirs(tasks, 0711, err)) < 0 ||
        (rc = cw_file_lock(lock, &s->lock, err)) < 0 || (rc = open_stdio(s, err)) < 0 ||
        (rc = become_supervisor(s, err)) < 0)
        return rc;
    enum cw_log_level level = CW_LOG_INFO;
    cw_log_parse_level(s->conf->log_level, &level);
    char program[32];
    snprintf(program, sizeof program, "crun-shepherd %.16s", s->args.id);
    cw_log_init(program, level);
    h->node = s->args.node;
    h->node_dir = s->node_dir;
    h->unbound = s->args.unbound;
    cw_herd_init(h);
    raise_nofile(&h->nofile);
    h->reachable = reachable(tasks);
    rc = load_plugins(s, err);
    return rc < 0 ? rc : cw_journal_open(s->journal_path, &h->journal, err);
}

static void add_isolation(struct cw_plug *p, void *arg)
{
    struct cw_plugin_err perr = { "" };
    const char *name = cw_plug_desc(p)->name;
    int rc = CW_PLUG_HAS(isolation, p, probe)
                 ? CW_PLUG_OPS(isolation, p)->probe(cw_plug_ctx(p), &perr)
                 : 0;
    if (rc < 0)
        cw_log_info("isolation %s: not usable here: %s", name,
                    perr.text[0] != '\0' ? perr.text : strerror(-rc));
    else
        cw_buf_addf(arg, "isolation %s\n", name);
}

/* A new link: what we are, and then everything we know. */
static void greet(struct shepherd *s, int fd)
{
    cw_autobuf struct cw_buf b = { 0 };
    cw_packets_destroy(s->herd.peer);
    s->herd.peer = cw_packets_create(fd);
    cw_stepset_new_link(&s->herd);
    cw_buf_addf(&b, "id %s\npid %d\n", s->args.id, getpid());
    cw_plug_each(s->herd.plugs, "isolation", add_isolation, &b);
    cw_herd_tell(&s->herd, CW_PACKET_HELLO, b.data, b.len);
    cw_herd_list(&s->herd);
}

static void lose_peer(struct shepherd *s)
{
    cw_packets_destroy(s->herd.peer);
    s->herd.peer = NULL;
    if (s->quit)
        cw_herd_wake(&s->herd, cw_herd_now_ms()); /* nobody will read what has ended */
}

static void on_packet(enum cw_packet_type type, const void *body, size_t n, int fd, void *arg)
{
    struct shepherd *s = arg;
    if (fd >= 0)
        close(fd); /* nobody sends us one */
    if (type == CW_PACKET_QUIT)
        s->quit = s->herd.leaving = true;
    else
        cw_herd_packet(&s->herd, type, body, n);
}

/* One datagram a turn, so that deaths are seen between starts; all of them when a new link came. */
static void read_peer(struct shepherd *s, bool all)
{
    int rc;
    do
        rc = cw_packets_recv(s->herd.peer, on_packet, s);
    while (all && rc == 0);
    if (rc < 0 && rc != -EAGAIN)
        lose_peer(s);
}

static void accept_peer(struct shepherd *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (s->herd.peer != NULL)
        read_peer(s, true); /* what the old daemon still sent counts */
    greet(s, fd);
}

static void on_signals(struct shepherd *s)
{
    struct signalfd_siginfo info;
    bool child = false, term = false;
    while (read(s->sig, &info, sizeof info) == (ssize_t)sizeof info) {
        child |= info.ssi_signo == SIGCHLD;
        term |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
    }
    if (child)
        cw_herd_reap(&s->herd);
    if (term && !s->terminated) {
        s->terminated = s->quit = true;
        cw_log_info("told to end: %zu tasks are killed", s->herd.n_tasks);
        cw_herd_kill_all(&s->herd, CW__CAUSE__CAUSE_NODE_LOST);
    }
}

static bool may_go(struct shepherd *s)
{
    if (s->terminated && !cw_herd_running(&s->herd))
        return true; /* unreported ends stay in the journal */
    if (!cw_herd_idle(&s->herd)) {
        s->alone_since_ms = 0;
        return false;
    }
    if (s->quit)
        return true;
    if (s->herd.peer != NULL) {
        s->alone_since_ms = 0;
        return false;
    }
    int64_t now = cw_herd_now_ms();
    if (s->alone_since_ms == 0) {
        s->alone_since_ms = now;
        cw_herd_wake(&s->herd, now + ALONE_MS);
    }
    return now - s->alone_since_ms >= ALONE_MS;
}

static int timeout_ms(const struct cw_herd *h)
{
    if (h->next_due == INT64_MAX)
        return -1;
    int64_t left = h->next_due - cw_herd_now_ms();
    return left <= 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

static void turn(struct shepherd *s)
{
    struct cw_herd *h = &s->herd;
    bool waits = false;
    if (h->peer != NULL) {
        int rc = cw_packets_flush(h->peer);
        waits = rc == -EAGAIN;
        if (rc < 0 && rc != -EAGAIN)
            lose_peer(s);
    }
    struct pollfd p[4] = {
        { .fd = s->sig, .events = POLLIN },
        { .fd = s->listener, .events = POLLIN },
        { .fd = h->peer != NULL ? cw_packets_fd(h->peer) : -1,
          .events = (short)(POLLIN | (waits ? POLLOUT : 0)) },
        { .fd = h->n_steps > 0 ? h->io_fd : -1, .events = POLLIN },
    };
    if (poll(p, 4, timeout_ms(h)) < 0)
        return;
    if (p[0].revents != 0)
        on_signals(s);
    if (p[3].revents != 0)
        cw_stepio_run(h, cw_stepserve_news);
    if (p[2].revents != 0 && h->peer != NULL)
        read_peer(s, false);
    if (p[1].revents != 0)
        accept_peer(s);
    cw_herd_due(h);
}

/* What is left on disk: nothing when everything was reported. */
static void leave(struct shepherd *s)
{
    cw_autofree char *sock = cw_file_join(s->shep_dir, s->sock_name);
    cw_autofree char *lock = cw_xasprintf("%s/%s.lock", s->shep_dir, s->args.id);
    unlink(sock);
    if (cw_herd_idle(&s->herd)) {
        unlink(s->journal_path);
        unlink(lock);
    }
    if (s->herd.peer != NULL)
        cw_packets_flush(s->herd.peer);
}

static void fini(struct shepherd *s)
{
    cw_packets_destroy(s->herd.peer);
    cw_herd_fini(&s->herd);
    cw_journal_close(s->herd.journal);
    cw_plug_registry_destroy(s->herd.plugs);
    cw_conf_destroy(s->conf);
    free(s->node_dir);
    free(s->shep_dir);
    free(s->journal_path);
    free(s->sock_name);
}

static int serve(struct shepherd *s, struct cw_error *err)
{
    int rc = cw_packet_listen(s->shep_dir, s->sock_name, &s->listener, err);
    if (rc < 0)
        return rc;
    if (s->args.fd >= 0)
        greet(s, s->args.fd);
    while (!may_go(s))
        turn(s);
    leave(s);
    return 0;
}

/* The node daemon that waits for HELLO hears why there is none. */
static int refuse(struct shepherd *s, const struct cw_error *err)
{
    cw_log_error("%s", err->text);
    if (s->args.fd >= 0) {
        struct cw_packets *p = cw_packets_create(s->args.fd);
        cw_packets_add(p, CW_PACKET_REFUSED, err->text, strlen(err->text));
        cw_packets_flush(p);
        cw_packets_destroy(p);
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct shepherd s = { .lock = -1, .sig = -1, .listener = -1 };
    struct cw_error err = { 0 };
    int rc = parse_args(argc, argv, &s.args);
    if (rc != 0)
        return rc;
    cw_log_init("crun-shepherd", CW_LOG_INFO);
    cw_crashpoint_init();
    if (s.args.fd >= 0)
        fcntl(s.args.fd, F_SETFD, FD_CLOEXEC);
    rc = open_all(&s, &err);
    if (rc == 0)
        rc = s.args.reclaim ? cw_reclaim(&s.herd, s.journal_path, &err) : serve(&s, &err);
    if (rc < 0)
        return refuse(&s, &err);
    fini(&s);
    return rc > 0 ? CW_RECLAIM_EXIT_LEFT : 0;
}
