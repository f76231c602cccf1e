/* Links to shepherds; see shepherds.h. */
#include "node/shepherds.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paths.h"

#define START_DEADLINE_MS 30000
#define BACKOFF_MS        5000 /* a shepherd that dies at once is not started again sooner */

struct cw_shepherds {
    struct cw_node *node;
    char *conf_path, *shep_dir;
    struct cw_list links;
    struct cw_shepherd_link *resident; /* NULL: none now */
    struct cw_loop_child *child;       /* the newest one that we started, to reap it */
    struct cw_shepherds_ops ops;
    void *arg;
    bool attached;
    bool respawn; /* the first resident was started */
    int64_t not_before_ms;
    char last_refusal[256];
};

extern char **environ;

struct cw_shepherds *cw_shepherds_create(struct cw_node *node, const char *conf_path,
                                         const struct cw_shepherds_ops *ops, void *arg)
{
    struct cw_shepherds *s = cw_xcalloc(1, sizeof *s);
    s->node = node;
    s->conf_path = cw_xstrdup(conf_path);
    s->shep_dir = cw_file_join(node->dir, "shep");
    s->ops = *ops;
    s->arg = arg;
    cw_list_init(&s->links);
    return s;
}

static void link_destroy(struct cw_shepherd_link *l)
{
    if (l->set->resident == l)
        l->set->resident = NULL;
    cw_list_remove(&l->link);
    cw_loop_io_close(l->io);
    cw_packets_destroy(l->packets);
    cw_strv_fini(&l->isolations);
    free(l->refusal);
    free(l);
}

void cw_shepherds_destroy(struct cw_shepherds *s)
{
    if (s == NULL)
        return;
    cw_list_each_safe(p, &s->links)
        link_destroy(cw_list_entry(p, struct cw_shepherd_link, link));
    cw_loop_child_close(s->child);
    free(s->conf_path);
    free(s->shep_dir);
    free(s);
}

static void on_io(int fd, int events, void *arg);

static struct cw_shepherd_link *link_create(struct cw_shepherds *s, const char *id, int fd)
{
    struct cw_shepherd_link *l = cw_xcalloc(1, sizeof *l);
    l->set = s;
    snprintf(l->id, sizeof l->id, "%s", id);
    l->packets = cw_packets_create(fd);
    cw_list_add_tail(&s->links, &l->link);
    if (s->attached)
        l->io = cw_loop_io_open(s->node->loop, fd, CW_LOOP_READ, on_io, l);
    return l;
}

/* HELLO: lines "id X", "pid N", "isolation NAME". */
static void on_hello(struct cw_shepherd_link *l, const char *body, size_t n)
{
    cw_autofree char *text = cw_xstrndup(body, n);
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, "isolation ", 10) == 0)
            cw_strv_add(&l->isolations, line + 10);
}

static void on_packet(enum cw_packet_type type, const void *body, size_t n, int fd, void *arg)
{
    struct cw_shepherd_link *l = arg;
    if (type == CW_PACKET_HELLO) {
        on_hello(l, body, n);
    } else if (type == CW_PACKET_LISTED) {
        l->listed = l->worked = true;
    } else if (type == CW_PACKET_REFUSED) {
        free(l->refusal);
        l->refusal = cw_xstrndup(body, n);
    } else {
        l->set->ops.packet(l, type, body, n, cw_steal_fd(fd), l->set->arg);
    }
    if (fd >= 0)
        close(fd);
}

/* 0 as long as the shepherd lives. */
static int link_read(struct cw_shepherd_link *l)
{
    int rc;
    for (int i = 0; i < 64; i++)
        if ((rc = cw_packets_recv(l->packets, on_packet, l)) < 0)
            return rc == -EAGAIN ? 0 : rc;
    return 0;
}

/* A link that broke while the shepherd lives is made again: it begins with the whole list. */
static void on_broken(struct cw_shepherd_link *l)
{
    struct cw_shepherds *s = l->set;
    bool resident = s->resident == l;
    cw_autofree char *name = cw_xasprintf("%s.sock", l->id);
    int fd;
    if (l->refusal == NULL && cw_packet_connect(s->shep_dir, name, &fd, NULL) == 0) {
        cw_loop_io_close(l->io);
        cw_packets_destroy(l->packets);
        l->packets = cw_packets_create(fd);
        l->io = s->attached ? cw_loop_io_open(s->node->loop, fd, CW_LOOP_READ, on_io, l) : NULL;
        l->listed = false;
        l->waits = false;
        return;
    }
    cw_log_warn("shepherd %s is gone%s%s", l->id, l->refusal != NULL ? ": " : "",
                l->refusal != NULL ? l->refusal : "");
    if (resident) {
        s->not_before_ms = cw_clock_mono_ns() / CW_NS_PER_MS + (l->worked ? 0 : BACKOFF_MS);
        snprintf(s->last_refusal, sizeof s->last_refusal, "%s",
                 l->refusal != NULL ? l->refusal : "it died");
    }
    s->ops.lost(l, s->arg);
    link_destroy(l);
}

