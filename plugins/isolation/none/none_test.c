/* isolation/none against real processes, among them one that double-forks out of its session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <crunwlm/plugin.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OPS ((const struct cw_isolation_ops *)cw_plugin.ops)

static const struct cw_plan_line *plan_lines;
static uint32_t n_plan_lines;

static const struct cw_plan_line *fake_plan_get(const struct cw_host *host,
                                                const struct cw_plan *plan, uint32_t i)
{
    (void)host;
    (void)plan;
    return i < n_plan_lines ? &plan_lines[i] : NULL;
}

static const char *fake_instance(const struct cw_host *host, const char *what)
{
    (void)host;
    return strcmp(what, "cluster") == 0 ? "c1" : strcmp(what, "node") == 0 ? "n1" : NULL;
}

static const struct cw_host host = {
    .size = sizeof(host), .plan_get = fake_plan_get, .instance = fake_instance};

/* The task's environment; a real shepherd makes it from the spec. */
static char *const task_env[] = {"CRUN_JOB_ID=12", "CRUN_ATTEMPT=1", "CRUN_CLUSTER=c1",
                                 "CRUN_NODENAME=n1", NULL};
static const struct cw_task_view task = {
    .size = sizeof(task), .id = 12, .job_id = 12, .attempt = 1, .key = "12.1"};

struct fixture {
    void *ctx, *box;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct cw_plugin_err err = {{0}};

    n_plan_lines = 0;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(cw_plugin.open(&host, &f->ctx, &err), 0);
    assert_int_equal(OPS->prepare(f->ctx, &task, (void *)1, &f->box, &err), 0);
    *state = f;
    return 0;
}

static void reap_all(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    while (waitpid(-1, NULL, 0) > 0)
        ;
    if (f->box != NULL)
        assert_int_equal(OPS->release(f->ctx, f->box), 0);
    cw_plugin.close(f->ctx);
    free(f);
    return 0;
}

/* Starts `sh -c script` in the box, with a pipe as descriptor 3; returns when it wrote a line
 * there. */
static pid_t spawn(struct fixture *f, const char *script, char *const env[])
{
    int fds[2];
    char line[64];
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (f != NULL && OPS->enter(f->ctx, f->box) < 0)
            _exit(99);
        if (dup2(fds[1], 3) < 0)
            _exit(98);
        if (fds[0] > 3)
            close(fds[0]);
        if (fds[1] > 3)
            close(fds[1]);
        execle("/bin/sh", "sh", "-c", script, (char *)NULL, env);
        _exit(97);
    }
    close(fds[1]);
    if (f != NULL)
        assert_int_equal(OPS->started(f->ctx, f->box, pid), 0);
    assert_true(read(fds[0], line, sizeof(line)) > 0);
    close(fds[0]);
    return pid;
}

static void reap(pid_t pid)
{
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void wait_until_count(struct fixture *f, int wanted)
{
    for (int i = 0; i < 1000; i++) {
        reap_all();
        if (OPS->signal(f->ctx, f->box, 0) == wanted)
            return;
        poll(NULL, 0, 5);
    }
    assert_int_equal(OPS->signal(f->ctx, f->box, 0), wanted);
}

static void a_box_with_nothing_started_is_empty(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(OPS->signal(f->ctx, f->box, 0), 0);
    assert_int_equal(OPS->kill(f->ctx, f->box), 0);
}

static void signal_reaches_the_leader_and_its_children(void **state)
{
    struct fixture *f = *state;

    spawn(f, "sleep 100 & echo x >&3; wait", task_env);
    wait_until_count(f, 2);
    assert_int_equal(OPS->signal(f->ctx, f->box, SIGTERM), 2);
    wait_until_count(f, 0);
}

static void release_is_busy_while_a_background_process_outlives_the_leader(void **state)
{
    struct fixture *f = *state;
    pid_t leader = spawn(f, "sleep 100 >/dev/null 2>&1 & echo x >&3", task_env);

    reap(leader);
    assert_int_equal(OPS->release(f->ctx, f->box), -EBUSY);
    assert_int_equal(OPS->kill(f->ctx, f->box), 1);
    wait_until_count(f, 0);
    assert_int_equal(OPS->release(f->ctx, f->box), 0);
    f->box = NULL;
}

static void kill_finds_a_process_that_double_forked_into_its_own_session(void **state)
{
    struct fixture *f = *state;
    pid_t leader = spawn(
        f, "(setsid sh -c 'setsid sleep 100 & sleep 0.05; echo x >&3' &) ; sleep 0.3", task_env);

    reap(leader);
    wait_until_count(f, 1);
    assert_int_equal(OPS->release(f->ctx, f->box), -EBUSY);
    assert_int_equal(OPS->kill(f->ctx, f->box), 1);
    wait_until_count(f, 0);
}

static void kill_leaves_a_process_of_another_task_alone(void **state)
{
    struct fixture *f = *state;
    static char *const other_env[] = {"CRUN_JOB_ID=13", "CRUN_ATTEMPT=1", NULL};
    pid_t other = spawn(NULL, "echo x >&3; exec sleep 100", other_env);

    spawn(f, "echo x >&3; sleep 100", task_env);
    assert_true(OPS->kill(f->ctx, f->box) >= 1);
    wait_until_count(f, 0);
    assert_int_equal(kill(other, 0), 0);
    kill(other, SIGKILL);
}

static void kill_ends_a_tree_that_keeps_forking(void **state)
{
    struct fixture *f = *state;

    spawn(f, "echo x >&3; while :; do sleep 0.01 & done", task_env);
    assert_true(OPS->kill(f->ctx, f->box) >= 1);
    wait_until_count(f, 0);
}

static void reclaim_kills_orphans_of_the_key_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    static char *const later_env[] = {"CRUN_JOB_ID=12", "CRUN_ATTEMPT=2", "CRUN_CLUSTER=c1",
                                      "CRUN_NODENAME=n1", NULL};
    struct cw_plugin_err err = {{0}};
    pid_t old = spawn(NULL, "echo x >&3; exec sleep 100", task_env);
    pid_t later = spawn(NULL, "echo x >&3; exec sleep 100", later_env);
    int status;

    assert_int_equal(OPS->reclaim(f->ctx, "12.1", &err), 0);
    assert_int_equal(waitpid(old, &status, 0), old);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(kill(later, 0), 0);
    assert_int_equal(OPS->reclaim(f->ctx, "12.1", &err), 0);
    assert_int_equal(OPS->reclaim(f->ctx, "no key at all", &err), 0);
    kill(later, SIGKILL);
}

