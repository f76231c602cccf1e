/* A real crun-shepherd with real commands, spoken to as a node daemon does. Needs the built
 * crun-shepherd and plugins in the build folder, where tests run. Cases that change identity need
 * root. */
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

struct got {
    struct cw_list link;
    enum cw_packet_type type;
    struct cw_buf body;
    int fd;
};

static struct fixture {
    char dir[256];
    char *conf, *shep_dir, *build;
    struct cw_packets *p;
    pid_t pid;
    struct cw_list got;
    struct cw_arena *arena;
    uint64_t next_id;
    uid_t uid; /* jobs run as */
    unsigned runs;
    char id[16];
} F;

/* ---- the node daemon's side ----------------------------------------------------------------- */

static void on_packet(enum cw_packet_type type, const void *body, size_t n, int fd, void *arg)
{
    struct got *g = cw_xcalloc(1, sizeof *g);
    (void)arg;
    g->type = type;
    g->fd = fd;
    cw_buf_add(&g->body, body, n);
    cw_list_add_tail(&F.got, &g->link);
}

static void drop(struct got *g)
{
    cw_list_remove(&g->link);
    cw_buf_fini(&g->body);
    if (g->fd >= 0)
        close(g->fd);
    free(g);
}

static void drop_all(void)
{
    cw_list_each_safe(l, &F.got)
        drop(cw_list_entry(l, struct got, link));
}

/* Waits for one more datagram; false at the deadline or when the shepherd is gone. */
static bool pump(int64_t end_ms)
{
    int64_t left = end_ms - cw_clock_mono_ns() / CW_NS_PER_MS;
    struct pollfd p = { .fd = cw_packets_fd(F.p), .events = POLLIN };
    cw_packets_flush(F.p);
    if (left <= 0 || poll(&p, 1, (int)left) <= 0)
        return false;
    int rc = cw_packets_recv(F.p, on_packet, NULL);
    return rc == 0 || rc == -EAGAIN;
}

static uint64_t id_of(const struct got *g)
{
    /* All four messages begin with the key: field 1, whose field 1 is the id. */
    ProtobufCMessage *m;
    assert_int_equal(
        cw_walk_unpack(&cw__task_emptied__descriptor, g->body.data, g->body.len, F.arena, &m, NULL),
        0);
    return ((const Cw__TaskEmptied *)m)->key->id;
}

static struct got *take(enum cw_packet_type type, uint64_t id)
{
    int64_t end = cw_clock_mono_ns() / CW_NS_PER_MS + DEADLINE_MS;
    do {
        cw_list_each(l, &F.got) {
            struct got *g = cw_list_entry(l, struct got, link);
            if (g->type == type && (id == 0 || id_of(g) == id))
                return g;
        }
    } while (pump(end));
    fail_msg("no packet of type %d for task %llu", type, (unsigned long long)id);
    return NULL;
}

static const Cw__TaskEnd *end_of(uint64_t id)
{
    struct got *g = take(CW_PACKET_END, id);
    ProtobufCMessage *m;
    assert_int_equal(
        cw_walk_unpack(&cw__task_end__descriptor, g->body.data, g->body.len, F.arena, &m, NULL), 0);
    drop(g);
    return (const Cw__TaskEnd *)m;
}

static const Cw__TaskStarted *started_of(uint64_t id)
{
    struct got *g = take(CW_PACKET_STARTED, id);
    ProtobufCMessage *m;
    assert_int_equal(
        cw_walk_unpack(&cw__task_started__descriptor, g->body.data, g->body.len, F.arena, &m, NULL),
        0);
    drop(g);
    return (const Cw__TaskStarted *)m;
}

static void send_message(enum cw_packet_type type, const ProtobufCMessage *m)
{
    cw_autobuf struct cw_buf b = { 0 };
    cw_walk_pack(m, &b);
    assert_int_equal(cw_packets_add(F.p, type, b.data, b.len), 0);
    cw_packets_flush(F.p);
}

static void forget(uint64_t id)
{
    Cw__TaskKey k = CW__TASK_KEY__INIT;
    k.id = id;
    k.attempt = 1;
    send_message(CW_PACKET_FORGET, &k.base);
}

static void kill_task(uint64_t id, uint32_t grace_ms)
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

