/* Tests of mem.c. */
#include "config.h"

#include "base/mem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void copies_of_nothing_are_nothing(void **state)
{
    (void)state;
    assert_null(cw_xstrdup(NULL));
    assert_null(cw_xmemdup("x", 0));
}

static void a_bounded_copy_ends_at_the_bound_or_the_nul(void **state)
{
    (void)state;
    cw_autofree char *a = cw_xstrndup("hello", 3);
    cw_autofree char *b = cw_xstrndup("hello", 30);
    assert_string_equal(a, "hel");
    assert_string_equal(b, "hello");
}

static void an_overflowing_size_aborts(void **state)
{
    int status;

    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        void *volatile p = cw_xcalloc(SIZE_MAX / 2, 3);
        _exit(p != NULL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void what_is_stolen_is_not_freed(void **state)
{
    char *kept;

    (void)state;
    {
        cw_autofree char *p = cw_xstrdup("mine");
        kept = cw_steal(p);
        assert_null(p);
    }
    assert_string_equal(kept, "mine");
    free(kept);
}

static void a_descriptor_is_closed_at_the_end_of_its_scope(void **state)
{
    int fd;

    (void)state;
    {
        cw_autoclose int dir = open("/", O_RDONLY | O_CLOEXEC);
        cw_autoclose int none = -1;
        fd = dir;
        assert_true(none < 0);
    }
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void the_arena_gives_zeroed_aligned_memory_of_any_size(void **state)
{
    static const size_t sizes[] = { 0, 1, 15, 16, 17, 3999, 4000, 4001, 300000, 1 };
    struct cw_arena *a = cw_arena_create();

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < CW_ARRAY_LEN(sizes); i++) {
            unsigned char *p = cw_arena_alloc(a, sizes[i]);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(p[k], 0);
            memset(p, 0xff, sizes[i]);
        }
        cw_arena_reset(a);
    }
    cw_arena_destroy(a);
    cw_arena_destroy(NULL);
}

static void strings_of_an_arena_stay_apart(void **state)
{
    struct cw_arena *a = cw_arena_create();
    char *strings[1000];

    (void)state;
    for (int i = 0; i < 1000; i++)
        strings[i] = cw_arena_printf(a, "string %d", i);
    for (int i = 0; i < 1000; i++) {
        char *again = cw_arena_printf(a, "string %d", i);
        assert_string_equal(strings[i], again);
    }
    assert_string_equal(cw_arena_strdup(a, ""), "");
    cw_arena_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_of_nothing_are_nothing),
        cmocka_unit_test(a_bounded_copy_ends_at_the_bound_or_the_nul),
        cmocka_unit_test(an_overflowing_size_aborts),
        cmocka_unit_test(what_is_stolen_is_not_freed),
        cmocka_unit_test(a_descriptor_is_closed_at_the_end_of_its_scope),
        cmocka_unit_test(the_arena_gives_zeroed_aligned_memory_of_any_size),
        cmocka_unit_test(strings_of_an_arena_stay_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
