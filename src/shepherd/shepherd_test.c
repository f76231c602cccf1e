/* A real crun-shepherd with real commands, spoken to as a node daemon does. Needs the built
 * crun-shepherd and plugins in the build folder, where tests run. Cases that change identity need
 * root. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
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
#include "shepherd/shepherdrig.h"

static void an_exit_code_arrives_after_started_with_an_empty_box(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "echo hello; echo bad >&2; exit 7", NULL);
    j.spec.stdout_path = (char *)(uintptr_t) "sub/dir/out-%j.txt";
    uint64_t id = cw_rig_run(&j);
    const Cw__TaskStarted *s = cw_rig_started_of(id);
    const Cw__TaskEnd *e = cw_rig_end_of(id);
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_EXIT);
    assert_int_equal(e->exit_code, 7);
    assert_true(e->empty);
    assert_int_equal(e->pid, s->pid);
    assert_string_equal(e->stdout_path, cw_rig_in_dir("sub/dir/out-10.txt"));
    assert_string_equal(cw_rig_text_of("sub/dir/out-10.txt"), "hello\nbad\n");
    assert_true(e->usage != NULL && e->usage->has_cpu_user_ns);
    struct stat st;
    assert_int_equal(stat(cw_rig_in_dir("sub"), &st), 0);
    assert_int_equal(st.st_uid, cw_rig.uid);
}

static void a_signal_that_we_did_not_send_is_the_cause(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "kill -SEGV $$", NULL);
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_SIGNAL);
    assert_int_equal(e->signal, SIGSEGV);
    assert_false(e->has_exit_code);
}

static void argv_arrives_byte_for_byte(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "for a; do printf '%s|' \"$a\"; done", "x",
                                     "a b", "", "-n", "*", "$HOME", "q\"'\n", "\xff", NULL);
    j.spec.stdout_path = (char *)(uintptr_t) "argv.txt";
    cw_rig_end_of(cw_rig_run(&j));
    assert_string_equal(cw_rig_text_of("argv.txt"), "a b||-n|*|$HOME|q\"'\n|\xff|");
}

static void a_command_is_found_in_the_jobs_own_path(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("probe", NULL);
    assert_int_equal(cw_file_mkdirs(cw_rig_in_dir("bin"), 0755, NULL), 0);
    assert_int_equal(
        cw_file_write_atomic(cw_rig_in_dir("bin/probe"), "#!/bin/sh\nexit 3\n", 17, 0755, NULL), 0);
    j.env[0] = cw_arena_printf(cw_rig.arena, "PATH=/nowhere:%s/bin", cw_rig.dir);
    j.payload.n_env = 1;
    assert_int_equal(cw_rig_end_of(cw_rig_run(&j))->exit_code, 3);
}

static void a_task_has_the_file_limit_that_the_shepherd_was_started_with(void **state)
{
    (void)state;
    struct rlimit r;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "ulimit -Sn; ulimit -c", NULL);
    j.spec.stdout_path = (char *)(uintptr_t) "limits.txt";
    cw_rig_end_of(cw_rig_run(&j));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    assert_string_equal(cw_rig_text_of("limits.txt"),
                        cw_arena_printf(cw_rig.arena, "%llu\n0\n", (unsigned long long)r.rlim_cur));
}

static void an_uid_without_a_name_works_by_its_number(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "id -u; id -G", NULL);
    j.owner.uid = 3000000000u;
    j.owner.gid = 3000000001u;
    j.spec.stdout_path = (char *)(uintptr_t) "uid.txt";
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_EXIT);
    assert_string_equal(cw_rig_text_of("uid.txt"), "3000000000\n3000000001\n");
}

static void a_missing_workdir_is_the_users_fault_and_names_path_and_node(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/true", NULL);
    j.spec.workdir = (char *)(uintptr_t) "/only/on/login";
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
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
    struct cw_rig_job a = cw_rig_job("/no/such/thing", NULL), b = cw_rig_job("/etc/passwd", NULL),
                      c = cw_rig_job("nosuchcommand", NULL);
    a.spec.stdout_path = (char *)(uintptr_t) "miss.txt";
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&a));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_int_equal(e->exit_code, 127);
    assert_string_equal(e->message, "exec /no/such/thing: No such file or directory");
    assert_non_null(
        strstr(cw_rig_text_of("miss.txt"), "exec /no/such/thing: No such file or directory"));
    e = cw_rig_end_of(cw_rig_run(&b));
    assert_int_equal(e->exit_code, 126);
    assert_string_equal(e->message, "exec /etc/passwd: Permission denied");
    assert_int_equal(cw_rig_end_of(cw_rig_run(&c))->exit_code, 127);
}

static void an_output_file_that_cannot_be_made_names_path_user_and_node(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct cw_rig_job j = cw_rig_job("/bin/true", NULL);
    j.spec.stdout_path = (char *)(uintptr_t) "/root-only/x/out.txt";
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_non_null(
        strstr(e->message,
               "output file /root-only/x/out.txt: Permission denied (as user nobody on node n1)"));
}

static void a_fifo_without_a_reader_does_not_stop_the_shepherd(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/true", NULL), k = cw_rig_job("/bin/true", NULL);
    assert_int_equal(mkfifo(cw_rig_in_dir("fifo"), 0666), 0);
    chmod(cw_rig_in_dir("fifo"), 0666);
    j.spec.stdout_path = cw_rig_in_dir("fifo");
    assert_int_equal(cw_rig_end_of(cw_rig_run(&j))->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_int_equal(cw_rig_end_of(cw_rig_run(&k))->cause, CW__CAUSE__CAUSE_EXIT);
}

static void root_is_refused_unless_allowed(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct cw_rig_job j = cw_rig_job("/bin/true", NULL), k = cw_rig_job("/bin/true", NULL);
    j.owner.uid = k.owner.uid = j.owner.gid = k.owner.gid = 0;
    j.start.allow_root = 0;
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_string_equal(e->message, "jobs of root are not allowed on this cluster");
    assert_int_equal(cw_rig_end_of(cw_rig_run(&k))->cause, CW__CAUSE__CAUSE_EXIT);
}

static void a_second_start_of_a_key_is_answered_and_not_run(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "echo once >>count.txt", NULL);
    uint64_t id = cw_rig_run(&j);
    cw_rig_end_of(id);
    cw_rig_run(&j);
    cw_rig_end_of(id);
    assert_string_equal(cw_rig_text_of("count.txt"), "once\n");
    cw_rig_forget(id);
}

static void the_head_of_several_nodes_has_a_host_file_while_it_lives(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c",
                                     "echo $CRUN_NNODES $CRUN_NODELIST; cat \"$CRUN_HOSTFILE\"",
                                     NULL);
    Cw__Grant g[2], *list[] = { &g[0], &g[1] };
    for (int i = 0; i < 2; i++) {
        cw__grant__init(&g[i]);
        g[i].node = (char *)(uintptr_t)(i == 0 ? "n1" : "n2");
        g[i].cores = g[i].cpus = (char *)(uintptr_t) "0";
        g[i].has_ntasks = 1;
        g[i].ntasks = (uint32_t)i + 1;
    }
    j.start.grants = list;
    j.start.n_grants = 2;
    j.spec.stdout_path = (char *)(uintptr_t) "hosts.txt";
    assert_int_equal(cw_rig_end_of(cw_rig_run(&j))->exit_code, 0);
    assert_string_equal(cw_rig_text_of("hosts.txt"), "2 n[1-2]\nn1 slots=1\nn2 slots=2\n");
    cw_autofree char *left = cw_xasprintf("node/n1/tasks/%llu.1.hosts",
                                          (unsigned long long)j.key.id);
    assert_int_equal(access(cw_rig_in_dir(left), F_OK), -1);
}

static void a_script_runs_with_its_arguments_and_a_sensible_name(void **state)
{
    (void)state;
    static const char text[] = "#!/bin/sh\nbasename \"$0\"; echo \"$1|$2\"; exit 5\n";
    struct cw_rig_job j = cw_rig_job("one", "two words", NULL);
    j.payload.has_script = 1;
    j.payload.script = (ProtobufCBinaryData){ sizeof text - 1, (uint8_t *)(uintptr_t)text };
    j.spec.stdout_path = (char *)(uintptr_t) "script.txt";
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
    assert_int_equal(e->exit_code, 5);
    assert_string_equal(cw_rig_text_of("script.txt"), "10.1.sh\none|two words\n");
    assert_int_equal(access(cw_rig_in_dir("node/n1/tasks/10.1.sh"), F_OK), -1);
}

static void a_script_whose_interpreter_is_missing_says_which(void **state)
{
    (void)state;
    static const char text[] = "#!/opt/none/python9\n";
    struct cw_rig_job j = cw_rig_job(NULL);
    j.payload.has_script = 1;
    j.payload.script = (ProtobufCBinaryData){ sizeof text - 1, (uint8_t *)(uintptr_t)text };
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
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
    kill(cw_rig.pid, SIGKILL);
    cw_rig_wait();
    cw_packets_destroy(cw_rig.p);
    cw_rig.p = NULL;
    chmod(cw_rig_in_dir("node"), 0700);
    cw_rig_start(0);
    struct cw_rig_job j = cw_rig_job(NULL);
    j.payload.has_script = 1;
    j.payload.script = (ProtobufCBinaryData){ sizeof text - 1, (uint8_t *)(uintptr_t)text };
    assert_int_equal(cw_rig_end_of(cw_rig_run(&j))->exit_code, 6);
}

static void a_large_payload_arrives_whole(void **state)
{
    (void)state;
    struct cw_buf b = { 0 };
    cw_buf_add_str(&b, "#!/bin/sh\nwc -c <\"$0\"\nexit 0\n");
    while (b.len < 700000)
        cw_buf_add_str(&b, "# padding padding padding padding padding padding padding\n");
    struct cw_rig_job j = cw_rig_job(NULL);
    j.payload.has_script = 1;
    j.payload.script = (ProtobufCBinaryData){ b.len, (uint8_t *)b.data };
    j.spec.stdout_path = (char *)(uintptr_t) "size.txt";
    cw_rig_end_of(cw_rig_run(&j));
    assert_int_equal(strtoul(cw_rig_text_of("size.txt"), NULL, 10), b.len);
    cw_buf_fini(&b);
}

static void a_second_attempt_marks_its_output(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/echo", "again", NULL), k;
    j.spec.stdout_path = (char *)(uintptr_t) "again.txt";
    cw_rig_end_of(cw_rig_run(&j));
    k = j;
    k.key.attempt = 2;
    cw_rig_end_of(cw_rig_run(&k));
    assert_string_equal(cw_rig_text_of("again.txt"), "again\n=== attempt 2 on n1 ===\nagain\n");
}

static void the_time_limit_holds_with_term_grace_and_kill(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c",
                                     "trap 'echo term' TERM; while :; do sleep 0.05; done", NULL);
    j.start.has_time_left_ms = 1;
    j.start.time_left_ms = 300;
    j.start.kill_grace_ms = 300;
    j.spec.stdout_path = (char *)(uintptr_t) "limit.txt";
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_TIME_LIMIT);
    assert_int_equal(e->signal, SIGKILL);
    assert_true(e->empty);
    assert_non_null(strstr(cw_rig_text_of("limit.txt"), "term\n"));
}

static void an_early_signal_reaches_every_process_or_the_leader_alone(void **state)
{
    (void)state;
    static const char *const want[] = {"child\nleader\n", "leader\n"};
    for (int leader = 0; leader < 2; leader++) {
        struct cw_rig_job j = cw_rig_job(
            "/bin/sh", "-c",
            "exec 2>/dev/null; (trap 'echo child; exit' USR1;"
            "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; done) &"
            "trap 'sleep 0.6; echo leader; exit 0' USR1; while :; do sleep 0.05; done",
            NULL);
        j.start.has_time_left_ms = 1;
        j.start.time_left_ms = 20200;
        j.spec.has_signal = j.spec.has_signal_before_s = j.spec.has_signal_leader = 1;
        j.spec.signal = SIGUSR1;
        j.spec.signal_before_s = 20;
        j.spec.signal_leader = leader;
        j.spec.stdout_path = (char *)(uintptr_t)(leader ? "early-b.txt" : "early-a.txt");
        const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
        assert_int_equal(e->cause, CW__CAUSE__CAUSE_EXIT);
        assert_string_equal(cw_rig_text_of(leader ? "early-b.txt" : "early-a.txt"), want[leader]);
    }
}

static void a_cancelled_task_that_ends_by_itself_was_cancelled(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job(
        "/bin/sh", "-c", "trap 'exit 0' TERM; echo >ready.txt; while :; do sleep 0.05; done", NULL);
    uint64_t id = cw_rig_run(&j);
    cw_rig_started_of(id);
    int64_t end = cw_clock_mono_ns() + 10 * CW_NS_PER_S;
    while (access(cw_rig_in_dir("ready.txt"), F_OK) < 0 && cw_clock_mono_ns() < end)
        cw_rig_pump(cw_clock_mono_ns() / CW_NS_PER_MS + 10);
    cw_rig_kill(id, 20000);
    const Cw__TaskEnd *e = cw_rig_end_of(id);
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_CANCEL);
    assert_int_equal(e->exit_code, 0);
}

/* Whoever adopts orphans may not have reaped it yet. */
static bool is_dead(pid_t pid)
{
    char path[40], text[256] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return true;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    const char *behind = strrchr(text, ')');
    return behind == NULL || behind[1] == '\0' || behind[2] == 'Z' || behind[2] == 'X';
}