struct job {
    Cw__TaskStart start;
    Cw__TaskKey key;
    Cw__JobSpec spec;
    Cw__Payload payload;
    Cw__Owner owner;
    Cw__Grant grant;
    char *argv[16];
    char *env[8];
    char cpus[8];
};

static struct job job(const char *first, ...)
{
    struct job j = { .start = CW__TASK_START__INIT,
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
    j.key.id = F.next_id++;
    j.key.attempt = 1;
    j.start.job_id = j.key.id;
    j.start.kill_grace_ms = 200;
    j.start.isolation = (char *)(uintptr_t) "none";
    j.start.cluster = (char *)(uintptr_t) "crun";
    j.owner.uid = j.owner.gid = F.uid;
    j.start.has_allow_root = j.start.allow_root = 1;
    j.spec.workdir = F.dir;
    j.spec.stdout_path = (char *)(uintptr_t) "none";
    j.grant.node = (char *)(uintptr_t) "n1";
    j.grant.cores = j.grant.cpus = (char *)(uintptr_t) "";
    return j;
}

static uint64_t run(struct job *j)
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

static char *in_dir(const char *name)
{
    char *p = cw_arena_printf(F.arena, "%s/%s", F.dir, name);
    return p;
}

static const char *text_of(const char *name)
{
    cw_autobuf struct cw_buf b = { 0 };
    if (cw_file_read(in_dir(name), 1u << 20, &b, NULL) < 0)
        return "(no such file)";
    return cw_arena_strdup(F.arena, cw_buf_str(&b));
}

/* ---- the shepherd --------------------------------------------------------------------------- */

static void spawn_shepherd(const char *id, int fd, uid_t as, const char *extra)
{
    F.pid = fork();
    assert_true(F.pid >= 0);
    if (F.pid > 0)
        return;
    if (as != 0 && (setgid(as) < 0 || setuid(as) < 0))
        _exit(99);
    cw_autofree char *exe = cw_xasprintf("%s/crun-shepherd", F.build);
    if (fd >= 0)
        dup2(fd, 3);
    if (fd >= 0)
        execl(exe, "crun-shepherd", "-c", F.conf, "-N", "n1", "-i", id, "--fd", "3", extra, NULL);
    else
        execl(exe, "crun-shepherd", "-c", F.conf, "-N", "n1", "-i", id, extra, NULL);
    _exit(98);
}

static void start_shepherd(uid_t as)
{
    int sv[2];
    snprintf(F.id, sizeof F.id, "t%u", F.runs++);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
    spawn_shepherd(F.id, sv[1], as, NULL);
    close(sv[1]);
    F.p = cw_packets_create(sv[0]);
    take(CW_PACKET_LISTED, 0);
    drop_all();
}

static void connect_again(void)
{
    cw_autofree char *name = cw_xasprintf("%s.sock", F.id);
    int fd;
    assert_int_equal(cw_packet_connect(F.shep_dir, name, &fd, NULL), 0);
    cw_packets_destroy(F.p);
    F.p = cw_packets_create(fd);
    drop_all();
    take(CW_PACKET_LISTED, 0);
}

static int wait_shepherd(void)
{
    int status = -1;
    assert_int_equal(waitpid(F.pid, &status, 0), F.pid);
    return status;
}

static int setup_as(uid_t shepherd, uid_t jobs)
{
    cw_autobuf struct cw_buf b = { 0 };
    char cwd[256];
    const char *tmp = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    assert_non_null(getcwd(cwd, sizeof cwd));
    snprintf(F.dir, sizeof F.dir, "%s/crun-shepherd-test.XXXXXX", tmp);
    assert_non_null(mkdtemp(F.dir));
    chmod(F.dir, 0777);
    F.build = cw_xstrdup(cwd);
    F.conf = cw_xasprintf("%s/crun.conf", F.dir);
    F.shep_dir = cw_xasprintf("%s/node/n1/shep", F.dir);
    F.arena = cw_arena_create();
    F.next_id = 10;
    F.uid = jobs;
    cw_list_init(&F.got);
    cw_buf_addf(&b, "plugin_path = \"%s/plugins/.libs\"\n", cwd);
    assert_int_equal(cw_file_write_atomic(F.conf, b.data, b.len, 0644, NULL), 0);
    start_shepherd(shepherd);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_as(0, geteuid() == 0 ? 65534 : geteuid());
}

static int setup_as_user(void **state)
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

static int teardown(void **state)
{
    (void)state;
    if (F.p != NULL) {
        cw_packets_add(F.p, CW_PACKET_QUIT, NULL, 0);
        cw_packets_flush(F.p);
    }
    if (F.pid > 0) {
        kill(F.pid, SIGKILL);
        waitpid(F.pid, NULL, 0);
    }
    cw_packets_destroy(F.p);
    drop_all();
    cw_arena_destroy(F.arena);
    if (nftw(F.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0)
        return 1;
    free(F.conf);
    free(F.build);
    free(F.shep_dir);
    unsigned runs = F.runs;
    memset(&F, 0, sizeof F);
    F.runs = runs;
    return 0;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void an_exit_code_arrives_after_started_with_an_empty_box(void **state)
{
    (void)state;
    struct job j = job("/bin/sh", "-c", "echo hello; echo bad >&2; exit 7", NULL);
    j.spec.stdout_path = (char *)(uintptr_t) "sub/dir/out-%j.txt";
    uint64_t id = run(&j);
    const Cw__TaskStarted *s = started_of(id);
    const Cw__TaskEnd *e = end_of(id);
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_EXIT);
    assert_int_equal(e->exit_code, 7);
    assert_true(e->empty);
    assert_int_equal(e->pid, s->pid);
    assert_string_equal(e->stdout_path, in_dir("sub/dir/out-10.txt"));
    assert_string_equal(text_of("sub/dir/out-10.txt"), "hello\nbad\n");
    assert_true(e->usage != NULL && e->usage->has_cpu_user_ns);
    struct stat st;
    assert_int_equal(stat(in_dir("sub"), &st), 0);
    assert_int_equal(st.st_uid, F.uid);
}

static void a_signal_that_we_did_not_send_is_the_cause(void **state)
{
    (void)state;
    struct job j = job("/bin/sh", "-c", "kill -SEGV $$", NULL);
    const Cw__TaskEnd *e = end_of(run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_SIGNAL);
    assert_int_equal(e->signal, SIGSEGV);
    assert_false(e->has_exit_code);
}

static void argv_arrives_byte_for_byte(void **state)
{
    (void)state;
    struct job j = job("/bin/sh", "-c", "for a; do printf '%s|' \"$a\"; done", "x", "a b", "", "-n",
                       "*", "$HOME", "q\"'\n", "\xff", NULL);
    j.spec.stdout_path = (char *)(uintptr_t) "argv.txt";
    end_of(run(&j));
    assert_string_equal(text_of("argv.txt"), "a b||-n|*|$HOME|q\"'\n|\xff|");
}

static void a_command_is_found_in_the_jobs_own_path(void **state)
{
    (void)state;
    struct job j = job("probe", NULL);
    assert_int_equal(cw_file_mkdirs(in_dir("bin"), 0755, NULL), 0);
    assert_int_equal(
        cw_file_write_atomic(in_dir("bin/probe"), "#!/bin/sh\nexit 3\n", 17, 0755, NULL), 0);
    j.env[0] = cw_arena_printf(F.arena, "PATH=/nowhere:%s/bin", F.dir);
    j.payload.n_env = 1;
    assert_int_equal(end_of(run(&j))->exit_code, 3);
}

static void a_task_has_the_file_limit_that_the_shepherd_was_started_with(void **state)
{
    (void)state;
    struct rlimit r;
    struct job j = job("/bin/sh", "-c", "ulimit -Sn; ulimit -c", NULL);
    j.spec.stdout_path = (char *)(uintptr_t) "limits.txt";
    end_of(run(&j));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    assert_string_equal(text_of("limits.txt"),
                        cw_arena_printf(F.arena, "%llu\n0\n", (unsigned long long)r.rlim_cur));
}

static void an_uid_without_a_name_works_by_its_number(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct job j = job("/bin/sh", "-c", "id -u; id -G", NULL);
    j.owner.uid = 3000000000u;
    j.owner.gid = 3000000001u;
    j.spec.stdout_path = (char *)(uintptr_t) "uid.txt";
    const Cw__TaskEnd *e = end_of(run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_EXIT);
    assert_string_equal(text_of("uid.txt"), "3000000000\n3000000001\n");
}

static void a_missing_workdir_is_the_users_fault_and_names_path_and_node(void **state)
{
    (void)state;
    struct job j = job("/bin/true", NULL);
    j.spec.workdir = (char *)(uintptr_t) "/only/on/login";
    const Cw__TaskEnd *e = end_of(run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_non_null(
        strstr(e->message, "working directory /only/on/login: No such file or directory"));
    assert_non_null(strstr(e->message, "on node n1"));
    assert_true(e->empty);
    assert_false(e->has_start_ns);
}

static void a_missing_command_is_127_and_an_unusable_one_126(void **state)
{
    (void)state;
    struct job a = job("/no/such/thing", NULL), b = job("/etc/passwd", NULL),
               c = job("nosuchcommand", NULL);
    a.spec.stdout_path = (char *)(uintptr_t) "miss.txt";
    const Cw__TaskEnd *e = end_of(run(&a));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_int_equal(e->exit_code, 127);
    assert_string_equal(e->message, "exec /no/such/thing: No such file or directory");
    assert_non_null(strstr(text_of("miss.txt"), "exec /no/such/thing: No such file or directory"));
    e = end_of(run(&b));
    assert_int_equal(e->exit_code, 126);
    assert_string_equal(e->message, "exec /etc/passwd: Permission denied");
    assert_int_equal(end_of(run(&c))->exit_code, 127);
}

static void an_output_file_that_cannot_be_made_names_path_user_and_node(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct job j = job("/bin/true", NULL);
    j.spec.stdout_path = (char *)(uintptr_t) "/root-only/x/out.txt";
    const Cw__TaskEnd *e = end_of(run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_non_null(
        strstr(e->message,
               "output file /root-only/x/out.txt: Permission denied (as user nobody on node n1)"));
}

static void a_fifo_without_a_reader_does_not_stop_the_shepherd(void **state)
{
    (void)state;
    struct job j = job("/bin/true", NULL), k = job("/bin/true", NULL);
    assert_int_equal(mkfifo(in_dir("fifo"), 0666), 0);
    chmod(in_dir("fifo"), 0666);
    j.spec.stdout_path = in_dir("fifo");
    assert_int_equal(end_of(run(&j))->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_int_equal(end_of(run(&k))->cause, CW__CAUSE__CAUSE_EXIT);
}

static void root_is_refused_unless_allowed(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct job j = job("/bin/true", NULL), k = job("/bin/true", NULL);
    j.owner.uid = k.owner.uid = j.owner.gid = k.owner.gid = 0;
    j.start.allow_root = 0;
    const Cw__TaskEnd *e = end_of(run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_string_equal(e->message, "jobs of root are not allowed on this cluster");
    assert_int_equal(end_of(run(&k))->cause, CW__CAUSE__CAUSE_EXIT);
}

static void a_second_start_of_a_key_is_answered_and_not_run(void **state)
{
    (void)state;
    struct job j = job("/bin/sh", "-c", "echo once >>count.txt", NULL);
    uint64_t id = run(&j);
    end_of(id);
    run(&j);
    end_of(id);
    assert_string_equal(text_of("count.txt"), "once\n");
    forget(id);
}

static void a_script_runs_with_its_arguments_and_a_sensible_name(void **state)
{
    (void)state;
    static const char text[] = "#!/bin/sh\nbasename \"$0\"; echo \"$1|$2\"; exit 5\n";
    struct job j = job("one", "two words", NULL);
    j.payload.has_script = 1;
    j.payload.script = (ProtobufCBinaryData){ sizeof text - 1, (uint8_t *)(uintptr_t)text };
    j.spec.stdout_path = (char *)(uintptr_t) "script.txt";
    const Cw__TaskEnd *e = end_of(run(&j));
    assert_int_equal(e->exit_code, 5);
    assert_string_equal(text_of("script.txt"), "10.1.sh\none|two words\n");
    assert_int_equal(access(in_dir("node/n1/tasks/10.1.sh"), F_OK), -1);
}

static void a_script_whose_interpreter_is_missing_says_which(void **state)
{
    (void)state;
    static const char text[] = "#!/opt/none/python9\n";
    struct job j = job(NULL);
    j.payload.has_script = 1;
    j.payload.script = (ProtobufCBinaryData){ sizeof text - 1, (uint8_t *)(uintptr_t)text };
    const Cw__TaskEnd *e = end_of(run(&j));
    assert_int_equal(e->exit_code, 127);
    assert_non_null(
        strstr(e->message, "its interpreter /opt/none/python9: No such file or directory"));
}

static void a_script_below_a_closed_directory_still_runs(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    static const char text[] = "#!/bin/sh\nexit 6\n";
    kill(F.pid, SIGKILL);
    wait_shepherd();
    cw_packets_destroy(F.p);
    F.p = NULL;
    chmod(in_dir("node"), 0700);
    start_shepherd(0);
    struct job j = job(NULL);
    j.payload.has_script = 1;
    j.payload.script = (ProtobufCBinaryData){ sizeof text - 1, (uint8_t *)(uintptr_t)text };
    assert_int_equal(end_of(run(&j))->exit_code, 6);
}

static void a_large_payload_arrives_whole(void **state)
{
    (void)state;
    struct cw_buf b = { 0 };
    cw_buf_add_str(&b, "#!/bin/sh\nwc -c <\"$0\"\nexit 0\n");
    while (b.len < 700000)
        cw_buf_add_str(&b, "# padding padding padding padding padding padding padding\n");
    struct job j = job(NULL);
    j.payload.has_script = 1;
    j.payload.script = (ProtobufCBinaryData){ b.len, (uint8_t *)b.data };
    j.spec.stdout_path = (char *)(uintptr_t) "size.txt";
    end_of(run(&j));
    assert_int_equal(strtoul(text_of("size.txt"), NULL, 10), b.len);
    cw_buf_fini(&b);
}

static void a_second_attempt_marks_its_output(void **state)
{
    (void)state;
    struct job j = job("/bin/echo", "again", NULL), k;
    j.spec.stdout_path = (char *)(uintptr_t) "again.txt";
    end_of(run(&j));
    k = j;
    k.key.attempt = 2;
    end_of(run(&k));
    assert_string_equal(text_of("again.txt"), "again\n=== attempt 2 on n1 ===\nagain\n");
}

static void the_time_limit_holds_with_term_grace_and_kill(void **state)
{
    (void)state;
    struct job j = job("/bin/sh", "-c", "trap 'echo term' TERM; while :; do sleep 0.05; done",
                       NULL);
    j.start.has_time_left_ms = 1;
    j.start.time_left_ms = 300;
    j.start.kill_grace_ms = 300;
    j.spec.stdout_path = (char *)(uintptr_t) "limit.txt";
    const Cw__TaskEnd *e = end_of(run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_TIME_LIMIT);
    assert_int_equal(e->signal, SIGKILL);
    assert_true(e->empty);
    assert_non_null(strstr(text_of("limit.txt"), "term\n"));
}

static void a_cancelled_task_that_ends_by_itself_was_cancelled(void **state)
{
    (void)state;
    struct job j = job("/bin/sh", "-c",
                       "trap 'exit 0' TERM; echo >ready.txt; while :; do sleep 0.05; done", NULL);
    uint64_t id = run(&j);
    started_of(id);
    int64_t end = cw_clock_mono_ns() + 10 * CW_NS_PER_S;
    while (access(in_dir("ready.txt"), F_OK) < 0 && cw_clock_mono_ns() < end)
        pump(cw_clock_mono_ns() / CW_NS_PER_MS + 10);
    kill_task(id, 20000);
    const Cw__TaskEnd *e = end_of(id);
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_CANCEL);
    assert_int_equal(e->exit_code, 0);
}

static void what_a_leader_leaves_behind_is_killed_before_the_end_is_told(void **state)
{
    (void)state;
    struct job j = job("/bin/sh", "-c", "sleep 1000 & echo $! >left.txt; (sleep 1000 &) ; exit 4",
                       NULL);
    const Cw__TaskEnd *e = end_of(run(&j));
    assert_int_equal(e->exit_code, 4);
    assert_true(e->empty);
    assert_int_equal(kill((pid_t)strtol(text_of("left.txt"), NULL, 10), 0), -1);
}

static void a_new_link_hears_everything_until_it_forgets(void **state)
{
    (void)state;
    struct job a = job("/bin/sh", "-c", "exit 9", NULL), b = job("/bin/sleep", "1000", NULL);
    uint64_t ida = run(&a), idb = run(&b);
    end_of(ida);
    uint32_t pid = started_of(idb)->pid;
    connect_again();
    assert_int_equal(end_of(ida)->exit_code, 9);
    assert_int_equal(started_of(idb)->pid, pid);
    forget(ida);
    connect_again();
    cw_list_each(l, &F.got)
        assert_int_not_equal(cw_list_entry(l, struct got, link)->type, CW_PACKET_END);
    kill_task(idb, 0);
    assert_int_equal(end_of(idb)->cause, CW__CAUSE__CAUSE_CANCEL);
}

static void an_end_while_nobody_listens_is_told_later(void **state)
{
    (void)state;
    struct job j = job("/bin/sh", "-c", "sleep 0.3; exit 8", NULL);
    uint64_t id = run(&j);
    started_of(id);
    int idle[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, idle), 0);
    cw_packets_destroy(F.p); /* the node daemon dies */
    F.p = cw_packets_create(idle[0]);
    while (access(in_dir("node/n1/tasks"), F_OK) == 0 && kill(F.pid, 0) == 0) {
        struct cw_list tasks;
        cw_list_init(&tasks);
        cw_autofree char *path = cw_xasprintf("%s/%s.journal", F.shep_dir, F.id);
        assert_int_equal(cw_journal_load(path, &tasks, NULL), 0);
        bool ended = !cw_list_empty(&tasks) &&
                     cw_list_entry(tasks.next, struct cw_journal_task, link)->end.len > 0;
        cw_journal_tasks_destroy(&tasks);
        if (ended)
            break;
        poll(NULL, 0, 10);
    }
    close(idle[1]);
    connect_again();
    assert_int_equal(end_of(id)->exit_code, 8);
}

static void a_dead_shepherds_tasks_are_killed_and_lost(void **state)
{
    (void)state;
    struct job a = job("/bin/sh", "-c", "exit 2", NULL), b = job("/bin/sleep", "1000", NULL);
    uint64_t ida = run(&a), idb = run(&b);
    end_of(ida);
    pid_t pid = (pid_t)started_of(idb)->pid;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* the orphan comes to us */
    kill(F.pid, SIGKILL);
    wait_shepherd();
    spawn_shepherd(F.id, -1, 0, "--reclaim");
    assert_int_equal(wait_shepherd(), 0);
    F.pid = 0;
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    struct cw_list tasks;
    cw_list_init(&tasks);
    cw_autofree char *path = cw_xasprintf("%s/%s.journal", F.shep_dir, F.id);
    assert_int_equal(cw_journal_load(path, &tasks, NULL), 0);
    unsigned seen = 0;
    cw_list_each(l, &tasks) {
        const struct cw_journal_task *t = cw_list_entry(l, struct cw_journal_task, link);
        ProtobufCMessage *m;
        assert_int_equal(
            cw_walk_unpack(&cw__task_end__descriptor, t->end.data, t->end.len, F.arena, &m, NULL),
            0);
        const Cw__TaskEnd *e = (const Cw__TaskEnd *)m;
        assert_int_equal(e->cause,
                         t->id == ida ? CW__CAUSE__CAUSE_EXIT : CW__CAUSE__CAUSE_NODE_LOST);
        assert_true(e->empty);
        seen++;
    }
    assert_int_equal(seen, 2);
    cw_journal_tasks_destroy(&tasks);
}

static struct got *open_log(uint32_t uid, const char *path)
{
    cw_autobuf struct cw_buf b = { 0 };
    uint64_t number = 77;
    cw_buf_add(&b, &number, sizeof number);
    cw_buf_add(&b, &uid, sizeof uid);
    cw_buf_add(&b, &uid, sizeof uid);
    cw_buf_add_str(&b, path);
    assert_int_equal(cw_packets_add(F.p, CW_PACKET_OPEN, b.data, b.len), 0);
    return take(CW_PACKET_OPENED, 0);
}

static void a_log_is_opened_as_the_user_and_passed(void **state)
{
    (void)state;
    assert_int_equal(cw_file_write_atomic(in_dir("mine.txt"), "text", 4, 0644, NULL), 0);
    struct got *g = open_log(F.uid, in_dir("mine.txt"));
    char buf[8] = "";
    assert_true(g->fd >= 0);
    assert_int_equal(read(g->fd, buf, sizeof buf), 4);
    drop(g);
    g = open_log(F.uid, "/dev/null");
    assert_int_equal(g->fd, -1);
    assert_non_null(strstr(g->body.data + 12, "not a regular file"));
    drop(g);
    if (geteuid() != 0)
        return;
    g = open_log(F.uid, "/etc/shadow");
    assert_int_equal(g->fd, -1);
    assert_non_null(strstr(g->body.data + 12, "/etc/shadow: Permission denied"));
    drop(g);
}

static void a_shepherd_told_to_quit_goes_when_it_is_empty_and_leaves_nothing(void **state)
{
    (void)state;
    struct job j = job("/bin/sh", "-c", "sleep 0.1; exit 1", NULL);
    uint64_t id = run(&j);
    cw_packets_add(F.p, CW_PACKET_QUIT, NULL, 0);
    assert_int_equal(end_of(id)->exit_code, 1);
    forget(id);
    assert_int_equal(wait_shepherd(), 0);
    F.pid = 0;
    DIR *d = opendir(F.shep_dir);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            fail_msg("left over: %s", e->d_name);
    closedir(d);
}

static size_t open_files(void)
{
    cw_autofree char *path = cw_xasprintf("/proc/%d/fd", F.pid);
    size_t n = 0;
    DIR *d = opendir(path);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void hundreds_of_tasks_leave_no_descriptor_and_no_child(void **state)
{
    (void)state;
    size_t before = open_files();
    enum { N = 300 };
    uint64_t ids[N];
    int64_t t0 = cw_clock_mono_ns();
    for (int i = 0; i < N; i++) {
        struct job j = job(i % 3 == 0 ? "/no/such" : "/bin/true", NULL);
        if (i % 3 == 1)
            j.spec.stdout_path = (char *)(uintptr_t) "many-%j.txt";
        ids[i] = run(&j);
    }
    for (int i = 0; i < N; i++) {
        assert_true(end_of(ids[i])->empty);
        forget(ids[i]);
    }
    print_message("# %d tasks in %lld ms\n", N,
                  (long long)((cw_clock_mono_ns() - t0) / CW_NS_PER_MS));
    assert_int_equal(open_files(), before);
}

static void an_ordinary_user_runs_its_own_jobs_and_no_others(void **state)
{
    (void)state;
    struct job j = job("/bin/sh", "-c", "id -u", NULL), k = job("/bin/true", NULL);
    j.spec.stdout_path = (char *)(uintptr_t) "own.txt";
    assert_int_equal(end_of(run(&j))->exit_code, 0);
    assert_int_equal(strtoul(text_of("own.txt"), NULL, 10), F.uid);
    k.owner.uid = 12345;
    const Cw__TaskEnd *e = end_of(run(&k));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_non_null(strstr(e->message, "can start its own jobs only"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_exit_code_arrives_after_started_with_an_empty_box),
        T(a_signal_that_we_did_not_send_is_the_cause),
        T(argv_arrives_byte_for_byte),
        T(a_command_is_found_in_the_jobs_own_path),
        T(a_task_has_the_file_limit_that_the_shepherd_was_started_with),
        T(an_uid_without_a_name_works_by_its_number),
        T(a_missing_workdir_is_the_users_fault_and_names_path_and_node),
        T(a_missing_command_is_127_and_an_unusable_one_126),
        T(an_output_file_that_cannot_be_made_names_path_user_and_node),
        T(a_fifo_without_a_reader_does_not_stop_the_shepherd),
        T(root_is_refused_unless_allowed),
        T(a_second_start_of_a_key_is_answered_and_not_run),
        T(a_script_runs_with_its_arguments_and_a_sensible_name),
        T(a_script_whose_interpreter_is_missing_says_which),
        T(a_script_below_a_closed_directory_still_runs),
        T(a_large_payload_arrives_whole),
        T(a_second_attempt_marks_its_output),
        T(the_time_limit_holds_with_term_grace_and_kill),
        T(a_cancelled_task_that_ends_by_itself_was_cancelled),
        T(what_a_leader_leaves_behind_is_killed_before_the_end_is_told),
        T(a_new_link_hears_everything_until_it_forgets),
        T(an_end_while_nobody_listens_is_told_later),
        T(a_dead_shepherds_tasks_are_killed_and_lost),
        T(a_log_is_opened_as_the_user_and_passed),
        T(a_shepherd_told_to_quit_goes_when_it_is_empty_and_leaves_nothing),
        T(hundreds_of_tasks_leave_no_descriptor_and_no_child),
        cmocka_unit_test_setup_teardown(an_ordinary_user_runs_its_own_jobs_and_no_others,
                                        setup_as_user, teardown),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