static void on_io(int fd, int events, void *arg)
{
    struct cw_shepherd_link *l = arg;
    (void)fd;
    if (events < 0 || link_read(l) < 0) {
        on_broken(l);
        return;
    }
    if (l->waits) { /* flush at the end of the turn decides whether to wait again */
        l->waits = false;
        cw_loop_io_set(l->io, CW_LOOP_READ);
    }
}

void cw_shepherds_attach(struct cw_shepherds *s)
{
    s->attached = true;
    cw_list_each(p, &s->links) {
        struct cw_shepherd_link *l = cw_list_entry(p, struct cw_shepherd_link, link);
        if (l->io == NULL)
            l->io = cw_loop_io_open(s->node->loop, cw_packets_fd(l->packets), CW_LOOP_READ, on_io,
                                    l);
    }
}

/* Before the loop runs: reads one link until it has listed. */
static int wait_listed(struct cw_shepherd_link *l, struct cw_error *err)
{
    int64_t end = cw_clock_mono_ns() / CW_NS_PER_MS + START_DEADLINE_MS;
    while (!l->listed) {
        int64_t left = end - cw_clock_mono_ns() / CW_NS_PER_MS;
        struct pollfd p = { .fd = cw_packets_fd(l->packets), .events = POLLIN };
        cw_packets_flush(l->packets);
        if (left <= 0)
            return cw_fail_node(err, -ETIMEDOUT, "shepherd %s does not answer", l->id);
        if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
            return cw_fail_errno(err, -errno, "poll");
        if (link_read(l) < 0)
            return l->refusal != NULL
                       ? cw_fail_node(err, -EIO, "%s", l->refusal)
                       : cw_fail_node(err, -EPIPE,
                                      "shepherd %s ended at its start (see %s/shepherd.log)", l->id,
                                      l->set->node->dir);
    }
    return 0;
}

/* ---- adoption ------------------------------------------------------------------------------- */

/* The ids of all ID.SUFFIX in the directory. */
static int each_file(struct cw_shepherds *s, const char *suffix, struct cw_strv *ret,
                     struct cw_error *err)
{
    DIR *d = opendir(s->shep_dir);
    if (d == NULL)
        return errno == ENOENT ? 0 : cw_fail_errno(err, -errno, "%s", s->shep_dir);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name), k = strlen(suffix);
        if (n > k && n - k < 48 && strcmp(e->d_name + n - k, suffix) == 0)
            cw_strv_add_take(ret, cw_xstrndup(e->d_name, n - k));
    }
    closedir(d);
    return 0;
}

struct cw_shepherd_link *cw_shepherds_find(struct cw_shepherds *s, const char *id)
{
    cw_list_each(p, &s->links)
        if (strcmp(cw_list_entry(p, struct cw_shepherd_link, link)->id, id) == 0)
            return cw_list_entry(p, struct cw_shepherd_link, link);
    return NULL;
}

static void adopt_one(struct cw_shepherds *s, const char *id)
{
    cw_autofree char *name = cw_xasprintf("%s.sock", id);
    struct cw_error err;
    int fd, rc = cw_packet_connect(s->shep_dir, name, &fd, &err);
    if (rc < 0) {
        cw_autofree char *path = cw_file_join(s->shep_dir, name);
        unlink(path); /* nobody listens: its journal tells the rest */
        return;
    }
    struct cw_shepherd_link *l = link_create(s, id, fd);
    cw_packets_add(l->packets, CW_PACKET_QUIT, NULL, 0);
    if (wait_listed(l, &err) < 0) {
        cw_log_warn("%s", err.text);
        link_destroy(l);
    }
}

int cw_shepherds_adopt(struct cw_shepherds *s, void (*dead)(const char *id, void *arg), void *arg,
                       struct cw_error *err)
{
    cw_autostrv struct cw_strv socks = { 0 }, journals = { 0 };
    int rc = each_file(s, ".sock", &socks, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < socks.n; i++)
        adopt_one(s, socks.v[i]);
    rc = each_file(s, ".journal", &journals, err);
    for (size_t i = 0; rc == 0 && i < journals.n; i++)
        if (cw_shepherds_find(s, journals.v[i]) == NULL)
            dead(journals.v[i], arg);
    return rc;
}

/* ---- starting ------------------------------------------------------------------------------- */

/* A shepherd's child must not die of the fault that its predecessor was told to die of. */
static char **environment(struct cw_shepherds *s, struct cw_strv *copy)
{
    if (!s->respawn)
        return environ;
    for (char **e = environ; *e != NULL; e++)
        if (strncmp(*e, "CRUN_FAULT=", 11) != 0)
            cw_strv_add(copy, *e);
    return copy->n > 0 ? copy->v : environ;
}