static void what_a_leader_leaves_behind_is_killed_before_the_end_is_told(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job(
        "/bin/sh", "-c", "sleep 1000 & echo $! >left.txt; (sleep 1000 &) ; exit 4", NULL);
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
    assert_int_equal(e->exit_code, 4);
    assert_true(e->empty);
    assert_true(is_dead((pid_t)strtol(cw_rig_text_of("left.txt"), NULL, 10)));
}

static void a_new_link_hears_everything_until_it_forgets(void **state)
{
    (void)state;
    struct cw_rig_job a = cw_rig_job("/bin/sh", "-c", "exit 9", NULL),
                      b = cw_rig_job("/bin/sleep", "1000", NULL);
    uint64_t ida = cw_rig_run(&a), idb = cw_rig_run(&b);
    cw_rig_end_of(ida);
    uint32_t pid = cw_rig_started_of(idb)->pid;
    cw_rig_connect_again();
    assert_int_equal(cw_rig_end_of(ida)->exit_code, 9);
    assert_int_equal(cw_rig_started_of(idb)->pid, pid);
    cw_rig_forget(ida);
    cw_rig_connect_again();
    cw_list_each(l, &cw_rig.got)
        assert_int_not_equal(cw_list_entry(l, struct cw_rig_got, link)->type, CW_PACKET_END);
    cw_rig_kill(idb, 0);
    assert_int_equal(cw_rig_end_of(idb)->cause, CW__CAUSE__CAUSE_CANCEL);
}

