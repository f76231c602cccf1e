/* Drives a real crun-shepherd for tests; see shepherdrig.h. */
#include "shepherd/shepherdrig.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "proto/walk.h"
#include "proto/wire.pb-c.h"
#include "shepherd/journal.h"
#include "shepherd/packet.h"

#define DEADLINE_MS 30000

struct cw_rig cw_rig;

/* ---- the node daemon's side ----------------------------------------------------------------- */

static void on_packet(enum cw_packet_type type, const void *body, size_t n, int fd, void *arg)
{
    struct cw_rig_got *g = cw_xcalloc(1, sizeof *g);
    (void)arg;
    g->type = type;
    g->fd = fd;
    cw_buf_add(&g->body, body, n);
    cw_list_add_tail(&cw_rig.got, &g->link);
}

void cw_rig_drop(struct cw_rig_got *g)
{
    cw_list_remove(&g->link);
    cw_buf_fini(&g->body);
    if (g->fd >= 0)
        close(g->fd);
    free(g);
}

static void drop_all(void)
{
    cw_list_each_safe(l, &cw_rig.got)
        cw_rig_drop(cw_list_entry(l, struct cw_rig_got, link));
}

/* Waits for one more datagram; false at the deadline or when the shepherd is gone. */
bool cw_rig_pump(int64_t end_ms)
{
    int64_t left = end_ms - cw_clock_mono_ns() / CW_NS_PER_MS;
    struct pollfd p = { .fd = cw_packets_fd(cw_rig.p), .events = POLLIN };
    cw_packets_flush(cw_rig.p);
    if (left <= 0 || poll(&p, 1, (int)left) <= 0)
        return false;
    int rc = cw_packets_recv(cw_rig.p, on_packet, NULL);
    return rc == 0 || rc == -EAGAIN;
}

static uint64_t id_of(const struct cw_rig_got *g)
{
    /* All four messages begin with the key: field 1, whose field 1 is the id. */
    ProtobufCMessage *m;
    assert_int_equal(cw_walk_unpack(&cw__task_emptied__descriptor, g->body.data, g->body.len,
                                    cw_rig.arena, &m, NULL),
                     0);
    return ((const Cw__TaskEmptied *)m)->key->id;
}

struct cw_rig_got *cw_rig_take(enum cw_packet_type type, uint64_t id)
{
    int64_t end = cw_clock_mono_ns() / CW_NS_PER_MS + DEADLINE_MS;
    do {
        cw_list_each(l, &cw_rig.got) {
            struct cw_rig_got *g = cw_list_entry(l, struct cw_rig_got, link);
            if (g->type == type && (id == 0 || id_of(g) == id))
                return g;
        }
    } while (cw_rig_pump(end));
    fail_msg("no packet of type %d for task %llu", type, (unsigned long long)id);
    return NULL;
}

const Cw__TaskEnd *cw_rig_end_of(uint64_t id)
{
    struct cw_rig_got *g = cw_rig_take(CW_PACKET_END, id);
    ProtobufCMessage *m;
    assert_int_equal(cw_walk_unpack(&cw__task_end__descriptor, g->body.data, g->body.len,
                                    cw_rig.arena, &m, NULL),
                     0);
    cw_rig_drop(g);
    return (const Cw__TaskEnd *)m;
}

const Cw__TaskStarted *cw_rig_started_of(uint64_t id)
{
    struct cw_rig_got *g = cw_rig_take(CW_PACKET_STARTED, id);
    ProtobufCMessage *m;
    assert_int_equal(cw_walk_unpack(&cw__task_started__descriptor, g->body.data, g->body.len,
                                    cw_rig.arena, &m, NULL),
                     0);
    cw_rig_drop(g);
    return (const Cw__TaskStarted *)m;
}

static void send_message(enum cw_packet_type type, const ProtobufCMessage *m)
{
    cw_autobuf struct cw_buf b = { 0 };
    cw_walk_pack(m, &b);
    assert_int_equal(cw_packets_add(cw_rig.p, type, b.data, b.len), 0);
    cw_packets_flush(cw_rig.p);
}

void cw_rig_forget(uint64_t id)
{
    Cw__TaskKey k = CW__TASK_KEY__INIT;
    k.id = id;
    k.attempt = 1;
    send_message(CW_PACKET_FORGET, &k.base);
}

void cw_rig_kill(uint64_t id, uint32_t grace_ms)
{
    Cw__TaskKey k = CW__TASK_KEY__INIT;
    Cw__TaskKill m = CW__TASK_KILL__INIT;
    k.id = id;
    k.attempt = 1;
    m.key = &k;
    m.cause = CW__CAUSE__CAUSE_CANCEL;
    m.grace_ms = grace_ms;
    send_message(CW_PACKET_KILL, &m.base);
}

/* ---- tasks ---------------------------------------------------------------------------------- */

struct cw_rig_job cw_rig_job(const char *first, ...)
{
    struct cw_rig_job j = { .start = CW__TASK_START__INIT,
                            .key = CW__TASK_KEY__INIT,
                            .spec = CW__JOB_SPEC__INIT,
                            .payload = CW__PAYLOAD__INIT,
                            .owner = CW__OWNER__INIT,
                            .grant = CW__GRANT__INIT };
    va_list ap;
    size_t n = 0;
    va_start(ap, first);
    for (const char *a = first; a != NULL && n < 15; a = va_arg(ap, const char *))
        j.argv[n++] = (char *)(uintptr_t)a;
    va_end(ap);
    j.payload.n_argv = n;
    j.key.id = cw_rig.next_id++;
    j.key.attempt = 1;
    j.start.job_id = j.key.id;
    j.start.kill_grace_ms = 200;
    j.start.isolation = (char *)(uintptr_t) "none";
    j.start.cluster = (char *)(uintptr_t) "crun";
    j.owner.uid = j.owner.gid = cw_rig.uid;
    j.start.has_allow_root = j.start.allow_root = 1;
    j.spec.workdir = cw_rig.dir;
    j.spec.stdout_path = (char *)(uintptr_t) "none";
    j.grant.node = (char *)(uintptr_t) "n1";
    j.grant.cores = j.grant.cpus = (char *)(uintptr_t) "";
    return j;
}

