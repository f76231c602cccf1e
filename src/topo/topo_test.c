/* Inventory of described machines, and binding on this one. */
#include "config.h"

#include "topo/topo.h"
#include "base/file.h"
#include "base/mem.h"
#include "topo/topomem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct cw_topo *open_or_fail(const char *synthetic)
{
    struct cw_topo *t = NULL;
    struct cw_error err;
    if (cw_topo_open(synthetic, &t, &err) < 0)
        fail_msg("%s", err.text);
    return t;
}

static struct cw_idset set_of(const char *text)
{
    struct cw_idset s = { 0 };
    assert_int_equal(cw_idset_parse(text, strlen(text), UINT64_MAX, &s, NULL), 0);
    return s;
}

static void check_set(struct cw_idset *s, const char *want)
{
    cw_autobuf struct cw_buf text = { 0 };
    cw_idset_format(s, &text);
    assert_string_equal(cw_buf_str(&text), want);
    cw_idset_fini(s);
}

static void a_machine_of_two_packages_has_its_shape(void **state)
{
    (void)state;
    struct cw_topo *t = open_or_fail("pack:2 numa:2 core:32 pu:2");
    uint32_t n;
    const struct cw_topo_core *c = cw_topo_cores(t, &n);
    assert_int_equal(n, 128);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(c[i].logical, i);
        assert_int_equal(c[i].package, i / 64);
        assert_int_equal(c[i].numa, i / 32);
        assert_int_equal(c[i].l3, i / 32); /* no L3 described: one per NUMA node */
        assert_int_equal(c[i].n_pus, 2);
        assert_int_equal(c[i].pus[0], 2 * i);
        assert_int_equal(c[i].pus[1], 2 * i + 1);
    }
    cw_topo_close(t);
}

static void l3_caches_are_numbered_across_the_machine(void **state)
{
    (void)state;
    struct cw_topo *t = open_or_fail("pack:2 [numa] l3:4 core:8 pu:2");
    uint32_t n;
    const struct cw_topo_core *c = cw_topo_cores(t, &n);
    assert_int_equal(n, 64);
    assert_int_equal(c[63].l3, 7);
    assert_int_equal(c[63].numa, 1);
    assert_int_equal(c[8].l3, 1);
    cw_topo_close(t);
}

static void a_machine_of_one_core_has_one(void **state)
{
    (void)state;
    struct cw_topo *t = open_or_fail("core:1 pu:1");
    uint32_t n;
    const struct cw_topo_core *c = cw_topo_cores(t, &n);
    assert_int_equal(n, 1);
    assert_int_equal(c[0].pus[0], 0);
    assert_int_equal(c[0].numa + c[0].package, 0);
    cw_topo_close(t);
}

static void a_machine_without_cores_offers_its_processors(void **state)
{
    (void)state;
    struct cw_topo *t = open_or_fail("numa:2 pu:3");
    uint32_t n;
    const struct cw_topo_core *c = cw_topo_cores(t, &n);
    assert_int_equal(n, 6);
    assert_int_equal(c[5].pus[0], 5);
    assert_int_equal(c[5].numa, 1);
    cw_topo_close(t);
}

static void processors_numbered_by_thread_are_kept_per_core(void **state)
{
    (void)state;
    struct cw_topo *t = open_or_fail("pack:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)");
    struct cw_idset cores = set_of("1,3"), cpus = { 0 };
    cw_topo_cpus_of(t, &cores, &cpus);
    check_set(&cpus, "1,3,5,7");
    cw_idset_fini(&cores);
    cw_topo_close(t);
}

static void memory_is_what_a_description_names(void **state)
{
    (void)state;
    struct cw_topo *t = open_or_fail("pack:2 [numa(memory=4294967296)] core:2 pu:1");
    assert_true(cw_topo_mem_bytes(t) == 2 * 4294967296ULL);
    cw_topo_close(t);
}

static void memory_that_is_not_named_is_that_of_this_machine(void **state)
{
    (void)state;
    uint64_t here = 0;
    struct cw_topo *t = open_or_fail("pack:2 numa:2 core:32 pu:2");
    assert_int_equal(cw_topomem_read("", &here, NULL), 0);
    assert_int_equal(cw_topo_mem_bytes(t), here);
    cw_topo_close(t);
}