static void an_end_while_nobody_listens_is_told_later(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "sleep 0.3; exit 8", NULL);
    uint64_t id = cw_rig_run(&j);
    cw_rig_started_of(id);
    int idle[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, idle), 0);
    cw_packets_destroy(cw_rig.p); /* the node daemon dies */
    cw_rig.p = cw_packets_create(idle[0]);
    while (access(cw_rig_in_dir("node/n1/tasks"), F_OK) == 0 && kill(cw_rig.pid, 0) == 0) {
        struct cw_list tasks;
        cw_list_init(&tasks);
        cw_autofree char *path = cw_xasprintf("%s/%s.journal", cw_rig.shep_dir, cw_rig.id);
        assert_int_equal(cw_journal_load(path, &tasks, NULL), 0);
        bool ended = !cw_list_empty(&tasks) &&
                     cw_list_entry(tasks.next, struct cw_journal_task, link)->end.len > 0;
        cw_journal_tasks_destroy(&tasks);
        if (ended)
            break;
        poll(NULL, 0, 10);
    }
    close(idle[1]);
    cw_rig_connect_again();
    assert_int_equal(cw_rig_end_of(id)->exit_code, 8);
}

static void a_dead_shepherds_tasks_are_killed_and_lost(void **state)
{
    (void)state;
    struct cw_rig_job a = cw_rig_job("/bin/sh", "-c", "exit 2", NULL),
                      b = cw_rig_job("/bin/sleep", "1000", NULL);
    uint64_t ida = cw_rig_run(&a), idb = cw_rig_run(&b);
    cw_rig_end_of(ida);
    pid_t pid = (pid_t)cw_rig_started_of(idb)->pid;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* the orphan comes to us */
    kill(cw_rig.pid, SIGKILL);
    cw_rig_wait();
    cw_rig_spawn(cw_rig.id, -1, 0, "--reclaim");
    assert_int_equal(cw_rig_wait(), 0);
    cw_rig.pid = 0;
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    struct cw_list tasks;
    cw_list_init(&tasks);
    cw_autofree char *path = cw_xasprintf("%s/%s.journal", cw_rig.shep_dir, cw_rig.id);
    assert_int_equal(cw_journal_load(path, &tasks, NULL), 0);
    unsigned seen = 0;
    cw_list_each(l, &tasks) {
        const struct cw_journal_task *t = cw_list_entry(l, struct cw_journal_task, link);
        ProtobufCMessage *m;
        assert_int_equal(cw_walk_unpack(&cw__task_end__descriptor, t->end.data, t->end.len,
                                        cw_rig.arena, &m, NULL),
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

static struct cw_rig_got *open_log(uint32_t uid, const char *path)
{
    cw_autobuf struct cw_buf b = { 0 };
    uint64_t number = 77;
    cw_buf_add(&b, &number, sizeof number);
    cw_buf_add(&b, &uid, sizeof uid);
    cw_buf_add(&b, &uid, sizeof uid);
    cw_buf_add_str(&b, path);
    assert_int_equal(cw_packets_add(cw_rig.p, CW_PACKET_OPEN, b.data, b.len), 0);
    return cw_rig_take(CW_PACKET_OPENED, 0);
}

static void a_log_is_opened_as_the_user_and_passed(void **state)
{
    (void)state;
    assert_int_equal(cw_file_write_atomic(cw_rig_in_dir("mine.txt"), "text", 4, 0644, NULL), 0);
    struct cw_rig_got *g = open_log(cw_rig.uid, cw_rig_in_dir("mine.txt"));
    char buf[8] = "";
    assert_true(g->fd >= 0);
    assert_int_equal(read(g->fd, buf, sizeof buf), 4);
    cw_rig_drop(g);
    g = open_log(cw_rig.uid, "/dev/null");
    assert_int_equal(g->fd, -1);
    assert_non_null(strstr(g->body.data + 12, "not a regular file"));
    cw_rig_drop(g);
    if (geteuid() != 0)
        return;
    g = open_log(cw_rig.uid, "/etc/shadow");
    assert_int_equal(g->fd, -1);
    assert_non_null(strstr(g->body.data + 12, "/etc/shadow: Permission denied"));
    cw_rig_drop(g);
}

static void a_shepherd_told_to_quit_goes_when_it_is_empty_and_leaves_nothing(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "sleep 0.1; exit 1", NULL);
    uint64_t id = cw_rig_run(&j);
    cw_packets_add(cw_rig.p, CW_PACKET_QUIT, NULL, 0);
    assert_int_equal(cw_rig_end_of(id)->exit_code, 1);
    cw_rig_forget(id);
    assert_int_equal(cw_rig_wait(), 0);
    cw_rig.pid = 0;
    DIR *d = opendir(cw_rig.shep_dir);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            fail_msg("left over: %s", e->d_name);
    closedir(d);
}

static size_t open_files(void)
{
    cw_autofree char *path = cw_xasprintf("/proc/%d/fd", cw_rig.pid);
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
        struct cw_rig_job j = cw_rig_job(i % 3 == 0 ? "/no/such" : "/bin/true", NULL);
        if (i % 3 == 1)
            j.spec.stdout_path = (char *)(uintptr_t) "many-%j.txt";
        ids[i] = cw_rig_run(&j);
    }
    for (int i = 0; i < N; i++) {
        assert_true(cw_rig_end_of(ids[i])->empty);
        cw_rig_forget(ids[i]);
    }
    print_message("# %d tasks in %lld ms\n", N,
                  (long long)((cw_clock_mono_ns() - t0) / CW_NS_PER_MS));
    assert_int_equal(open_files(), before);
}

/* A place for steps: no process, no pid, ends by a kill alone and then proves itself empty. */
static void a_task_without_a_leader_stands_until_it_is_killed(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "echo ran >ran.txt", NULL);
    j.spec.has_allocation = j.spec.allocation = 1;
    j.spec.stdout_path = (char *)(uintptr_t) "out.txt";
    uint64_t id = cw_rig_run(&j);
    const Cw__TaskStarted *s = cw_rig_started_of(id);
    assert_int_equal(s->pid, 0);
    assert_null(s->stdout_path);
    cw_rig_connect_again();
    assert_int_equal(cw_rig_started_of(id)->start_ns, s->start_ns);
    cw_rig_kill(id, 60000); /* with nothing in it nobody waits for the grace */
    const Cw__TaskEnd *e = cw_rig_end_of(id);
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_CANCEL);
    assert_true(e->empty);
    assert_false(e->has_exit_code || e->has_signal || e->has_pid);
    assert_int_not_equal(access(cw_rig_in_dir("ran.txt"), F_OK), 0);
    assert_int_not_equal(access(cw_rig_in_dir("out.txt"), F_OK), 0);
}

