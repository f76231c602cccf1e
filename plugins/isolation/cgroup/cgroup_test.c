/* isolation/cgroup: text and version 2 logic on a plain directory, then real groups of this machine
 * (skipped, with the reason, where they cannot be written). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <crunwlm/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "isolation/cgroup/groupfile.h"
#include "isolation/cgroup/groupmount.h"

#define OPS ((const struct cw_isolation_ops *)cw_plugin.ops)
#define MIB (1024 * 1024)

/* ---- a host of our own --------------------------------------------------------------------------
 */

static const char *opt_root, *opt_base, *opt_version, *opt_require, *opt_pids;
static const struct cw_plan_line *plan_lines;
static uint32_t n_plan_lines;
static char node_dir[64];

static const char *fake_option(const struct cw_host *host, const char *name)
{
    const struct {
        const char *name, *value;
    } rows[] = {
        {"root", opt_root},       {"base", opt_base}, {"version", opt_version},
        {"require", opt_require}, {"pids", opt_pids}, {"swap", "false"},
    };

    (void)host;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].value;
    return NULL;
}

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
    return strcmp(what, "cluster") == 0    ? "unit"
           : strcmp(what, "node") == 0     ? "n1"
           : strcmp(what, "node_dir") == 0 ? node_dir
                                           : NULL;
}

static const struct cw_host host = {.size = sizeof(host),
                                    .option = fake_option,
                                    .plan_get = fake_plan_get,
                                    .instance = fake_instance};

static void set_plan(const struct cw_plan_line *lines, uint32_t n)
{
    plan_lines = lines;
    n_plan_lines = n;
}

static struct cw_task_view view(const char *key)
{
    return (struct cw_task_view){.size = sizeof(struct cw_task_view), .id = 12, .key = key};
}

static int prepare(void *ctx, const char *key, void **ret_box, struct cw_plugin_err *err)
{
    struct cw_task_view t = view(key);

    return OPS->prepare(ctx, &t, (void *)1, ret_box, err);
}

/* ---- text ---------------------------------------------------------------------------------------
 */

static void mounts_of_a_hybrid_machine_are_told_apart(void **state)
{
    static const char text[] =
        "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
        "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 /job\\0401 /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
        "36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices\n"
        "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    struct group_mount m[8];

    (void)state;
    assert_int_equal(group_mounts_parse(text, m, 8), 3);
    assert_int_equal(m[0].controllers, GROUP_CPUACCT);
    assert_string_equal(m[0].point, "/sys/fs/cgroup/cpu,cpuacct");
    assert_int_equal(m[1].controllers, GROUP_MEMORY);
    assert_string_equal(m[1].root, "/job 1");
    assert_int_equal(m[2].version, 2);
    assert_int_equal(group_mounts_parse(text, m, 1), 1);
    assert_int_equal(group_mounts_parse("garbage\n\n - \n", m, 8), 0);
}

static void our_own_group_is_found_relative_to_what_the_mount_shows(void **state)
{
    static const char text[] = "4:memory:/outer/inner\n2:cpu,cpuacct:/\n0::/user.slice/a.scope\n";
    struct group_mount memory = {.version = 1, .controllers = GROUP_MEMORY, .root = "/"};
    struct group_mount v2 = {.version = 2, .root = "/"};
    struct group_mount freezer = {.version = 1, .controllers = GROUP_FREEZER, .root = "/"};
    char own[64];

    (void)state;
    group_self_path(text, &memory, own, sizeof(own));
    assert_string_equal(own, "outer/inner");
    snprintf(memory.root, sizeof(memory.root), "/outer");
    group_self_path(text, &memory, own, sizeof(own));
    assert_string_equal(own, "inner");
    group_self_path(text, &v2, own, sizeof(own));
    assert_string_equal(own, "user.slice/a.scope");
    group_self_path(text, &freezer, own, sizeof(own));
    assert_string_equal(own, "");
}

