/* Set-up and tear-down with an isolation plugin that fails at its n-th call, n = 1, 2, ... until
 * none fails: each time there is one end, nothing is left over, and the fault is whose it is. */
#include <dirent.h>
#include <poll.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "conf/conf.h"
#include "proto/walk.h"
#include "shepherd/herd.h"
#include "shepherd/stepset.h"

static struct cw_herd herd;
static struct cw_conf *conf;
static char dir[256];
static struct cw_arena *arena;
static uint64_t next_id = 1;

static int group_setup(void **state)
{
    (void)state;
    char text[1024], path[300];
    struct cw_error err;
    const char *tmp = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    snprintf(dir, sizeof dir, "%s/crun-herd-test.XXXXXX", tmp);
    if (mkdtemp(dir) == NULL)
        return -1;
    chmod(dir, 0777);
    snprintf(path, sizeof path, "%s/tasks", dir);
    mkdir(path, 0711);
    snprintf(text, sizeof text, "dir = \"%s\"\nplugin_path = \"%s/src/shepherd\"\n", dir,
             getenv("PWD"));
    if (cw_conf_load_text("test", text, &conf, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    arena = cw_arena_create();
    herd.node = "n1";
    herd.node_dir = dir;
    herd.reachable = true;
    herd.conf = conf;
    herd.plugs = cw_plug_registry_create(conf, "n1");
    snprintf(path, sizeof path, "%s/journal", dir);
    if (cw_journal_open(path, &herd.journal, &err) < 0)
        return -1;
    cw_herd_init(&herd);
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static int group_teardown(void **state)
{
    (void)state;
    cw_herd_fini(&herd);
    cw_journal_close(herd.journal);
    cw_plug_registry_destroy(herd.plugs);
    cw_conf_destroy(conf);
    cw_arena_destroy(arena);
    return nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void send_key(enum cw_packet_type type, uint64_t id)
{
    cw_autobuf struct cw_buf b = { 0 };
    Cw__TaskKey k = CW__TASK_KEY__INIT;
    k.id = id;
    k.attempt = 1;
    cw_walk_pack(&k.base, &b);
    cw_herd_packet(&herd, type, b.data, b.len);
}

static bool headless; /* the next start is an allocation */

static uint64_t start(const char *command)
{
    static const char *script = "#!/bin/sh\n";
    Cw__TaskStart s = CW__TASK_START__INIT;
    Cw__TaskKey key = CW__TASK_KEY__INIT;
    Cw__JobSpec spec = CW__JOB_SPEC__INIT;
    Cw__Payload payload = CW__PAYLOAD__INIT;
    Cw__Owner owner = CW__OWNER__INIT;
    Cw__Grant grant = CW__GRANT__INIT;
    cw_autofree char *text = cw_xasprintf("%s%s\n", script, command);
    cw_autobuf struct cw_buf b = { 0 };
    key.id = next_id++;
    key.attempt = 1;
    owner.uid = geteuid() == 0 ? 65534 : geteuid();
    owner.gid = owner.uid;
    payload.has_script = 1;
    payload.script = (ProtobufCBinaryData){ strlen(text), (uint8_t *)text };
    spec.workdir = dir;
    spec.stdout_path = (char *)(uintptr_t) "none";
    grant.node = grant.cores = grant.cpus = (char *)(uintptr_t) "";
    s.key = &key;
    s.spec = &spec;
    s.payload = &payload;
    s.owner = &owner;
    s.grant = &grant;
    s.isolation = (char *)(uintptr_t) "faulty";
    spec.has_allocation = spec.allocation = headless;
    cw_walk_pack(&s.base, &b);
    cw_herd_packet(&herd, CW_PACKET_START, b.data, b.len);
    return key.id;
}

static struct cw_task *only_task(void)
{
    return herd.n_tasks == 1 ? cw_list_entry(herd.tasks.next, struct cw_task, link) : NULL;
}

/* Until the one task has ended and its box is gone. SIGCHLD is blocked, so it wakes us. */
static const Cw__TaskEnd *run_to_end(void)
{
    int64_t deadline = cw_herd_now_ms() + 20000;
    struct cw_task *t = only_task();
    assert_non_null(t);
    while ((t->phase != CW_TASK_ENDED || t->box != NULL) && cw_herd_now_ms() < deadline) {
        sigset_t chld;
        sigemptyset(&chld);
        sigaddset(&chld, SIGCHLD);
        int64_t left = herd.next_due == INT64_MAX ? 1000 : herd.next_due - cw_herd_now_ms();
        struct timespec ts = { 0, (left < 0 ? 0 : left > 500 ? 500 : left) * CW_NS_PER_MS };
        sigtimedwait(&chld, NULL, &ts);
        cw_herd_reap(&herd);
        cw_herd_due(&herd);
    }
    assert_int_equal(t->phase, CW_TASK_ENDED);
    assert_null(t->box);
    ProtobufCMessage *m;
    assert_int_equal(
        cw_walk_unpack(&cw__task_end__descriptor, t->end.data, t->end.len, arena, &m, NULL), 0);
    return (const Cw__TaskEnd *)m;
}

static unsigned entries(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void nothing_is_left(unsigned fds)
{
    char path[300];
    send_key(CW_PACKET_FORGET, next_id - 1);
    assert_true(cw_herd_idle(&herd));
    assert_int_equal(herd.n_emptying, 0);
    assert_int_equal(cw_idtable_count(herd.by_pid), 0);
    assert_string_equal(getenv("FAULTY_BOXES"), "0");
    assert_int_equal(entries("/proc/self/fd"), fds);
    snprintf(path, sizeof path, "%s/tasks", dir);
    assert_int_equal(entries(path), 2); /* . and .. */
}

static void every_call_of_a_plugin_may_fail_and_nothing_is_left(void **state)
{
    (void)state;
    /* the leader leaves a child, so that emptying is walked too */
    static const char *const commands[] = { "exit 3", "sleep 100 & exit 3" };
    setenv("FAULTY_BOXES", "0", 1);
    for (size_t c = 0; c < CW_ARRAY_LEN(commands); c++) {
        unsigned n = 0, fds = entries("/proc/self/fd");
        do {
            char text[16];
            snprintf(text, sizeof text, "%u", ++n);
            setenv("FAULTY_AT", text, 1);
            setenv("FAULTY_ERRNO", "5", 1);
            setenv("FAULTY_FIRED", "0", 1);
            start(commands[c]);
            const Cw__TaskEnd *e = run_to_end();
            assert_true(e->empty);
            if (n <= 2) /* prepare, enter */
                assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_NODE);
            else
                assert_int_equal(e->exit_code, 3);
            nothing_is_left(fds);
        } while (strcmp(getenv("FAULTY_FIRED"), "1") == 0 && n < 50);
        assert_true(n > 4 && n < 50);
    }
}

static void einval_of_a_plugin_is_the_users_fault(void **state)
{
    (void)state;
    setenv("FAULTY_AT", "1", 1);
    setenv("FAULTY_ERRNO", "22", 1);
    start("exit 0");
    const Cw__TaskEnd *e = run_to_end();
    assert_string_equal(e->message, "isolation faulty: told to fail");
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    send_key(CW_PACKET_FORGET, next_id - 1);
}

static void a_plugin_that_is_not_there_is_the_nodes_fault(void **state)
{
    (void)state;
    struct cw_error err = { 0 };
    Cw__TaskStart s = CW__TASK_START__INIT;
    (void)s;
    struct cw_plug *p = NULL;
    assert_true(cw_plug_load(herd.plugs, "isolation", "nosuch", &p, &err) < 0);
    assert_non_null(strstr(err.text, "isolation/nosuch"));
}

static void usage_that_cannot_be_read_comes_from_wait4_and_says_so(void **state)
{
    (void)state;
    setenv("FAULTY_AT", "0", 1);
    start("exit 0");
    const Cw__TaskEnd *e = run_to_end();
    assert_string_equal(e->usage->source, "faulty");
    assert_int_equal(e->usage->cpu_user_ns, 5);
    send_key(CW_PACKET_FORGET, next_id - 1);
    setenv("FAULTY_AT", "4", 1); /* prepare, enter, count, usage */
    setenv("FAULTY_ERRNO", "5", 1);
    start("exit 0");
    e = run_to_end();
    assert_string_equal(e->usage->source, "wait4");
    assert_int_equal(e->usage->has_mem_peak_bytes, 0);
    send_key(CW_PACKET_FORGET, next_id - 1);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static struct cw_step *begin(struct cw_task *t, uint32_t ranks, const char *command, bool detached)
{
    Cw__StepLayout l = CW__STEP_LAYOUT__INIT;
    Cw__StepSpec s = CW__STEP_SPEC__INIT;
    Cw__Grant g = CW__GRANT__INIT;
    uint32_t numbers[] = { 0, 1, 2, 3 };
    char *argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t)command };
    static uint32_t number;
    g.node = g.cores = g.cpus = (char *)(uintptr_t) "";
    l.grant = &g;
    l.ranks = numbers;
    l.n_ranks = l.ntasks = ranks;
    s.argv = argv;
    s.n_argv = 3;
    s.has_detached = s.detached = detached;
    assert_int_equal(cw_stepset_begin(&herd, t, ++number, &l, &s, NULL), 0);
    return cw_stepset_find(t, number);
}

static void kill_task(uint64_t id)
{
    cw_autobuf struct cw_buf b = { 0 };
    Cw__TaskKill m = CW__TASK_KILL__INIT;
    Cw__TaskKey k = CW__TASK_KEY__INIT;
    k.id = id;
    k.attempt = 1;
    m.key = &k;
    m.cause = CW__CAUSE__CAUSE_CANCEL;
    cw_walk_pack(&m.base, &b);
    cw_herd_packet(&herd, CW_PACKET_KILL, b.data, b.len);
}

/* Nobody will read: the steps go with their task. */
static void forget_with_steps(unsigned fds)
{
    herd.leaving = true;
    send_key(CW_PACKET_FORGET, next_id - 1);
    herd.next_due = 0;
    cw_herd_due(&herd);
    herd.leaving = false;
    assert_int_equal(herd.n_steps, 0);
    assert_int_equal(cw_idtable_count(herd.step_pids), 0);
    nothing_is_left(fds);
}

static void every_call_of_a_plugin_may_fail_under_steps_and_nothing_is_left(void **state)
{
    (void)state;
    unsigned n = 0, fds = entries("/proc/self/fd");
    headless = true;
    setenv("FAULTY_BOXES", "0", 1);
    do {
        char text[16];
        snprintf(text, sizeof text, "%u", ++n);
        setenv("FAULTY_AT", text, 1);
        setenv("FAULTY_ERRNO", "5", 1);
        setenv("FAULTY_FIRED", "0", 1);
        uint64_t id = start("");
        struct cw_task *t = only_task();
        struct cw_step *s = NULL;
        if (t->phase == CW_TASK_RUNNING)
            s = begin(t, 3, "sleep 100", false);
        kill_task(id);
        assert_true(run_to_end()->empty);
        if (s != NULL) {
            assert_int_equal(s->n_ended, 3); /* started or not, each has its end */
            assert_true(s->end.len > 0);
        }
        forget_with_steps(fds);
    } while (strcmp(getenv("FAULTY_FIRED"), "1") == 0 && n < 50);
    assert_true(n > 5 && n < 50);
    headless = false;
}

static void a_step_whose_reader_is_silent_is_killed_but_not_while_none_can_come(void **state)
{
    (void)state;
    int sv[2];
    unsigned fds = entries("/proc/self/fd");
    setenv("FAULTY_AT", "0", 1);
    headless = true;
    uint64_t id = start("");
    struct cw_task *t = only_task();
    struct cw_step *s = begin(t, 1, "sleep 100", false), *d = begin(t, 1, "sleep 100", true);
    int64_t now = cw_herd_now_ms();
    assert_true(s->silent_at > now + CW_STEP_SILENCE_MS - 10000);
    assert_int_equal(d->silent_at, 0); /* detached */
    s->silent_at = 1;
    cw_stepset_due(&herd, t, now);
    assert_int_equal(s->kill_cause, 0); /* no node daemon: nobody could have asked */
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
    herd.peer = cw_packets_create(sv[0]);
    s->silent_at = 1;
    cw_stepset_due(&herd, t, now);
    assert_int_equal(s->kill_cause, CW__CAUSE__CAUSE_OWNER_GONE);
    assert_int_equal(d->kill_cause, 0);
    cw_packets_destroy(herd.peer);
    herd.peer = NULL;
    close(sv[1]);
    kill_task(id);
    assert_true(run_to_end()->empty);
    assert_int_equal(s->cause, CW__CAUSE__CAUSE_OWNER_GONE);
    forget_with_steps(fds);
    headless = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_a_plugin_may_fail_and_nothing_is_left),
        cmocka_unit_test(every_call_of_a_plugin_may_fail_under_steps_and_nothing_is_left),
        cmocka_unit_test(a_step_whose_reader_is_silent_is_killed_but_not_while_none_can_come),
        cmocka_unit_test(einval_of_a_plugin_is_the_users_fault),
        cmocka_unit_test(a_plugin_that_is_not_there_is_the_nodes_fault),
        cmocka_unit_test(usage_that_cannot_be_read_comes_from_wait4_and_says_so),
    };
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