static void memory_nodes_are_those_that_hold_the_cpus(void **state)
{
    (void)state;
    struct cw_topo *t = open_or_fail("pack:2 numa:2 core:2 pu:2");
    struct cw_idset cpus = set_of("3,4,12-18446744073709551615"), nodes = { 0 };
    cw_topo_mems_of(t, &cpus, &nodes);
    check_set(&nodes, "0-1,3");
    cw_idset_fini(&cpus);
    cw_topo_close(t);
}

static void equal_hardware_has_equal_hashes_and_other_hardware_another(void **state)
{
    (void)state;
    struct cw_topo *a = open_or_fail("pack:2 core:4 pu:2"), *b = open_or_fail("pack:2 core:4 pu:2"),
                   *c = open_or_fail("pack:2 core:4 pu:1");
    assert_string_equal(cw_topo_hash(a), cw_topo_hash(b));
    assert_string_not_equal(cw_topo_hash(a), cw_topo_hash(c));
    assert_int_equal(strlen(cw_topo_hash(a)), 16);
    cw_topo_close(a), cw_topo_close(b), cw_topo_close(c);
    cw_topo_close(NULL);
}

static void the_environment_describes_the_machine(void **state)
{
    (void)state;
    setenv("HWLOC_SYNTHETIC", "pack:3 core:5 pu:1", 1);
    struct cw_topo *t = open_or_fail(NULL);
    uint32_t n;
    cw_topo_cores(t, &n);
    assert_int_equal(n, 15);
    assert_false(cw_topo_is_this_system(t));
    cw_topo_close(t);
    unsetenv("HWLOC_SYNTHETIC");
}

static const struct {
    const char *synthetic, *env, *value, *text;
} refusals[] = {
    { "pack:x", NULL, NULL, "topology: \"pack:x\": not an hwloc synthetic description" },
    { "nonsense", NULL, NULL, "not an hwloc synthetic description" },
    { NULL, "HWLOC_SYNTHETIC", "pack:0 pu:1",
      "\"pack:0 pu:1\": not an hwloc synthetic description" },
    { NULL, "HWLOC_XMLFILE", "/nowhere/x.xml",
      "HWLOC_XMLFILE=/nowhere/x.xml: hwloc cannot use it" },
};

static void a_bad_description_is_refused_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(refusals); i++) {
        struct cw_topo *t = NULL;
        struct cw_error err = { 0 };
        if (refusals[i].env != NULL)
            setenv(refusals[i].env, refusals[i].value, 1);
        int rc = cw_topo_open(refusals[i].synthetic, &t, &err);
        if (refusals[i].env != NULL)
            unsetenv(refusals[i].env);
        assert_int_equal(rc, -EINVAL);
        assert_null(t);
        if (strstr(err.text, refusals[i].text) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", refusals[i].text, err.text);
    }
}

/* ---- binding --------------------------------------------------------------------------------- */

static void a_described_machine_never_binds_and_says_so(void **state)
{
    (void)state;
    struct cw_topo *t = open_or_fail("pack:2 core:2 pu:1");
    struct cw_idset cpus = set_of("0");
    struct cw_error err;
    assert_int_equal(cw_topo_bind(t, 0, &cpus, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "not this machine's"));
    cw_idset_fini(&cpus);
    cw_topo_close(t);
}

static void processors_that_are_not_there_are_refused(void **state)
{
    (void)state;
    static const char *const sets[] = { "", "0,999999", "18446744073709551615" };
    struct cw_topo *t = open_or_fail(NULL);
    for (size_t i = 0; i < CW_ARRAY_LEN(sets); i++) {
        struct cw_idset cpus = set_of(sets[i]);
        assert_int_equal(cw_topo_bind(t, 0, &cpus, NULL), -EINVAL);
        cw_idset_fini(&cpus);
    }
    cw_topo_close(t);
}

