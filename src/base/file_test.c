/* Tests of file.c, in a directory of their own. */
#include "config.h"

#include "base/file.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"

static int enter_directory(void **state)
{
    const char *base = getenv("TMPDIR");
    char *dir = cw_xasprintf("%s/cw-file-XXXXXX", base != NULL ? base : P_tmpdir);

    *state = dir;
    return mkdtemp(dir) != NULL && chdir(dir) == 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int leave_directory(void **state)
{
    cw_autofree char *dir = *state;
    int rc = chdir("/");

    return rc == 0 ? nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) : rc;
}

static void what_is_written_is_read_back(void **state)
{
    cw_autobuf struct cw_buf b = { 0 };
    struct stat st;

    (void)state;
    umask(077);
    assert_int_equal(cw_file_write_atomic("f", "abc\0def", 7, 0644, NULL), 0);
    assert_int_equal(cw_file_read("f", 7, &b, NULL), 0);
    assert_int_equal(b.len, 7);
    assert_memory_equal(b.data, "abc\0def", 7);
    assert_int_equal(stat("f", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(cw_file_write_atomic("f", "", 0, 0600, NULL), 0);
    assert_int_equal(cw_file_read("f", 7, &b, NULL), 0);
    assert_int_equal(b.len, 0);
}

static void a_file_larger_than_the_limit_is_refused(void **state)
{
    cw_autobuf struct cw_buf b = { 0 };
    struct cw_error err = { 0 };

    (void)state;
    cw_buf_add_str(&b, "kept");
    cw_file_write_atomic("f", "12345678", 8, 0600, NULL);
    assert_int_equal(cw_file_read("f", 7, &b, &err), -EFBIG);
    assert_string_equal(err.text, "read f: larger than 7 bytes");
    assert_string_equal(b.data, "kept");
    assert_int_equal(cw_file_read("/dev/zero", 100000, &b, NULL), -EFBIG);
}

static void errors_name_the_path(void **state)
{
    cw_autobuf struct cw_buf b = { 0 };
    struct cw_error err = { 0 };

    (void)state;
    assert_int_equal(cw_file_read("none", 7, &b, &err), -ENOENT);
    assert_string_equal(err.text, "open none: No such file or directory");
    assert_int_equal(cw_file_write_atomic("no/f", "x", 1, 0600, &err), -ENOENT);
    assert_non_null(strstr(err.text, "no/f"));
    mkdir("d", 0700);
    assert_true(cw_file_write_atomic("d", "x", 1, 0600, &err) < 0);
    glob_t left;
    assert_int_equal(glob("d.??????", 0, NULL, &left), GLOB_NOMATCH); /* no temporary file stays */
}

static void directories_are_made_down_to_the_last(void **state)
{
    struct cw_error err = { 0 };
    struct stat st;

    (void)state;
    umask(022);
    assert_int_equal(cw_file_mkdirs("a//b/c/", 0700, NULL), 0);
    assert_int_equal(stat("a/b/c", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    chmod("a", 0755);
    assert_int_equal(cw_file_mkdirs("a/b/c", 0700, NULL), 0);
    assert_int_equal(stat("a", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    cw_file_write_atomic("a/f", "", 0, 0600, NULL);
    assert_int_equal(cw_file_mkdirs("a/f/g", 0700, &err), -ENOTDIR);
    assert_string_equal(err.text, "make directory a/f: Not a directory");
    assert_int_equal(cw_file_mkdirs("", 0700, &err), -EINVAL);
    assert_int_equal(cw_file_mkdirs("/", 0700, &err), 0);
}

static void a_second_holder_is_refused_and_told_who(void **state)
{
    struct cw_error err = { 0 };
    int fd = -1, again = -1, status;

    (void)state;
    assert_int_equal(cw_file_lock("lock", &fd, NULL), 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    pid_t pid = fork();
    if (pid == 0) {
        cw_autofree char *want = cw_xasprintf("lock lock: in use by pid %ld", (long)getppid());
        int rc = cw_file_lock("lock", &again, &err);
        _exit(rc == -EBUSY && strcmp(err.text, want) == 0 && again == -1 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    /* A second descriptor of the same process counts too. */
    assert_int_equal(cw_file_lock("lock", &again, &err), -EBUSY);
    close(fd);
    assert_int_equal(cw_file_lock("lock", &fd, NULL), 0);
    close(fd);
}

static void a_link_is_not_followed_to_a_lock(void **state)
{
    int fd = -1;

    (void)state;
    assert_int_equal(symlink("elsewhere", "link"), 0);
    assert_int_equal(cw_file_lock("link", &fd, NULL), -ELOOP);
    assert_int_equal(access("elsewhere", F_OK), -1);
}

static void paths_are_joined(void **state)
{
    static const char *const cases[][3] = { { "a", "b", "a/b" },
                                            { "a/", "b", "a/b" },
                                            { "/", "b", "/b" },
                                            { "a", "/b", "/b" },
                                            { "", "b", "b" } };

    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        cw_autofree char *got = cw_file_join(cases[i][0], cases[i][1]);
        assert_string_equal(got, cases[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_file_larger_than_the_limit_is_refused),
        cmocka_unit_test(errors_name_the_path),
        cmocka_unit_test(directories_are_made_down_to_the_last),
        cmocka_unit_test(a_second_holder_is_refused_and_told_who),
        cmocka_unit_test(a_link_is_not_followed_to_a_lock),
        cmocka_unit_test(paths_are_joined),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