static int spawn(struct cw_shepherds *s, char *const *argv, int pass_fd, pid_t *ret,
                 struct cw_error *err)
{
    cw_autofree char *file = cw_file_join(cw_paths_libexec(), "crun-shepherd");
    cw_autostrv struct cw_strv env = { 0 };
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none, all;
    posix_spawn_file_actions_init(&fa);
    posix_spawnattr_init(&at);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setsigdefault(&at, &all);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (pass_fd >= 0)
        posix_spawn_file_actions_adddup2(&fa, pass_fd, 3);
    int rc = -posix_spawn(ret, file, &fa, &at, argv, environment(s, &env));
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    return rc < 0 ? cw_fail(err, rc, "%s: %s", file, strerror(-rc)) : 0;
}

static void on_child(pid_t pid, void *arg)
{
    struct cw_shepherds *s = arg;
    waitpid(pid, NULL, WNOHANG); /* the link tells us of its death; this only reaps */
    cw_loop_child_close(s->child);
    s->child = NULL;
}

static int resident_start(struct cw_shepherds *s, struct cw_error *err)
{
    char id[48];
    int sv[2];
    pid_t pid = 0;
    snprintf(id, sizeof id, "r%llx", (unsigned long long)(cw_clock_real_ns() / CW_NS_PER_MS));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return cw_fail_errno(err, -errno, "socketpair");
    bool unbound = !cw_topo_is_this_system(s->node->topo);
    char *argv[] = { (char *)"crun-shepherd",
                     (char *)"-c",
                     s->conf_path,
                     (char *)"-N",
                     (char *)(uintptr_t)s->node->name,
                     (char *)"-i",
                     id,
                     (char *)"--fd",
                     (char *)"3",
                     unbound ? (char *)"--unbound" : NULL,
                     NULL };
    int rc = spawn(s, argv, sv[1], &pid, err);
    close(sv[1]);
    if (rc < 0) {
        close(sv[0]);
        return rc;
    }
    s->respawn = true;
    s->resident = link_create(s, id, sv[0]);
    cw_loop_child_close(s->child);
    s->child = cw_loop_child_open(s->node->loop, pid, on_child, s, NULL);
    return 0;
}

int cw_shepherds_start_resident(struct cw_shepherds *s, struct cw_error *err)
{
    int rc = resident_start(s, err);
    return rc < 0 ? rc : wait_listed(s->resident, err);
}

struct cw_shepherd_link *cw_shepherds_resident(struct cw_shepherds *s, struct cw_error *err)
{
    if (s->resident != NULL)
        return s->resident;
    if (cw_clock_mono_ns() / CW_NS_PER_MS < s->not_before_ms) {
        cw_fail_node(err, -EAGAIN, "no shepherd works on node %s: %s", s->node->name,
                     s->last_refusal);
        return NULL;
    }
    return resident_start(s, err) == 0 ? s->resident : NULL;
}

/* Boxes with mounts, pids or network of their own (CW_ISOLATION_CAP_PRIVATE) will get a shepherd
 * each; no isolation plugin has them yet, so every task is the resident's. */
struct cw_shepherd_link *cw_shepherds_pick(struct cw_shepherds *s, const Cw__TaskStart *t,
                                           struct cw_error *err)
{
    (void)t;
    return cw_shepherds_resident(s, err);
}

bool cw_shepherds_flush(struct cw_shepherds *s)
{
    bool all = true;
    cw_list_each_safe(p, &s->links) {
        struct cw_shepherd_link *l = cw_list_entry(p, struct cw_shepherd_link, link);
        int rc = cw_packets_flush(l->packets);
        if (rc == 0)
            continue;
        if (rc != -EAGAIN) {
            if (link_read(l) == 0) /* what it still said before it went */
                cw_log_warn("shepherd %s: send: %s", l->id, strerror(-rc));
            on_broken(l);
            continue;
        }
        all = false;
        l->waits = true;
        if (l->io != NULL)
            cw_loop_io_set(l->io, CW_LOOP_READ | CW_LOOP_WRITE);
    }
    return all;
}

void cw_shepherds_quit(struct cw_shepherds *s)
{
    cw_list_each(p, &s->links) {
        struct cw_shepherd_link *l = cw_list_entry(p, struct cw_shepherd_link, link);
        cw_packets_add(l->packets, CW_PACKET_QUIT, NULL, 0);
        cw_packets_flush(l->packets);
    }
}

int cw_shepherds_reclaim(struct cw_shepherds *s, const char *id, pid_t *ret_pid,
                         struct cw_error *err)
{
    char *argv[] = { (char *)"crun-shepherd",
                     (char *)"-c",
                     s->conf_path,
                     (char *)"-N",
                     (char *)(uintptr_t)s->node->name,
                     (char *)"-i",
                     (char *)(uintptr_t)id,
                     (char *)"--reclaim",
                     NULL };
    return spawn(s, argv, -1, ret_pid, err);
}