static pid_t start_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void the_kernel_has_the_set_that_was_bound(void **state)
{
    (void)state;
    struct cw_topo *t = open_or_fail(NULL);
    uint32_t n;
    const struct cw_topo_core *c = cw_topo_cores(t, &n);
    struct cw_idset cores = { 0 }, cpus = { 0 };
    struct cw_error err;
    cpu_set_t want, got;
    pid_t pid = start_child();
    cw_idset_add(&cores, c[n - 1].logical, c[n - 1].logical);
    cw_topo_cpus_of(t, &cores, &cpus);
    int rc = cw_topo_bind(t, pid, &cpus, &err);
    assert_int_equal(sched_getaffinity(pid, sizeof(got), &got), 0);
    end_child(pid);
    if (rc < 0)
        fail_msg("%s", err.text);
    assert_int_equal(cw_topo_cpuset(&cpus, &want, NULL), 0);
    assert_true(CPU_EQUAL(&want, &got));
    cw_idset_fini(&cores), cw_idset_fini(&cpus);
    cw_topo_close(t);
}

/* What a shell command prints in its first line; false when it fails. */
static bool ask_shell(const char *command, char *out, size_t cap)
{
    const char *argv[] = { "sh", "-c", command, NULL };
    posix_spawn_file_actions_t actions;
    int p[2], status = -1;
    pid_t pid;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, p[1], STDOUT_FILENO);
    int rc = posix_spawnp(&pid, "sh", &actions, NULL, (char **)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(p[1]);
    assert_int_equal(rc, 0);
    cw_autobuf struct cw_buf text = { 0 };
    assert_int_equal(cw_file_read_fd(p[0], command, 4096, &text, NULL), 0);
    close(p[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    snprintf(out, cap, "%.*s", (int)strcspn(cw_buf_str(&text), "\n"), cw_buf_str(&text));
    return status == 0;
}

/* What hwloc's own tools say of the process, as an id set. */
static bool ask_hwloc_tools(pid_t pid, char *out, size_t cap)
{
    char command[160];
    snprintf(command, sizeof(command), "hwloc-calc -q --po -I pu \"$(hwloc-bind --get --pid %ld)\"",
             (long)pid);
    return ask_shell(command, out, cap);
}

static void hwloc_bind_agrees_with_what_was_bound(void **state)
{
    (void)state;
    char where[512];
    if (!ask_shell("command -v hwloc-bind && command -v hwloc-calc", where, sizeof(where))) {
        print_message("# hwloc-bind is not installed\n");
        skip();
    }
    struct cw_topo *t = open_or_fail(NULL);
    uint32_t n;
    const struct cw_topo_core *c = cw_topo_cores(t, &n);
    for (uint32_t i = 0; i < n && i < 4; i++) {
        char got[256], want[16];
        struct cw_idset cpus = { 0 };
        struct cw_error err = { 0 };
        pid_t pid = start_child();
        cw_idset_add(&cpus, c[i].pus[0], c[i].pus[0]);
        int rc = cw_topo_bind(t, pid, &cpus, &err);
        bool asked = rc == 0 && ask_hwloc_tools(pid, got, sizeof(got));
        end_child(pid);
        cw_idset_fini(&cpus);
        if (!asked)
            fail_msg("bind: %d %s", rc, err.text);
        snprintf(want, sizeof(want), "%u", c[i].pus[0]);
        assert_string_equal(got, want);
    }
    cw_topo_close(t);
}

/* ---- a cpuset that allows processor 0 only ---- */

#define CPUSET_ROOT "/sys/fs/cgroup/cpuset" /* v1, where root may make one */

static bool write_text(const char *where, const char *name, const char *text)
{
    cw_autofree char *path = cw_xasprintf("%s/%s", where, name);
    cw_autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* In a child inside the cpuset: 0 when all is as it must be, else the number of the failed step. */
static int look_from_inside(void)
{
    struct cw_topo *t;
    uint32_t n;
    struct cw_idset both = { 0 };
    struct cw_error err;
    if (cw_topo_open(NULL, &t, &err) < 0)
        return 1;
    const struct cw_topo_core *c = cw_topo_cores(t, &n);
    if (n != 1 || c[0].n_pus != 1 || c[0].pus[0] != 0)
        return 2;
    cw_idset_add(&both, 0, 1);
    if (cw_topo_bind(t, 0, &both, &err) != -EXDEV || strstr(err.text, "allows fewer") == NULL)
        return 3;
    cw_idset_fini(&both);
    cw_topo_close(t);
    return 0;
}

static void a_cpuset_hides_processors_and_a_cut_binding_is_an_error(void **state)
{
    (void)state;
    char where[96];
    int status = -1;
    snprintf(where, sizeof(where), CPUSET_ROOT "/crun-topo-test-%ld", (long)getpid());
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || mkdir(where, 0700) < 0) {
        print_message("# needs two processors and the right to make a v1 cpuset\n");
        skip();
    }
    bool made = write_text(where, "cpuset.cpus", "0") && write_text(where, "cpuset.mems", "0");
    pid_t pid = made ? fork() : -1;
    if (pid == 0)
        _exit(write_text(where, "cgroup.procs", "0") ? look_from_inside() : 9);
    if (pid > 0)
        waitpid(pid, &status, 0);
    assert_int_equal(rmdir(where), 0);
    assert_true(made);
    assert_int_equal(status, 0);
}

static void binding_a_process_that_is_gone_names_it(void **state)
{
    (void)state;
    struct cw_topo *t = open_or_fail(NULL);
    uint32_t n;
    const struct cw_topo_core *c = cw_topo_cores(t, &n);
    struct cw_idset cpus = { 0 };
    struct cw_error err;
    char text[64];
    cw_idset_add(&cpus, c[0].pus[0], c[0].pus[0]);
    pid_t pid = start_child();
    end_child(pid);
    assert_true(cw_topo_bind(t, pid, &cpus, &err) < 0);
    snprintf(text, sizeof(text), "process %ld: bind to processors %u: ", (long)pid, c[0].pus[0]);
    assert_int_equal(strncmp(err.text, text, strlen(text)), 0);
    cw_idset_fini(&cpus);
    cw_topo_close(t);
}

static void a_cpu_number_above_the_words_is_refused(void **state)
{
    (void)state;
    cpu_set_t out;
    struct cw_error err;
    struct cw_idset big = set_of("1024"), all = set_of("0-1023"), none = { 0 };
    assert_int_equal(cw_topo_cpuset(&big, &out, &err), -ERANGE);
    assert_int_equal(cw_topo_cpuset(&none, &out, &err), -EINVAL);
    assert_int_equal(cw_topo_cpuset(&all, &out, &err), 0);
    assert_int_equal(CPU_COUNT(&out), 1024);
    cw_idset_fini(&big), cw_idset_fini(&all);
}

int main(void)
{
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_XMLFILE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_of_two_packages_has_its_shape),
        cmocka_unit_test(l3_caches_are_numbered_across_the_machine),
        cmocka_unit_test(a_machine_of_one_core_has_one),
        cmocka_unit_test(a_machine_without_cores_offers_its_processors),
        cmocka_unit_test(processors_numbered_by_thread_are_kept_per_core),
        cmocka_unit_test(memory_is_what_a_description_names),
        cmocka_unit_test(memory_that_is_not_named_is_that_of_this_machine),
        cmocka_unit_test(memory_nodes_are_those_that_hold_the_cpus),
        cmocka_unit_test(equal_hardware_has_equal_hashes_and_other_hardware_another),
        cmocka_unit_test(the_environment_describes_the_machine),
        cmocka_unit_test(a_bad_description_is_refused_and_named),
        cmocka_unit_test(a_described_machine_never_binds_and_says_so),
        cmocka_unit_test(processors_that_are_not_there_are_refused),
        cmocka_unit_test(the_kernel_has_the_set_that_was_bound),
        cmocka_unit_test(hwloc_bind_agrees_with_what_was_bound),
        cmocka_unit_test(a_cpuset_hides_processors_and_a_cut_binding_is_an_error),
        cmocka_unit_test(binding_a_process_that_is_gone_names_it),
        cmocka_unit_test(a_cpu_number_above_the_words_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