static void a_node_that_is_not_the_head_opens_no_file_and_runs_nothing(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "echo ran >ran.txt", NULL);
    j.start.has_node = 1;
    j.start.node = 1;
    j.spec.workdir = cw_rig_in_dir("not/there");
    uint64_t id = cw_rig_run(&j);
    assert_int_equal(cw_rig_started_of(id)->pid, 0);
    cw_rig_kill(id, 0);
    assert_int_equal(cw_rig_end_of(id)->cause, CW__CAUSE__CAUSE_CANCEL);
    assert_int_not_equal(access(cw_rig_in_dir("ran.txt"), F_OK), 0);
}

static void the_time_limit_of_a_task_without_a_leader_holds(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job(NULL, NULL);
    j.spec.has_allocation = j.spec.allocation = 1;
    j.start.has_time_left_ms = 1;
    j.start.time_left_ms = 50;
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&j));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_TIME_LIMIT);
    assert_true(e->empty && e->has_start_ns);
}

static void a_dead_shepherds_leaderless_task_is_reclaimed(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job(NULL, NULL);
    j.spec.has_allocation = j.spec.allocation = 1;
    uint64_t id = cw_rig_run(&j);
    cw_rig_started_of(id);
    kill(cw_rig.pid, SIGKILL);
    cw_rig_wait();
    cw_rig_spawn(cw_rig.id, -1, 0, "--reclaim");
    assert_int_equal(cw_rig_wait(), 0);
    struct cw_list list;
    cw_list_init(&list);
    cw_autofree char *path = cw_xasprintf("%s/%s.journal", cw_rig.shep_dir, cw_rig.id);
    assert_int_equal(cw_journal_load(path, &list, NULL), 0);
    const struct cw_journal_task *t = cw_list_entry(list.next, struct cw_journal_task, link);
    ProtobufCMessage *m;
    assert_int_equal(cw_walk_unpack(&cw__task_end__descriptor, t->end.data, t->end.len,
                                    cw_rig.arena, &m, NULL),
                     0);
    const Cw__TaskEnd *e = (const Cw__TaskEnd *)m;
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_NODE_LOST);
    assert_true(e->empty && !e->has_pid);
    cw_journal_tasks_destroy(&list);
    cw_rig.pid = 0;
}