uint64_t cw_rig_run(struct cw_rig_job *j)
{
    j->start.key = &j->key;
    j->start.spec = &j->spec;
    j->start.payload = &j->payload;
    j->start.owner = &j->owner;
    j->start.grant = &j->grant;
    j->payload.argv = j->argv;
    j->payload.env = j->env;
    send_message(CW_PACKET_START, &j->start.base);
    return j->key.id;
}

char *cw_rig_in_dir(const char *name)
{
    char *p = cw_arena_printf(cw_rig.arena, "%s/%s", cw_rig.dir, name);
    return p;
}

const char *cw_rig_text_of(const char *name)
{
    cw_autobuf struct cw_buf b = { 0 };
    if (cw_file_read(cw_rig_in_dir(name), 1u << 20, &b, NULL) < 0)
        return "(no such file)";
    return cw_arena_strdup(cw_rig.arena, cw_buf_str(&b));
}

/* ---- the shepherd --------------------------------------------------------------------------- */

void cw_rig_spawn(const char *id, int fd, uid_t as, const char *extra)
{
    cw_rig.pid = fork();
    assert_true(cw_rig.pid >= 0);
    if (cw_rig.pid > 0)
        return;
    if (as != 0 && (setgid(as) < 0 || setuid(as) < 0))
        _exit(99);
    cw_autofree char *exe = cw_xasprintf("%s/crun-shepherd", cw_rig.build);
    if (fd >= 0)
        dup2(fd, 3);
    if (fd >= 0)
        execl(exe, "crun-shepherd", "-c", cw_rig.conf, "-N", "n1", "-i", id, "--fd", "3", extra,
              NULL);
    else
        execl(exe, "crun-shepherd", "-c", cw_rig.conf, "-N", "n1", "-i", id, extra, NULL);
    _exit(98);
}

void cw_rig_start(uid_t as)
{
    int sv[2];
    snprintf(cw_rig.id, sizeof cw_rig.id, "t%u", cw_rig.runs++);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
    cw_rig_spawn(cw_rig.id, sv[1], as, NULL);
    close(sv[1]);
    cw_rig.p = cw_packets_create(sv[0]);
    cw_rig_take(CW_PACKET_LISTED, 0);
    drop_all();
}

void cw_rig_connect_again(void)
{
    cw_autofree char *name = cw_xasprintf("%s.sock", cw_rig.id);
    int fd;
    assert_int_equal(cw_packet_connect(cw_rig.shep_dir, name, &fd, NULL), 0);
    cw_packets_destroy(cw_rig.p);
    cw_rig.p = cw_packets_create(fd);
    drop_all();
    cw_rig_take(CW_PACKET_LISTED, 0);
}

int cw_rig_wait(void)
{
    int status = -1;
    assert_int_equal(waitpid(cw_rig.pid, &status, 0), cw_rig.pid);
    return status;
}

static int setup_as(uid_t shepherd, uid_t jobs)
{
    cw_autobuf struct cw_buf b = { 0 };
    char cwd[256];
    const char *tmp = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    assert_non_null(getcwd(cwd, sizeof cwd));
    snprintf(cw_rig.dir, sizeof cw_rig.dir, "%s/crun-shepherd-test.XXXXXX", tmp);
    assert_non_null(mkdtemp(cw_rig.dir));
    chmod(cw_rig.dir, 0777);
    cw_rig.build = cw_xstrdup(cwd);
    cw_rig.conf = cw_xasprintf("%s/crun.conf", cw_rig.dir);
    cw_rig.shep_dir = cw_xasprintf("%s/node/n1/shep", cw_rig.dir);
    cw_rig.arena = cw_arena_create();
    cw_rig.next_id = 10;
    cw_rig.uid = jobs;
    cw_list_init(&cw_rig.got);
    cw_buf_addf(&b, "plugin_path = \"%s/plugins/.libs\"\n", cwd);
    assert_int_equal(cw_file_write_atomic(cw_rig.conf, b.data, b.len, 0644, NULL), 0);
    cw_rig_start(shepherd);
    return 0;
}

int cw_rig_setup(void **state)
{
    (void)state;
    return setup_as(0, geteuid() == 0 ? 65534 : geteuid());
}

int cw_rig_setup_as_user(void **state)
{
    (void)state;
    return geteuid() == 0 ? setup_as(65534, 65534) : setup_as(0, geteuid());
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

int cw_rig_teardown(void **state)
{
    (void)state;
    if (cw_rig.p != NULL) {
        cw_packets_add(cw_rig.p, CW_PACKET_QUIT, NULL, 0);
        cw_packets_flush(cw_rig.p);
    }
    if (cw_rig.pid > 0) {
        kill(cw_rig.pid, SIGKILL);
        waitpid(cw_rig.pid, NULL, 0);
    }
    cw_packets_destroy(cw_rig.p);
    drop_all();
    cw_arena_destroy(cw_rig.arena);
    if (nftw(cw_rig.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0)
        return 1;
    free(cw_rig.conf);
    free(cw_rig.build);
    free(cw_rig.shep_dir);
    unsigned runs = cw_rig.runs;
    memset(&cw_rig, 0, sizeof cw_rig);
    cw_rig.runs = runs;
    return 0;
}