static void a_list_lies_within_another_only_with_all_its_numbers(void **state)
{
    (void)state;
    assert_true(groupfile_list_within("0-3,8", "0-9\n"));
    assert_true(groupfile_list_within("1", "0-1,4\n"));
    assert_false(groupfile_list_within("1-4", "0-1,4\n"));
    assert_false(groupfile_list_within("64-127", "0-1\n"));
    assert_false(groupfile_list_within("zero", "0-1\n"));
}

/* ---- version 2 on a plain directory -------------------------------------------------------------
 */

struct fixture {
    void *ctx;
    char dir[64];
};

static void put(const char *dir, const char *file, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, file);
    f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static const char *get(const char *dir, const char *file)
{
    static char text[512];
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", dir, file);
    if (groupfile_read(AT_FDCWD, path, text, sizeof(text)) < 0)
        return "(no such file)";
    return text;
}

static void open_plugin(struct fixture *f, const char *root, const char *base, const char *version,
                        const char *require)
{
    struct cw_plugin_err err = {{0}};

    opt_root = root;
    opt_base = base;
    opt_version = version;
    opt_require = require;
    opt_pids = "0";
    set_plan(NULL, 0);
    snprintf(node_dir, sizeof(node_dir), "/test/%d", (int)getpid());
    assert_int_equal(cw_plugin.open(&host, &f->ctx, &err), 0);
}

