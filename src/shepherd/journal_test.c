/* What a journal says after a normal end, a torn write, a flipped byte, a rewrite. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "shepherd/journal.h"

static char path[300], dir[256];

static int setup(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    snprintf(dir, sizeof dir, "%s/crun-journal-test.XXXXXX", tmp);
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/x.journal", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir); /* fails when something else was left */
}

static struct cw_journal *open_it(void)
{
    struct cw_journal *j;
    struct cw_error err;
    if (cw_journal_open(path, &j, &err) < 0)
        fail_msg("%s", err.text);
    return j;
}

static void write_three(void)
{
    struct cw_journal *j = open_it();
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_START, 7, 1, "cgroup", 6), 0);
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_START, 8, 2, "none", 4), 0);
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_PID, 7, 1, "started", 7), 0);
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_EXIT, 7, 1, "end", 3), 0);
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_START, 9, 1, "none", 4), 0);
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_FORGET, 9, 1, NULL, 0), 0);
    cw_journal_close(j);
}

static const struct cw_journal_task *nth(struct cw_list *list, unsigned n)
{
    cw_list_each(l, list)
        if (n-- == 0)
            return cw_list_entry(l, struct cw_journal_task, link);
    return NULL;
}

static unsigned load(struct cw_list *list)
{
    unsigned n = 0;
    cw_list_init(list);
    assert_int_equal(cw_journal_load(path, list, NULL), 0);
    while (nth(list, n) != NULL)
        n++;
    return n;
}

static void a_journal_tells_each_tasks_start_process_and_end(void **state)
{
    (void)state;
    struct cw_list list;
    write_three();
    assert_int_equal(load(&list), 3);
    const struct cw_journal_task *t = nth(&list, 0);
    assert_true(t->id == 7 && t->attempt == 1);
    assert_string_equal(t->isolation, "cgroup");
    assert_string_equal(t->started.data, "started");
    assert_string_equal(t->end.data, "end");
    t = nth(&list, 1);
    assert_true(t->id == 8 && t->attempt == 2 && t->end.len == 0 && !t->forgotten);
    assert_true(nth(&list, 2)->forgotten);
    cw_journal_tasks_destroy(&list);
}

static void a_missing_journal_has_no_tasks(void **state)
{
    (void)state;
    struct cw_list list;
    assert_int_equal(load(&list), 0);
}

static void a_torn_tail_is_cut_off_wherever_it_breaks(void **state)
{
    (void)state;
    struct cw_list list;
    struct stat st;
    write_three();
    assert_int_equal(stat(path, &st), 0);
    unsigned before = 3;
    for (off_t size = st.st_size; size >= 0; size--) {
        assert_int_equal(truncate(path, size), 0);
        unsigned n = load(&list);
        assert_true(n <= before); /* never more than was written, never an error */
        before = n;
        cw_journal_tasks_destroy(&list);
    }
    assert_int_equal(before, 0);
    struct cw_journal *j = open_it(); /* of an empty file */
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_START, 1, 1, "none", 4), 0);
    cw_journal_close(j);
    assert_int_equal(load(&list), 1);
    cw_journal_tasks_destroy(&list);
}

static void a_reopened_journal_goes_on_behind_the_last_good_record(void **state)
{
    (void)state;
    struct cw_list list;
    struct stat st;
    write_three();
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 3), 0);
    struct cw_journal *j = open_it();
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_START, 10, 1, "none", 4), 0);
    cw_journal_close(j);
    assert_int_equal(load(&list), 4);
    assert_false(nth(&list, 2)->forgotten);
    assert_int_equal(nth(&list, 3)->id, 10);
    cw_journal_tasks_destroy(&list);
}

static void a_changed_byte_ends_the_journal_there(void **state)
{
    (void)state;
    struct cw_list list;
    write_three();
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "?", 1, 8 + 8 + 16 + 2), 1); /* in the first isolation name */
    close(fd);
    assert_int_equal(load(&list), 0);
}

static void a_file_of_somebody_else_is_refused(void **state)
{
    (void)state;
    struct cw_journal *j;
    struct cw_error err;
    assert_int_equal(cw_file_write_atomic(path, "something else", 14, 0600, NULL), 0);
    assert_int_equal(cw_journal_open(path, &j, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "not a shepherd's journal"));
}

static void a_rewrite_replaces_all_and_leaves_no_file(void **state)
{
    (void)state;
    struct cw_list list;
    write_three();
    struct cw_journal *j = open_it();
    size_t before = cw_journal_bytes(j);
    assert_int_equal(cw_journal_rewrite_begin(j), 0);
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_START, 8, 2, "none", 4), 0);
    assert_int_equal(load(&list), 3); /* until the commit the old one stands */
    cw_journal_tasks_destroy(&list);
    assert_int_equal(cw_journal_rewrite_commit(j), 0);
    assert_true(cw_journal_bytes(j) < before);
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_EXIT, 8, 2, "end", 3), 0);
    cw_journal_close(j);
    assert_int_equal(load(&list), 1);
    assert_string_equal(nth(&list, 0)->end.data, "end");
    cw_journal_tasks_destroy(&list);
}

static void a_reset_journal_is_empty_and_goes_on(void **state)
{
    (void)state;
    struct cw_list list;
    write_three();
    struct cw_journal *j = open_it();
    assert_int_equal(cw_journal_reset(j), 0);
    assert_int_equal(load(&list), 0);
    assert_int_equal(cw_journal_add(j, CW_JOURNAL_START, 1, 1, "", 0), 0);
    cw_journal_close(j);
    assert_int_equal(load(&list), 1);
    cw_journal_tasks_destroy(&list);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_journal_tells_each_tasks_start_process_and_end),
        T(a_missing_journal_has_no_tasks),
        T(a_torn_tail_is_cut_off_wherever_it_breaks),
        T(a_reopened_journal_goes_on_behind_the_last_good_record),
        T(a_changed_byte_ends_the_journal_there),
        T(a_file_of_somebody_else_is_refused),
        T(a_rewrite_replaces_all_and_leaves_no_file),
        T(a_reset_journal_is_empty_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