static void an_ordinary_user_runs_its_own_jobs_and_no_others(void **state)
{
    (void)state;
    struct cw_rig_job j = cw_rig_job("/bin/sh", "-c", "id -u", NULL),
                      k = cw_rig_job("/bin/true", NULL);
    j.spec.stdout_path = (char *)(uintptr_t) "own.txt";
    assert_int_equal(cw_rig_end_of(cw_rig_run(&j))->exit_code, 0);
    assert_int_equal(strtoul(cw_rig_text_of("own.txt"), NULL, 10), cw_rig.uid);
    k.owner.uid = 12345;
    const Cw__TaskEnd *e = cw_rig_end_of(cw_rig_run(&k));
    assert_int_equal(e->cause, CW__CAUSE__CAUSE_LAUNCH_USER);
    assert_non_null(strstr(e->message, "can start its own jobs only"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, cw_rig_setup, cw_rig_teardown)
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
        T(the_head_of_several_nodes_has_a_host_file_while_it_lives),
        T(a_script_runs_with_its_arguments_and_a_sensible_name),
        T(a_script_whose_interpreter_is_missing_says_which),
        T(a_script_below_a_closed_directory_still_runs),
        T(a_large_payload_arrives_whole),
        T(a_second_attempt_marks_its_output),
        T(the_time_limit_holds_with_term_grace_and_kill),
        T(an_early_signal_reaches_every_process_or_the_leader_alone),
        T(a_cancelled_task_that_ends_by_itself_was_cancelled),
        T(what_a_leader_leaves_behind_is_killed_before_the_end_is_told),
        T(a_new_link_hears_everything_until_it_forgets),
        T(an_end_while_nobody_listens_is_told_later),
        T(a_dead_shepherds_tasks_are_killed_and_lost),
        T(a_log_is_opened_as_the_user_and_passed),
        T(a_shepherd_told_to_quit_goes_when_it_is_empty_and_leaves_nothing),
        T(a_task_without_a_leader_stands_until_it_is_killed),
        T(a_node_that_is_not_the_head_opens_no_file_and_runs_nothing),
        T(the_time_limit_of_a_task_without_a_leader_holds),
        T(a_dead_shepherds_leaderless_task_is_reclaimed),
        T(hundreds_of_tasks_leave_no_descriptor_and_no_child),
        cmocka_unit_test_setup_teardown(an_ordinary_user_runs_its_own_jobs_and_no_others,
                                        cw_rig_setup_as_user, cw_rig_teardown),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
