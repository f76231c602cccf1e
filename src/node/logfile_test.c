/* Reading files that grow, shrink and are watched. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/logfile.h"

static struct cw_loop *loop;
static struct cw_logfiles *files;
static char path[256];
static int writer;
static unsigned n_changed;

static void on_changed(struct cw_logfile *f, void *arg)
{
    (void)f;
    (void)arg;
    n_changed++;
    cw_loop_stop(loop);
}

static int setup(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    snprintf(path, sizeof path, "%s/crun-logfile-test.XXXXXX", tmp);
    writer = mkostemp(path, O_CLOEXEC);
    loop = cw_loop_create();
    files = cw_logfiles_create(loop, on_changed, NULL, NULL);
    n_changed = 0;
    return writer < 0 || files == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    cw_logfiles_destroy(files);
    cw_loop_destroy(loop);
    close(writer);
    return unlink(path);
}

static struct cw_logfile *add(const char *name)
{
    struct cw_logfile *f = cw_logfiles_add(files, name);
    assert_non_null(f);
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    return f;
}

static const char *read_at(struct cw_logfile *f, uint64_t offset, bool from_end, size_t max,
                           uint64_t want_offset)
{
    static char text[64];
    struct cw_buf b = { 0 };
    uint64_t at = 99, size = 99;
    assert_int_equal(cw_logfile_read(f, offset, from_end, max, &b, &at, &size), 0);
    assert_int_equal(at, want_offset);
    snprintf(text, sizeof text, "%s", cw_buf_str(&b));
    cw_buf_fini(&b);
    return text;
}

static void a_read_begins_at_the_offset_or_counts_from_the_end(void **state)
{
    (void)state;
    struct cw_logfile *f = add("1.1/o");
    assert_int_equal(write(writer, "0123456789", 10), 10);
    assert_string_equal(read_at(f, 0, false, 4, 0), "0123");
    assert_string_equal(read_at(f, 8, false, 100, 8), "89");
    assert_string_equal(read_at(f, 3, true, 100, 7), "789");
    assert_string_equal(read_at(f, 100, true, 2, 0), "01");
    assert_string_equal(read_at(f, 10, false, 100, 10), "");
}

static void a_file_that_was_cut_is_read_at_its_new_end(void **state)
{
    (void)state;
    struct cw_logfile *f = add("1.1/o");
    assert_int_equal(write(writer, "0123456789", 10), 10);
    assert_int_equal(ftruncate(writer, 4), 0);
    assert_string_equal(read_at(f, 10, false, 100, 4), "");
}

static void give_up(void *arg)
{
    (void)arg;
    cw_loop_stop(loop);
}

static void a_watched_file_says_when_it_grows_and_others_do_not(void **state)
{
    (void)state;
    struct cw_logfile *f = add("1.1/o");
    struct cw_loop_timer *t = cw_loop_timer_open(loop, give_up, NULL);
    assert_int_equal(write(writer, "x", 1), 1); /* nobody waits yet */
    cw_logfile_watch(files, f);
    assert_int_equal(write(writer, "y", 1), 1);
    cw_loop_timer_start(t, 10000, 0);
    cw_loop_run(loop);
    assert_int_equal(n_changed, 1);
    cw_logfile_unwatch(files, f);
    assert_int_equal(write(writer, "z", 1), 1);
    cw_loop_timer_start(t, 20, 0);
    cw_loop_run(loop);
    assert_int_equal(n_changed, 1);
    cw_loop_timer_close(t);
}

static void the_oldest_without_readers_makes_room(void **state)
{
    (void)state;
    struct cw_logfile *first = cw_logfiles_add(files, "first");
    cw_logfile_watch(files, first);
    for (int i = 1; i < CW_LOGFILES_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        assert_non_null(cw_logfiles_add(files, name));
    }
    assert_non_null(cw_logfiles_add(files, "more"));
    assert_int_equal(cw_logfiles_count(files), CW_LOGFILES_MAX);
    assert_non_null(cw_logfiles_find(files, "first")); /* has a reader */
    assert_null(cw_logfiles_find(files, "f1"));
    assert_non_null(cw_logfiles_find(files, "f2"));
    cw_logfile_unwatch(files, first);
}

static void files_without_readers_close_after_a_while(void **state)
{
    (void)state;
    struct cw_logfile *f = add("1.1/o");
    cw_logfiles_expire(files, f->used_ms + 29000);
    assert_int_equal(cw_logfiles_count(files), 1);
    cw_logfiles_expire(files, f->used_ms + 31000);
    assert_int_equal(cw_logfiles_count(files), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_read_begins_at_the_offset_or_counts_from_the_end),
        T(a_file_that_was_cut_is_read_at_its_new_end),
        T(a_watched_file_says_when_it_grows_and_others_do_not),
        T(the_oldest_without_readers_makes_room),
        T(files_without_readers_close_after_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
