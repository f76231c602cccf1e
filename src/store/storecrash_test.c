/* What survives: a killed writer, named crash points, a full disk, an error in the middle. */
#include "config.h"

#include "store/store.h"
#include "base/crashpoint.h"
#include "base/mem.h"
#include "store/storedir_test.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int setup(void **state)
{
    (void)state;
    return make_dir();
}

static int teardown(void **state)
{
    (void)state;
    return remove_dir();
}

static struct cw_store *open_or_fail(void)
{
    struct cw_store *s = NULL;
    struct cw_error err;
    if (cw_store_open(dir, CW_STORE_SYNC_FULL, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

/* Two rows in two tables, which must be there together or not at all. */
static int commit_pair(struct cw_store *s, uint64_t i, struct cw_error *err)
{
    uint8_t k[8];
    struct cw_batch *b = cw_batch_create();
    cw_store_key_u64(k, i);
    cw_batch_put(b, CW_TABLE_JOB, k, 8, "job", 3);
    cw_batch_put(b, CW_TABLE_EVENT, k, 8, "event", 5);
    int rc = cw_store_commit(s, b, err);
    cw_batch_destroy(b);
    return rc;
}

static bool has(struct cw_store *s, enum cw_table t, uint64_t i)
{
    uint8_t k[8];
    cw_autobuf struct cw_buf val = { 0 };
    cw_store_key_u64(k, i);
    return cw_store_get(s, t, k, 8, &val, NULL) == 1;
}

static void check_pairs(struct cw_store *s, uint64_t acknowledged)
{
    uint64_t jobs, events;
    for (uint64_t i = 0; i < acknowledged; i++)
        assert_true(has(s, CW_TABLE_JOB, i) && has(s, CW_TABLE_EVENT, i));
    assert_int_equal(cw_store_count(s, CW_TABLE_JOB, &jobs, NULL), 0);
    assert_int_equal(cw_store_count(s, CW_TABLE_EVENT, &events, NULL), 0);
    assert_int_equal(jobs, events);
    assert_true(jobs == acknowledged || jobs == acknowledged + 1);
}

/* Commits from `first` on and writes each number to fd after its commit. */
static void write_until_killed(int fd, uint64_t first)
{
    struct cw_store *s;
    if (cw_store_open(dir, CW_STORE_SYNC_FULL, &s, NULL) < 0)
        _exit(1);
    for (uint64_t i = first;; i++)
        if (commit_pair(s, i, NULL) < 0 || write(fd, &i, sizeof(i)) != (ssize_t)sizeof(i))
            _exit(2);
}

static void what_was_acknowledged_survives_kill_9_of_the_writer(void **state)
{
    (void)state;
    uint64_t acknowledged = 0;
    for (int round = 0; round < 5; round++) {
        int p[2];
        uint64_t i;
        assert_int_equal(pipe2(p, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0)
            write_until_killed(p[1], acknowledged);
        close(p[1]);
        for (int n = 0; n < 20 + round; n++) {
            assert_int_equal(read(p[0], &i, sizeof(i)), sizeof(i));
            acknowledged = i + 1;
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        while (read(p[0], &i, sizeof(i)) == (ssize_t)sizeof(i)) /* acknowledged before the kill */
            acknowledged = i + 1;
        close(p[0]);
        struct cw_store *s = open_or_fail();
        check_pairs(s, acknowledged);
        assert_int_equal(cw_store_checked(s)->damaged, 0);
        cw_store_close(s);
    }
}

static int commit_in_child_with_fault(const char *fault)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct cw_store *s;
        setenv("CRUN_FAULT", fault, 1);
        cw_crashpoint_init();
        if (cw_store_open(dir, CW_STORE_SYNC_FULL, &s, NULL) < 0)
            _exit(1);
        _exit(commit_pair(s, 0, NULL) < 0 ? 2 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static const struct {
    const char *fault;
    bool killed, stored;
} faults[] = {
    { "store.before-commit:kill", true, false },
    { "store.after-commit:kill", true, true },
    { "store.before-commit:fail=EIO", false, false },
};

static void crash_points_leave_the_whole_batch_or_nothing(void **state)
{
    (void)state;
#ifndef CW_FAULTINJECT
    print_message("# built with --disable-faultinject\n");
    skip();
#endif
    for (size_t i = 0; i < CW_ARRAY_LEN(faults); i++) {
        int status = commit_in_child_with_fault(faults[i].fault);
        if (faults[i].killed)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            assert_int_equal(WEXITSTATUS(status), 2);
        struct cw_store *s = open_or_fail();
        assert_int_equal(has(s, CW_TABLE_JOB, 0), faults[i].stored);
        assert_int_equal(has(s, CW_TABLE_EVENT, 0), faults[i].stored);
        struct cw_batch *b = cw_batch_create();
        uint8_t k[8] = { 0 };
        cw_batch_del(b, CW_TABLE_JOB, k, 8);
        cw_batch_del(b, CW_TABLE_EVENT, k, 8);
        assert_int_equal(cw_store_commit(s, b, NULL), 0);
        cw_batch_destroy(b);
        cw_store_close(s);
    }
}

/* ---- a full disk ----------------------------------------------------------------------------- */

static bool mount_small_disk(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    return mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m") == 0;
}

static void a_full_disk_refuses_the_commit_and_room_lets_it_pass(void **state)
{
    (void)state;
    if (!mount_small_disk()) {
        print_message("# needs the right to mount a tmpfs: %s\n", strerror(errno));
        skip();
    }
    struct cw_store *s = open_or_fail();
    struct cw_error err = { 0 };
    char ballast[80];
    assert_int_equal(commit_pair(s, 0, &err), 0);
    snprintf(ballast, sizeof(ballast), "%s/ballast", dir);
    int fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char block[4096] = { 0 };
    while (write(fd, block, sizeof(block)) > 0)
        ;
    close(fd);
    struct cw_batch *b = cw_batch_create();
    cw_autofree char *big = cw_xcalloc(1, 200000);
    cw_batch_put(b, CW_TABLE_PAYLOAD, "p", 1, big, 200000);
    cw_batch_put(b, CW_TABLE_META, "m", 1, "v", 1);
    size_t bytes = cw_batch_bytes(b);
    for (int i = 0; i < 3; i++) { /* again and again the same, and nothing of it is stored */
        cw_autobuf struct cw_buf val = { 0 };
        assert_int_equal(cw_store_commit(s, b, &err), -ENOSPC);
        assert_non_null(strstr(err.text, "the file system is full"));
        assert_non_null(strstr(err.text, dir));
        assert_int_equal(cw_store_get(s, CW_TABLE_META, "m", 1, &val, NULL), 0);
        assert_int_equal(cw_batch_bytes(b), bytes);
    }
    assert_true(has(s, CW_TABLE_JOB, 0)); /* reading goes on */
    assert_int_equal(unlink(ballast), 0);
    assert_int_equal(cw_store_commit(s, b, &err), 0);
    cw_batch_destroy(b);
    cw_store_close(s);
    s = open_or_fail();
    cw_autobuf struct cw_buf val = { 0 };
    assert_int_equal(cw_store_get(s, CW_TABLE_PAYLOAD, "p", 1, &val, NULL), 1);
    assert_int_equal(val.len, 200000);
    assert_true(has(s, CW_TABLE_EVENT, 0));
    cw_store_close(s);
    assert_int_equal(umount2(dir, MNT_DETACH), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_was_acknowledged_survives_kill_9_of_the_writer),
        T(crash_points_leave_the_whole_batch_or_nothing),
        T(a_full_disk_refuses_the_commit_and_room_lets_it_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