static void a_mount_elsewhere_is_refused_with_the_reason(void **state)
{
    struct fixture *f = *state;
    static const struct cw_plan_line lines[] = {
        {.kind = CW_PLAN_MOUNT, .a = "/srv/same", .b = "/srv/same"},
        {.kind = CW_PLAN_MOUNT, .a = "/srv/data", .b = "/data"},
    };
    struct cw_plugin_err err = {{0}};
    void *box = NULL;

    plan_lines = lines;
    n_plan_lines = 1;
    assert_int_equal(OPS->prepare(f->ctx, &task, (void *)1, &box, &err), 0);
    assert_int_equal(OPS->release(f->ctx, box), 0);
    n_plan_lines = 2;
    assert_int_equal(OPS->prepare(f->ctx, &task, (void *)1, &box, &err), -EINVAL);
    assert_string_equal(err.text, "mount of /srv/data on /data needs a private box");
    n_plan_lines = 0;
}

static void a_limit_of_open_files_holds_in_the_task(void **state)
{
    struct fixture *f = *state;
    static const struct cw_plan_line lines[] = {{.kind = CW_PLAN_LIMIT, .a = "nofile", .n1 = 77}};
    struct cw_plugin_err err = {{0}};
    pid_t leader;
    int status;

    assert_int_equal(OPS->release(f->ctx, f->box), 0);
    plan_lines = lines;
    n_plan_lines = 1;
    assert_int_equal(OPS->prepare(f->ctx, &task, (void *)1, &f->box, &err), 0);
    leader = spawn(f, "echo x >&3; test \"$(ulimit -n)\" = 77", task_env);
    assert_int_equal(waitpid(leader, &status, 0), leader);
    assert_int_equal(status, 0);
}

static void usage_says_that_nothing_is_measured(void **state)
{
    struct fixture *f = *state;
    struct cw_box_usage u = {.cpu_user_ns = 7};

    assert_int_equal(OPS->usage(f->ctx, f->box, &u), 0);
    assert_string_equal(u.source, "");
    assert_int_equal(u.cpu_user_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_box_with_nothing_started_is_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(signal_reaches_the_leader_and_its_children, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            release_is_busy_while_a_background_process_outlives_the_leader, setup, teardown),
        cmocka_unit_test_setup_teardown(
            kill_finds_a_process_that_double_forked_into_its_own_session, setup, teardown),
        cmocka_unit_test_setup_teardown(kill_leaves_a_process_of_another_task_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(kill_ends_a_tree_that_keeps_forking, setup, teardown),
        cmocka_unit_test_setup_teardown(reclaim_kills_orphans_of_the_key_and_nothing_else, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_mount_elsewhere_is_refused_with_the_reason, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_limit_of_open_files_holds_in_the_task, setup, teardown),
        cmocka_unit_test_setup_teardown(usage_says_that_nothing_is_measured, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