static int setup_plain(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), P_tmpdir "/cgroup_test.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    put(f->dir, "cgroup.controllers", "cpuset cpu memory pids\n");
    open_plugin(f, f->dir, "top/boxes", "auto", "memory,pids,cpuset");
    *state = f;
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    cw_plugin.close(f->ctx);
    if (f->dir[0] != '\0')
        assert_int_equal(nftw(f->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(f);
    return 0;
}

/* The levels between get their own list, as the kernel would make it. */
static void *plain_box(struct fixture *f, const char *key)
{
    struct cw_plugin_err err = {{0}};
    char path[128];
    void *box = NULL;
    int r;

    snprintf(path, sizeof(path), "%s/top", f->dir);
    mkdir(path, 0755);
    r = prepare(f->ctx, key, &box, &err);
    if (r < 0)
        print_message("prepare: %s\n", err.text);
    assert_int_equal(r, 0);
    return box;
}

static void limits_reach_the_files_of_version_2(void **state)
{
    static const struct cw_plan_line lines[] = {
        {.kind = CW_PLAN_LIMIT, .a = "memory", .n1 = 64 * MIB},
        {.kind = CW_PLAN_LIMIT, .a = "pids", .n1 = 50},
        {.kind = CW_PLAN_CPUS, .a = "0", .b = "0"},
    };
    struct fixture *f = *state;
    void *box;

    set_plan(lines, 3);
    box = plain_box(f, "12.1");
    assert_string_equal(get(f->dir, "top/boxes/12.1/memory.max"), "67108864");
    assert_string_equal(get(f->dir, "top/boxes/12.1/memory.swap.max"), "0");
    assert_string_equal(get(f->dir, "top/boxes/12.1/pids.max"), "50");
    assert_string_equal(get(f->dir, "top/boxes/12.1/cpuset.cpus"), "0");
    assert_string_equal(get(f->dir, "top/boxes/12.1/cpuset.mems"), "0");
    assert_int_equal(OPS->enter(f->ctx, box), 0);
    assert_string_equal(get(f->dir, "top/boxes/12.1/cgroup.procs"), "0");
    assert_int_equal(OPS->release(f->ctx, box), 0);
    assert_string_equal(get(f->dir, "top/boxes/12.1/memory.max"), "(no such file)");
}

static void a_box_without_limits_writes_none(void **state)
{
    struct fixture *f = *state;
    void *box = plain_box(f, "12.1");

    assert_string_equal(get(f->dir, "top/boxes/12.1/memory.max"), "(no such file)");
    assert_string_equal(get(f->dir, "top/boxes/12.1/pids.max"), "(no such file)");
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void processors_of_a_synthetic_topology_leave_the_cpuset_unset(void **state)
{
    static const struct cw_plan_line lines[] = {
        {.kind = CW_PLAN_CPUS, .a = "4000-4003", .b = "63"}};
    struct fixture *f = *state;
    void *box;

    set_plan(lines, 1);
    box = plain_box(f, "12.1");
    assert_string_equal(get(f->dir, "top/boxes/12.1/cpuset.cpus"), "(no such file)");
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void kill_of_version_2_is_one_write_and_release_stays_busy(void **state)
{
    struct fixture *f = *state;
    void *box = plain_box(f, "12.1");
    char pid[16];

    snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    put(f->dir, "top/boxes/12.1/cgroup.procs", pid);
    assert_int_equal(OPS->signal(f->ctx, box, 0), 1);
    assert_int_equal(OPS->kill(f->ctx, box), 1);
    assert_string_equal(get(f->dir, "top/boxes/12.1/cgroup.kill"), "1");
    assert_int_equal(OPS->release(f->ctx, box), -EBUSY);
    put(f->dir, "top/boxes/12.1/cgroup.procs", "");
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void usage_of_version_2_is_read_in_nanoseconds_and_bytes(void **state)
{
    struct fixture *f = *state;
    void *box = plain_box(f, "12.1");
    struct cw_box_usage u = {.size = sizeof(u)};

    put(f->dir, "top/boxes/12.1/cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\n");
    put(f->dir, "top/boxes/12.1/memory.peak", "4096\n");
    put(f->dir, "top/boxes/12.1/memory.events", "low 0\noom 2\noom_kill 1\n");
    put(f->dir, "top/boxes/12.1/memory.current", "3000\n");
    put(f->dir, "top/boxes/12.1/memory.stat", "anon 1000\nfile 1500\nshmem 500\n");
    assert_int_equal(OPS->usage(f->ctx, box, &u), 0);
    assert_int_equal(u.mem_now_bytes, 3000);
    assert_int_equal(u.mem_anon_bytes, 1500);
    assert_int_equal(u.cpu_user_ns, 20000);
    assert_int_equal(u.cpu_sys_ns, 10000);
    assert_int_equal(u.mem_peak_bytes, 4096);
    assert_int_equal(u.oom_kills, 1);
    assert_string_equal(u.source, "cgroup2");
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void a_left_over_group_of_the_same_key_is_replaced(void **state)
{
    struct fixture *f = *state;
    void *box = plain_box(f, "12.1");
    char path[128];

    assert_int_equal(OPS->release(f->ctx, box), 0);
    snprintf(path, sizeof(path), "%s/top/boxes/12.1", f->dir);
    assert_int_equal(mkdir(path, 0755), 0);
    box = plain_box(f, "12.1");
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void a_key_that_leaves_the_base_is_refused(void **state)
{
    struct fixture *f = *state;
    struct cw_plugin_err err = {{0}};
    void *box = NULL;

    assert_int_equal(prepare(f->ctx, "../12.1", &box, &err), -EINVAL);
    assert_string_equal(err.text, "'../12.1' cannot be a group's name");
    assert_int_equal(OPS->reclaim(f->ctx, "a/b", &err), -EINVAL);
}

static void probe_names_the_controller_that_is_missing(void **state)
{
    struct fixture *f = *state;
    struct cw_plugin_err err = {{0}};

    put(f->dir, "cgroup.controllers", "cpuset pids\n");
    assert_int_equal(OPS->probe(f->ctx, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "/top/boxes has no controller memory for us"));
}

static void a_bad_option_is_refused_with_what_is_allowed(void **state)
{
    struct cw_plugin_err err = {{0}};
    void *ctx;

    (void)state;
    opt_root = opt_base = "";
    opt_version = "3";
    opt_require = "memory";
    assert_int_equal(cw_plugin.open(&host, &ctx, &err), -EINVAL);
    assert_string_equal(err.text, "option 'version': '3', allowed: auto, 1, 2");
    opt_version = "auto";
    opt_require = "memory,disk";
    assert_int_equal(cw_plugin.open(&host, &ctx, &err), -EINVAL);
    assert_string_equal(err.text, "option 'require': 'memory,disk', allowed: freezer, cpuacct, "
                                  "memory, pids, cpuset");
}

/* ---- real groups --------------------------------------------------------------------------------
 */

/* NULL: usable. Otherwise why not. */
static const char *real_refusal(struct fixture *f)
{
    static struct cw_plugin_err err;

    if (geteuid() != 0)
        return "not root";
    return OPS->probe(f->ctx, &err) < 0 ? err.text : NULL;
}

static void skip_unless_real(struct fixture *f)
{
    const char *why = real_refusal(f);

    if (why != NULL) {
        print_message("skipped: no writable control groups: %s\n", why);
        skip();
    }
}

static int setup_real(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    open_plugin(f, "", "", "auto", "memory,pids,cpuset");
    *state = f;
    return 0;
}

static int setup_real_v2(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    open_plugin(f, "", "", "2", "");
    *state = f;
    return 0;
}

static void *real_box(struct fixture *f, const char *key)
{
    struct cw_plugin_err err = {{0}};
    void *box = NULL;
    int r = prepare(f->ctx, key, &box, &err);

    if (r < 0)
        print_message("prepare: %s\n", err.text);
    assert_int_equal(r, 0);
    return box;
}

/* Runs fn in the box; its result is the exit code. Returns when the child has entered. */
static pid_t spawn(struct fixture *f, void *box, int (*fn)(void))
{
    int fds[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int r = OPS->enter(f->ctx, box);
        if (r < 0)
            _exit(200);
        close(fds[0]);
        if (write(fds[1], "x", 1) != 1)
            _exit(201);
        close(fds[1]);
        _exit(fn());
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    close(fds[0]);
    return pid;
}

static int wait_status(pid_t pid)
{
    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int fn_pause(void)
{
    for (;;)
        pause();
    return 0;
}

static int fn_nothing(void)
{
    return 0;
}

static int fn_escape(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            clearenv();
            fn_pause();
        }
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}

static int fn_fork_bomb(void)
{
    for (;;)
        if (fork() < 0 && errno != EAGAIN)
            return 1;
    return 0;
}

static int fn_fork_until_refused(void)
{
    int n = 0;

    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            fn_pause();
        if (pid < 0)
            return n;
        n++;
    }
}

static int fn_eat_memory(void)
{
    for (size_t n = 0; n < 256; n++) {
        char *p = malloc(MIB);
        if (p == NULL)
            return 1;
        memset(p, 1, MIB);
        __asm__ volatile("" : : "r"(p) : "memory");
    }
    return 0;
}

static int fn_count_cpus(void)
{
    cpu_set_t all, got;

    memset(&all, 0xff, sizeof(all));
    sched_setaffinity(0, sizeof(all), &all);
    sched_getaffinity(0, sizeof(got), &got);
    return CPU_COUNT(&got);
}

static int fn_burn(void)
{
    clock_t end = clock() + CLOCKS_PER_SEC / 20;

    while (clock() < end)
        ;
    return 0;
}

static void kill_reaches_a_process_that_left_session_parent_and_environment(void **state)
{
    struct fixture *f = *state;
    void *box;

    skip_unless_real(f);
    box = real_box(f, "12.1");
    assert_int_equal(wait_status(spawn(f, box, fn_escape)), 0);
    assert_int_equal(OPS->signal(f->ctx, box, 0), 1);
    assert_int_equal(OPS->release(f->ctx, box), -EBUSY);
    assert_int_equal(OPS->kill(f->ctx, box), 1);
    assert_int_equal(OPS->signal(f->ctx, box, 0), 0);
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void kill_ends_a_fork_bomb(void **state)
{
    static const struct cw_plan_line lines[] = {{.kind = CW_PLAN_LIMIT, .a = "pids", .n1 = 64}};
    struct fixture *f = *state;
    void *box;
    pid_t pid;

    skip_unless_real(f);
    set_plan(lines, 1);
    box = real_box(f, "12.1");
    pid = spawn(f, box, fn_fork_bomb);
    poll(NULL, 0, 30);
    assert_true(OPS->kill(f->ctx, box) > 0);
    assert_int_equal(WTERMSIG(wait_status(pid)), SIGKILL);
    for (int i = 0; i < 1000 && OPS->signal(f->ctx, box, 0) > 0; i++)
        poll(NULL, 0, 5);
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void the_limit_of_processes_holds(void **state)
{
    static const struct cw_plan_line lines[] = {{.kind = CW_PLAN_LIMIT, .a = "pids", .n1 = 10}};
    struct fixture *f = *state;
    void *box;
    int status;

    skip_unless_real(f);
    set_plan(lines, 1);
    box = real_box(f, "12.1");
    status = wait_status(spawn(f, box, fn_fork_until_refused));
    assert_int_equal(WEXITSTATUS(status), 9);
    assert_int_equal(OPS->kill(f->ctx, box), 9);
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void the_limit_of_memory_kills_and_is_counted(void **state)
{
    static const struct cw_plan_line lines[] = {
        {.kind = CW_PLAN_LIMIT, .a = "memory", .n1 = 16 * MIB}};
    struct fixture *f = *state;
    struct cw_box_usage u = {.size = sizeof(u)};
    void *box;
    int status;

    skip_unless_real(f);
    set_plan(lines, 1);
    box = real_box(f, "12.1");
    status = wait_status(spawn(f, box, fn_eat_memory));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(OPS->usage(f->ctx, box, &u), 0);
    assert_true(u.oom_kills >= 1);
    assert_true(u.mem_peak_bytes > 8 * MIB && u.mem_peak_bytes <= 16 * MIB);
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void a_task_cannot_widen_its_cpus(void **state)
{
    static const struct cw_plan_line lines[] = {{.kind = CW_PLAN_CPUS, .a = "0", .b = "0"}};
    struct fixture *f = *state;
    void *box;
    int status;

    skip_unless_real(f);
    set_plan(lines, 1);
    box = real_box(f, "12.1");
    status = wait_status(spawn(f, box, fn_count_cpus));
    assert_int_equal(status, 1 << 8);
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void processor_time_of_the_whole_task_is_measured(void **state)
{
    struct fixture *f = *state;
    struct cw_box_usage u = {.size = sizeof(u)};
    void *box;

    skip_unless_real(f);
    box = real_box(f, "12.1");
    assert_int_equal(wait_status(spawn(f, box, fn_burn)), 0);
    assert_int_equal(OPS->usage(f->ctx, box, &u), 0);
    assert_true(u.cpu_user_ns + u.cpu_sys_ns >= 40000000);
    assert_true(u.cpu_user_ns + u.cpu_sys_ns < 2000000000);
    assert_int_equal(strncmp(u.source, "cgroup", 6), 0);
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void signal_reaches_the_task(void **state)
{
    struct fixture *f = *state;
    void *box;
    pid_t pid;

    skip_unless_real(f);
    box = real_box(f, "12.1");
    pid = spawn(f, box, fn_pause);
    assert_int_equal(OPS->signal(f->ctx, box, SIGTERM), 1);
    assert_int_equal(WTERMSIG(wait_status(pid)), SIGTERM);
    assert_int_equal(OPS->release(f->ctx, box), 0);
}

static void reclaim_by_key_kills_what_a_crashed_shepherd_left(void **state)
{
    struct fixture *f = *state, other = {0};
    struct cw_plugin_err err = {{0}};
    void *box;
    pid_t pid;

    skip_unless_real(f);
    box = real_box(f, "12.1");
    pid = spawn(f, box, fn_pause);
    open_plugin(&other, opt_root, opt_base, opt_version, opt_require);
    assert_int_equal(OPS->reclaim(other.ctx, "12.1", &err), 0);
    assert_int_equal(WTERMSIG(wait_status(pid)), SIGKILL);
    assert_int_equal(OPS->reclaim(other.ctx, "12.1", &err), 0);
    cw_plugin.close(other.ctx);
    assert_int_equal(OPS->release(f->ctx, box), 0); /* tolerates that all is gone */
}

static void a_base_that_another_instance_swept_away_is_made_again(void **state)
{
    struct fixture *f = *state, other = {0};
    struct cw_plugin_err err = {{0}};
    void *box;

    skip_unless_real(f);
    snprintf(node_dir, sizeof(node_dir), "/test/other/%d", (int)getpid());
    assert_int_equal(cw_plugin.open(&host, &other.ctx, &err), 0);
    assert_int_equal(OPS->probe(other.ctx, &err), 0); /* sweeps: ours is empty */
    box = real_box(f, "12.1");
    assert_int_equal(OPS->release(f->ctx, box), 0);
    cw_plugin.close(other.ctx);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Prints the figure; the bound is only wide enough to catch a wait that should not be there. */
static void a_box_costs_less_than_ten_milliseconds(void **state)
{
    enum { N = 200 };
    static const struct cw_plan_line lines[] = {
        {.kind = CW_PLAN_LIMIT, .a = "memory", .n1 = 64 * MIB},
        {.kind = CW_PLAN_CPUS, .a = "0", .b = "0"},
    };
    struct fixture *f = *state;
    struct cw_box_usage u = {.size = sizeof(u)};
    double made = 0, ended = 0;

    skip_unless_real(f);
    set_plan(lines, 2);
    for (int i = 0; i < N; i++) {
        double start = now_us(), at;
        void *box = real_box(f, "12.1");
        made += now_us() - start;
        wait_status(spawn(f, box, fn_nothing));
        at = now_us();
        assert_int_equal(OPS->kill(f->ctx, box), 0);
        assert_int_equal(OPS->usage(f->ctx, box, &u), 0);
        assert_int_equal(OPS->release(f->ctx, box), 0);
        ended += now_us() - at;
    }
    print_message("a box: prepare %.0f us, kill + usage + release %.0f us\n", made / N, ended / N);
    assert_true((made + ended) / N < 10000);
}

#define PLAIN(test) cmocka_unit_test_setup_teardown(test, setup_plain, teardown)
#define REAL(test)  cmocka_unit_test_setup_teardown(test, setup_real, teardown)
#define REAL_V2(test)                                                                              \
    {                                                                                              \
#test " (version 2)", test, setup_real_v2, teardown, NULL                                  \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mounts_of_a_hybrid_machine_are_told_apart),
        cmocka_unit_test(our_own_group_is_found_relative_to_what_the_mount_shows),
        cmocka_unit_test(a_list_lies_within_another_only_with_all_its_numbers),
        PLAIN(limits_reach_the_files_of_version_2),
        PLAIN(a_box_without_limits_writes_none),
        PLAIN(processors_of_a_synthetic_topology_leave_the_cpuset_unset),
        PLAIN(kill_of_version_2_is_one_write_and_release_stays_busy),
        PLAIN(usage_of_version_2_is_read_in_nanoseconds_and_bytes),
        PLAIN(a_left_over_group_of_the_same_key_is_replaced),
        PLAIN(a_key_that_leaves_the_base_is_refused),
        PLAIN(probe_names_the_controller_that_is_missing),
        cmocka_unit_test(a_bad_option_is_refused_with_what_is_allowed),
        REAL(kill_reaches_a_process_that_left_session_parent_and_environment),
        REAL(kill_ends_a_fork_bomb),
        REAL(the_limit_of_processes_holds),
        REAL(the_limit_of_memory_kills_and_is_counted),
        REAL(a_task_cannot_widen_its_cpus),
        REAL(processor_time_of_the_whole_task_is_measured),
        REAL(signal_reaches_the_task),
        REAL(reclaim_by_key_kills_what_a_crashed_shepherd_left),
        REAL(a_base_that_another_instance_swept_away_is_made_again),
        REAL(a_box_costs_less_than_ten_milliseconds),
        REAL_V2(kill_reaches_a_process_that_left_session_parent_and_environment),
        REAL_V2(processor_time_of_the_whole_task_is_measured),
        REAL_V2(signal_reaches_the_task),
        REAL_V2(reclaim_by_key_kills_what_a_crashed_shepherd_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
