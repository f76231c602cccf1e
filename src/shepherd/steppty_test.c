/* A pair of terminal descriptors. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "shepherd/steppty.h"

static void the_slave_is_a_terminal_of_the_user_with_the_size_asked_for(void **state)
{
    (void)state;
    int master, slave;
    struct winsize w;
    struct stat st;
    uid_t uid = geteuid() == 0 ? 65534 : geteuid();
    assert_int_equal(cw_steppty_open(uid, geteuid() == 0, 24, 80, &master, &slave, NULL), 0);
    assert_true(isatty(slave));
    assert_int_equal(fstat(slave, &st), 0);
    assert_int_equal(st.st_uid, uid);
    assert_int_equal(ioctl(slave, TIOCGWINSZ, &w), 0);
    assert_true(w.ws_row == 24 && w.ws_col == 80);
    assert_int_equal(cw_steppty_window(master, 50, 4000000000u), 0);
    assert_int_equal(ioctl(slave, TIOCGWINSZ, &w), 0);
    assert_true(w.ws_row == 50 && w.ws_col == 10000);
    assert_true((fcntl(master, F_GETFD) & FD_CLOEXEC) && (fcntl(slave, F_GETFD) & FD_CLOEXEC));
    close(master);
    close(slave);
}

static void nothing_written_is_lost_when_the_slave_closes(void **state)
{
    (void)state;
    int master, slave;
    char buf[64];
    assert_int_equal(cw_steppty_open(geteuid(), false, 0, 0, &master, &slave, NULL), 0);
    assert_int_equal(write(slave, "last\n", 5), 5);
    close(slave);
    assert_int_equal(read(master, buf, sizeof buf), 6);
    assert_memory_equal(buf, "last\r\n", 6);
    assert_int_equal(read(master, buf, sizeof buf), -1); /* EIO: that was all */
    close(master);
}

static void a_pipe_has_no_window(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe(p), 0);
    assert_true(cw_steppty_window(p[0], 1, 1) < 0);
    close(p[0]);
    close(p[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slave_is_a_terminal_of_the_user_with_the_size_asked_for),
        cmocka_unit_test(nothing_written_is_lost_when_the_slave_closes),
        cmocka_unit_test(a_pipe_has_no_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
