/* Allocatable memory from a made-up /proc and cgroup tree. */
#include "config.h"

#include "topo/topomem.h"
#include "base/file.h"
#include "base/mem.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MEMINFO  "MemTotal:        8388608 kB\nMemFree: 1 kB\n"
#define GIB      (UINT64_C(1) << 30)
#define V1_MOUNT "35 31 0:32 / /cg/memory rw,relatime shared:7 - cgroup cgroup rw,memory\n"
#define V2_MOUNT "41 31 0:38 / /cg/unified rw,relatime - cgroup2 cgroup2 rw\n"

static char root[64];

static int setup(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "topomem-XXXXXX");
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text)
{
    cw_autofree char *full = cw_xasprintf("%s/%s", root, path);
    cw_autofree char *dir = cw_xstrdup(full);
    *strrchr(dir, '/') = '\0';
    assert_int_equal(cw_file_mkdirs(dir, 0755, NULL), 0);
    assert_int_equal(cw_file_write_atomic(full, text, strlen(text), 0644, NULL), 0);
}

static uint64_t read_mem(void)
{
    uint64_t bytes = 0;
    struct cw_error err;
    if (cw_topomem_read(root, &bytes, &err) < 0)
        fail_msg("%s", err.text);
    return bytes;
}

static void without_cgroups_it_is_mem_total(void **state)
{
    (void)state;
    put("proc/meminfo", MEMINFO);
    assert_int_equal(read_mem(), 8 * GIB);
}

static void a_v1_limit_above_us_counts(void **state)
{
    (void)state;
    put("proc/meminfo", MEMINFO);
    put("proc/self/mountinfo", "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu\n" V1_MOUNT);
    put("proc/self/cgroup", "5:cpu:/other\n4:memory:/a/b\n0::/\n");
    put("cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("cg/memory/a/memory.limit_in_bytes", "1073741824\n");
    put("cg/memory/a/b/memory.limit_in_bytes", "2147483648\n");
    assert_int_equal(read_mem(), GIB);
}

static void a_v2_limit_of_our_own_cgroup_counts(void **state)
{
    (void)state;
    put("proc/meminfo", MEMINFO);
    put("proc/self/mountinfo", V2_MOUNT);
    put("proc/self/cgroup", "0::/slice/unit\n");
    put("cg/unified/slice/memory.max", "max\n");
    put("cg/unified/slice/unit/memory.max", "3221225472\n");
    assert_int_equal(read_mem(), 3 * GIB);
}

static void a_limit_beside_our_path_does_not_count(void **state)
{
    (void)state;
    put("proc/meminfo", MEMINFO);
    put("proc/self/mountinfo", V2_MOUNT);
    put("proc/self/cgroup", "0::/slice\n");
    put("cg/unified/slice/unit/memory.max", "4096\n");
    put("cg/unified/memory.max", "max\n");
    assert_int_equal(read_mem(), 8 * GIB);
}

static void a_container_sees_the_limit_of_its_mount_root(void **state)
{
    (void)state;
    put("proc/meminfo", MEMINFO);
    put("proc/self/mountinfo",
        "35 31 0:32 /docker/abc /cg/memory ro - cgroup cgroup rw,memory,cpu\n");
    put("proc/self/cgroup", "4:cpu,memory:/docker/abc/x\n");
    put("cg/memory/memory.limit_in_bytes", "536870912\n");
    assert_int_equal(read_mem(), GIB / 2);
}

static void a_path_outside_of_the_namespace_falls_back_to_the_mount(void **state)
{
    (void)state;
    put("proc/meminfo", MEMINFO);
    put("proc/self/mountinfo", V2_MOUNT);
    put("proc/self/cgroup", "0::/../other\n");
    put("cg/unified/memory.max", "1073741824\n");
    assert_int_equal(read_mem(), GIB);
}

static void a_limit_above_mem_total_changes_nothing(void **state)
{
    (void)state;
    put("proc/meminfo", MEMINFO);
    put("proc/self/mountinfo", V2_MOUNT);
    put("proc/self/cgroup", "0::/\n");
    put("cg/unified/memory.max", "99999999999999\n");
    assert_int_equal(read_mem(), 8 * GIB);
}

static void a_meminfo_without_total_is_an_error_that_names_it(void **state)
{
    (void)state;
    struct cw_error err;
    uint64_t bytes = 7;
    put("proc/meminfo", "nothing\n");
    assert_int_equal(cw_topomem_read(root, &bytes, &err), -EINVAL);
    assert_non_null(strstr(err.text, "meminfo: no MemTotal line"));
    assert_int_equal(bytes, 7);
}

static void this_machine_has_memory(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    assert_int_equal(cw_topomem_read("", &bytes, NULL), 0);
    assert_true(bytes > 0);
    assert_true(bytes <= (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(without_cgroups_it_is_mem_total),
        T(a_v1_limit_above_us_counts),
        T(a_v2_limit_of_our_own_cgroup_counts),
        T(a_limit_beside_our_path_does_not_count),
        T(a_container_sees_the_limit_of_its_mount_root),
        T(a_path_outside_of_the_namespace_falls_back_to_the_mount),
        T(a_limit_above_mem_total_changes_nothing),
        T(a_meminfo_without_total_is_an_error_that_names_it),
        T(this_machine_has_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
