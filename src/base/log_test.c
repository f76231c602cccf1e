/* Tests of log.c: the lines are read back through a pipe. */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char got[8192];

/* What one call writes to stderr. */
#define CAPTURE(call)                                                                              \
    do {                                                                                           \
        int pipe_fds[2], saved = dup(STDERR_FILENO);                                               \
        assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);                                           \
        dup2(pipe_fds[1], STDERR_FILENO);                                                          \
        close(pipe_fds[1]);                                                                        \
        call;                                                                                      \
        dup2(saved, STDERR_FILENO);                                                                \
        close(saved);                                                                              \
        ssize_t n_ = read(pipe_fds[0], got, sizeof(got) - 1);                                      \
        got[n_ > 0 ? n_ : 0] = '\0';                                                               \
        close(pipe_fds[0]);                                                                        \
    } while (0)

static void a_line_has_time_program_level_and_text(void **state)
{
    (void)state;
    cw_log_init("crunctld", CW_LOG_INFO);
    CAPTURE(cw_log_info("job %d: started", 12));
    /* 2026-11-30T20:47:52.123Z crunctld info  job 12: started */
    assert_int_equal(got[4], '-');
    assert_int_equal(got[10], 'T');
    assert_int_equal(got[19], '.');
    assert_string_equal(got + 23, "Z crunctld info  job 12: started\n");
}

static void lines_above_the_level_are_not_written(void **state)
{
    enum cw_log_level level = CW_LOG_ERROR;

    (void)state;
    assert_int_equal(cw_log_parse_level("warn", &level), 0);
    assert_int_equal(cw_log_parse_level("loud", &level), -EINVAL);
    assert_int_equal(level, CW_LOG_WARN);
    cw_log_set_level(level);
    CAPTURE(cw_log_info("quiet"); cw_log_debug("quieter"));
    assert_string_equal(got, "");
    CAPTURE(cw_log_error("loud"));
    assert_non_null(strstr(got, "error loud\n"));
}

static void hostile_text_cannot_make_a_second_line(void **state)
{
    (void)state;
    CAPTURE(cw_log_error("a\nb\rc\033d"));
    assert_non_null(strstr(got, " a?b?c?d\n"));
    assert_ptr_equal(strchr(got, '\n'), got + strlen(got) - 1);
}

static void a_long_line_is_cut_and_errno_survives(void **state)
{
    char text[6000];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    errno = ENOTDIR;
    CAPTURE(errno = ENOTDIR; cw_log_error("%s", text); assert_int_equal(errno, ENOTDIR));
    assert_true(strlen(got) < 2100);
    assert_string_equal(got + strlen(got) - 4, "...\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_time_program_level_and_text),
        cmocka_unit_test(lines_above_the_level_are_not_written),
        cmocka_unit_test(hostile_text_cannot_make_a_second_line),
        cmocka_unit_test(a_long_line_is_cut_and_errno_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
