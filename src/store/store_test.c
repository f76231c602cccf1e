/* Reading and writing through the store: rows, orders, slices, copies, the second opener. */
#include "config.h"

#include "store/store.h"
#include "base/file.h"
#include "base/mem.h"
#include "store/storedir_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

static struct cw_store *open_or_fail(const char *where)
{
    struct cw_store *s = NULL;
    struct cw_error err;
    if (cw_store_open(where, CW_STORE_SYNC_NONE, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static void commit_or_fail(struct cw_store *s, struct cw_batch *b)
{
    struct cw_error err;
    if (cw_store_commit(s, b, &err) < 0)
        fail_msg("%s", err.text);
    cw_batch_destroy(b);
}

static void put_u64(struct cw_batch *b, enum cw_table t, uint64_t key, const void *val, size_t n)
{
    uint8_t k[8];
    cw_store_key_u64(k, key);
    cw_batch_put(b, t, k, sizeof(k), val, n);
}

static void a_row_comes_back_after_close_and_open(void **state)
{
    (void)state;
    struct cw_store *s = open_or_fail(dir);
    struct cw_batch *b = cw_batch_create();
    cw_autobuf struct cw_buf val = { 0 };
    cw_batch_put(b, CW_TABLE_META, "schema", 6, "one\0two", 7);
    cw_batch_put(b, CW_TABLE_DONE, "x", 1, NULL, 0);
    commit_or_fail(s, b);
    cw_store_close(s);
    s = open_or_fail(dir);
    assert_int_equal(cw_store_get(s, CW_TABLE_META, "schema", 6, &val, NULL), 1);
    assert_int_equal(val.len, 7);
    assert_memory_equal(val.data, "one\0two", 7);
    cw_buf_clear(&val);
    assert_int_equal(cw_store_get(s, CW_TABLE_DONE, "x", 1, &val, NULL), 1);
    assert_int_equal(val.len, 0);
    assert_int_equal(cw_store_get(s, CW_TABLE_META, "other", 5, &val, NULL), 0);
    assert_int_equal(cw_store_get(s, CW_TABLE_JOB, "schema", 6, &val, NULL), 0);
    assert_int_equal(cw_store_checked(s)->rows, 2);
    assert_int_equal(cw_store_checked(s)->damaged, 0);
    cw_store_close(s);
    cw_store_close(NULL);
}

static void deletes_and_replacements_are_stored(void **state)
{
    (void)state;
    struct cw_store *s = open_or_fail(dir);
    struct cw_batch *b = cw_batch_create();
    cw_autobuf struct cw_buf val = { 0 };
    cw_batch_put(b, CW_TABLE_JOB, "a", 1, "1", 1);
    cw_batch_put(b, CW_TABLE_JOB, "b", 1, "2", 1);
    commit_or_fail(s, b);
    b = cw_batch_create();
    cw_batch_del(b, CW_TABLE_JOB, "a", 1);
    cw_batch_del(b, CW_TABLE_JOB, "never there", 11);
    cw_batch_put(b, CW_TABLE_JOB, "b", 1, "longer", 6);
    commit_or_fail(s, b);
    assert_int_equal(cw_store_get(s, CW_TABLE_JOB, "a", 1, &val, NULL), 0);
    assert_int_equal(cw_store_get(s, CW_TABLE_JOB, "b", 1, &val, NULL), 1);
    assert_string_equal(cw_buf_str(&val), "longer");
    commit_or_fail(s, cw_batch_create()); /* an empty one is nothing */
    cw_store_close(s);
}

static void a_value_of_a_megabyte_comes_back(void **state)
{
    (void)state;
    struct cw_store *s = open_or_fail(dir);
    struct cw_batch *b = cw_batch_create();
    cw_autobuf struct cw_buf val = { 0 };
    size_t n = 1 << 20;
    cw_autofree unsigned char *big = cw_xmalloc(n);
    for (size_t i = 0; i < n; i++)
        big[i] = (unsigned char)(i * 31 >> 3);
    put_u64(b, CW_TABLE_PAYLOAD, 7, big, n);
    commit_or_fail(s, b);
    uint8_t k[8];
    cw_store_key_u64(k, 7);
    assert_int_equal(cw_store_get(s, CW_TABLE_PAYLOAD, k, 8, &val, NULL), 1);
    assert_int_equal(val.len, n);
    assert_memory_equal(val.data, big, n);
    cw_store_close(s);
}

/* ---- scans ----------------------------------------------------------------------------------- */

struct seen {
    char text[256];
    uint64_t n, last, stop_at;
};

static bool see_key(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct seen *s = arg;
    (void)val;
    (void)vlen;
    assert_int_equal(klen, 8);
    s->last = cw_store_u64_key(key);
    size_t at = strlen(s->text);
    if (at < 200)
        snprintf(s->text + at, sizeof(s->text) - at, "%s%llu", at > 0 ? " " : "",
                 (unsigned long long)s->last);
    return ++s->n != s->stop_at;
}

static const struct {
    const char *what;
    int from; /* -1: none */
    bool backwards;
    uint64_t max, stop_at;
    const char *want;
} scans[] = {
    { "all", -1, false, 0, 0, "10 20 30 40 300" },
    { "all backwards", -1, true, 0, 0, "300 40 30 20 10" },
    { "from an existing key", 20, false, 0, 0, "20 30 40 300" },
    { "from a key between", 21, false, 0, 0, "30 40 300" },
    { "backwards from an existing key", 30, true, 0, 0, "30 20 10" },
    { "backwards from a key between", 39, true, 0, 0, "30 20 10" },
    { "from behind the last", 301, false, 0, 0, "" },
    { "backwards from behind the last", 301, true, 0, 0, "300 40 30 20 10" },
    { "backwards from before the first", 9, true, 0, 0, "" },
    { "at most two", -1, false, 2, 0, "10 20" },
    { "at most two backwards from a key", 40, true, 2, 0, "40 30" },
    { "until the function says so", -1, false, 0, 3, "10 20 30" },
};

static void scans_go_both_ways_from_any_key(void **state)
{
    (void)state;
    static const uint64_t keys[] = { 300, 10, 40, 20, 30 };
    struct cw_store *s = open_or_fail(dir);
    struct cw_batch *b = cw_batch_create();
    for (size_t i = 0; i < CW_ARRAY_LEN(keys); i++)
        put_u64(b, CW_TABLE_EVENT, keys[i], "v", 1);
    commit_or_fail(s, b);
    for (size_t i = 0; i < CW_ARRAY_LEN(scans); i++) {
        struct seen seen = { .stop_at = scans[i].stop_at };
        uint8_t from[8];
        cw_store_key_u64(from, (uint64_t)scans[i].from);
        int rc = cw_store_scan(s, CW_TABLE_EVENT, scans[i].from < 0 ? NULL : from, 8,
                               scans[i].backwards, scans[i].max, see_key, NULL, &seen, NULL);
        assert_int_equal(rc, 0);
        if (strcmp(seen.text, scans[i].want) != 0)
            fail_msg("%s: %s, not %s", scans[i].what, seen.text, scans[i].want);
    }
    struct seen none = { .n = 0 };
    assert_int_equal(cw_store_scan(s, CW_TABLE_NODE, NULL, 0, false, 0, see_key, NULL, &none, NULL),
                     0);
    assert_int_equal(cw_store_scan(s, CW_TABLE_NODE, NULL, 0, true, 0, see_key, NULL, &none, NULL),
                     0);
    assert_int_equal(none.n, 0);
    cw_store_close(s);
}

static bool see_same_value(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    cw_autobuf struct cw_buf again = { 0 };
    assert_int_equal(cw_store_get(arg, CW_TABLE_EVENT, key, klen, &again, NULL), 1);
    assert_int_equal(again.len, vlen);
    assert_memory_equal(again.data, val, vlen);
    return true;
}

static void rows_can_be_read_inside_a_scan(void **state)
{
    (void)state;
    struct cw_store *s = open_or_fail(dir);
    struct cw_batch *b = cw_batch_create();
    for (uint64_t i = 0; i < 300; i++)
        put_u64(b, CW_TABLE_EVENT, i, &i, sizeof(i));
    commit_or_fail(s, b);
    assert_int_equal(
        cw_store_scan(s, CW_TABLE_EVENT, NULL, 0, false, 0, see_same_value, NULL, s, NULL), 0);
    cw_store_close(s);
}

static void a_hundred_thousand_rows_are_read_in_slices(void **state)
{
    (void)state;
    const uint64_t total = 100000;
    struct cw_store *s = open_or_fail(dir);
    char val[350];
    memset(val, 'v', sizeof(val));
    for (uint64_t i = 0; i < total;) {
        struct cw_batch *b = cw_batch_create();
        for (int k = 0; k < 1000; k++, i++)
            put_u64(b, CW_TABLE_JOB, i, val, sizeof(val));
        commit_or_fail(s, b);
    }
    struct seen seen = { .n = 0 };
    for (uint64_t before = 1; seen.n != before;) {
        uint8_t from[8];
        cw_store_key_u64(from, seen.n > 0 ? seen.last + 1 : 0);
        before = seen.n;
        assert_int_equal(
            cw_store_scan(s, CW_TABLE_JOB, from, 8, false, 9999, see_key, NULL, &seen, NULL), 0);
    }
    assert_int_equal(seen.n, total);
    assert_int_equal(seen.last, total - 1);
    uint64_t count;
    assert_int_equal(cw_store_count(s, CW_TABLE_JOB, &count, NULL), 0);
    assert_int_equal(count, total);
    cw_store_close(s);
    s = open_or_fail(dir);
    assert_int_equal(cw_store_checked(s)->rows, total);
    cw_store_close(s);
}

/* ---- one writer, many readers ---------------------------------------------------------------- */

struct reader {
    struct cw_store *s;
    atomic_bool stop;
    atomic_ulong rounds;
};

static bool see_pair(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    (void)key;
    assert_int_equal(klen + vlen, 16);
    uint64_t *first = arg, v = cw_store_u64_key(val);
    if (*first == UINT64_MAX)
        *first = v;
    assert_int_equal(*first, v); /* all rows of one commit */
    return true;
}

static void *read_all_the_time(void *arg)
{
    struct reader *r = arg;
    while (!atomic_load(&r->stop)) {
        uint64_t first = UINT64_MAX;
        cw_store_scan(r->s, CW_TABLE_NODE, NULL, 0, false, 0, see_pair, NULL, &first, NULL);
        atomic_fetch_add(&r->rounds, 1);
    }
    return NULL;
}

static void readers_see_whole_commits_while_the_writer_writes(void **state)
{
    (void)state;
    struct reader r = { .s = open_or_fail(dir) };
    pthread_t threads[3];
    for (size_t i = 0; i < CW_ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all_the_time, &r), 0);
    for (uint64_t round = 0; round < 200 || atomic_load(&r.rounds) < 10; round++) {
        struct cw_batch *b = cw_batch_create();
        uint8_t v[8];
        cw_store_key_u64(v, round);
        for (uint64_t k = 0; k < 50; k++)
            put_u64(b, CW_TABLE_NODE, k, v, sizeof(v));
        commit_or_fail(r.s, b);
    }
    atomic_store(&r.stop, true);
    for (size_t i = 0; i < CW_ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    cw_store_close(r.s);
}

/* ---- the directory --------------------------------------------------------------------------- */

static void a_second_process_is_refused_and_told_the_pid(void **state)
{
    (void)state;
    int p[2];
    char c;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct cw_store *mine;
        bool ok = cw_store_open(dir, CW_STORE_SYNC_FULL, &mine, NULL) == 0;
        if (write(p[1], ok ? "y" : "n", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    assert_int_equal(read(p[0], &c, 1), 1);
    struct cw_store *s = NULL;
    struct cw_error err = { 0 };
    char want[64];
    int rc = cw_store_open(dir, CW_STORE_SYNC_FULL, &s, &err);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(p[0]), close(p[1]);
    assert_int_equal(c, 'y');
    assert_int_equal(rc, -EBUSY);
    assert_null(s);
    snprintf(want, sizeof(want), "pid %ld", (long)pid);
    if (strstr(err.text, want) == NULL || strstr(err.text, dir) == NULL)
        fail_msg("%s: no \"%s\"", err.text, want);
    cw_store_close(open_or_fail(dir)); /* its death frees the directory */
}

static void a_second_open_in_one_process_is_refused(void **state)
{
    (void)state;
    struct cw_store *s = open_or_fail(dir), *again = NULL;
    assert_int_equal(cw_store_open(dir, CW_STORE_SYNC_FULL, &again, NULL), -EBUSY);
    cw_store_close(s);
}

static void files_are_private_and_descriptors_close_on_exec(void **state)
{
    (void)state;
    cw_autofree char *sub = cw_file_join(dir, "a/b");
    cw_autofree char *data = cw_file_join(sub, "data.mdb");
    struct cw_store *s = open_or_fail(sub);
    struct stat st;
    assert_int_equal(stat(sub, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(data, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    for (int fd = 3; fd < 64; fd++) {
        char link[32], target[512];
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof(target) - 1);
        if (n < 0)
            continue;
        target[n] = '\0';
        if (strstr(target, dir) != NULL && (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0)
            fail_msg("%s is inherited by programs", target);
    }
    cw_store_close(s);
}

static void a_directory_that_cannot_be_made_is_named(void **state)
{
    (void)state;
    struct cw_store *s = NULL;
    struct cw_error err;
    assert_true(cw_store_open("/proc/no/store", CW_STORE_SYNC_FULL, &s, &err) < 0);
    assert_non_null(strstr(err.text, "/proc/no"));
}

static void a_small_address_space_gets_a_smaller_map(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("# sanitizers need the address space\n");
    skip();
#endif
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit limit = { UINT64_C(8) << 30, UINT64_C(8) << 30 };
        struct cw_store *s;
        setrlimit(RLIMIT_AS, &limit);
        _exit(cw_store_open(dir, CW_STORE_SYNC_NONE, &s, NULL) == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void free_bytes_are_those_of_the_file_system(void **state)
{
    (void)state;
    struct cw_store *s = open_or_fail(dir);
    uint64_t bytes = 0;
    assert_int_equal(cw_store_free_bytes(s, &bytes), 0);
    assert_true(bytes > 0);
    cw_store_reader_check(s);
    cw_store_close(s);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void a_backup_opens_as_a_store_with_the_same_rows(void **state)
{
    (void)state;
    cw_autofree char *copy = cw_file_join(dir, "copy");
    cw_autofree char *orig = cw_file_join(dir, "orig");
    cw_autobuf struct cw_buf val = { 0 };
    struct cw_store *s = open_or_fail(orig);
    struct cw_batch *b = cw_batch_create();
    struct cw_error err;
    for (uint64_t i = 0; i < 1000; i++)
        put_u64(b, CW_TABLE_JOB, i, "value", 5);
    commit_or_fail(s, b);
    assert_int_equal(cw_store_backup(s, copy, &err), 0);
    assert_int_equal(cw_store_backup(s, copy, &err), -ENOTEMPTY);
    assert_non_null(strstr(err.text, copy));
    b = cw_batch_create();
    put_u64(b, CW_TABLE_JOB, 5, "later", 5);
    commit_or_fail(s, b);
    cw_store_close(s);
    s = open_or_fail(copy);
    uint64_t n;
    uint8_t k[8];
    cw_store_key_u64(k, 5);
    assert_int_equal(cw_store_count(s, CW_TABLE_JOB, &n, NULL), 0);
    assert_int_equal(n, 1000);
    assert_int_equal(cw_store_get(s, CW_TABLE_JOB, k, 8, &val, NULL), 1);
    assert_string_equal(cw_buf_str(&val), "value");
    cw_store_close(s);
}

static void keys_keep_the_order_of_their_numbers(void **state)
{
    (void)state;
    static const uint64_t rising[] = {
        0, 1, 255, 256, 65535, 1ULL << 32, UINT64_MAX - 1, UINT64_MAX
    };
    for (size_t i = 0; i < CW_ARRAY_LEN(rising); i++) {
        uint8_t a[8], b[8], c[4];
        cw_store_key_u64(a, rising[i]);
        assert_int_equal(cw_store_u64_key(a), rising[i]);
        cw_store_key_u32(c, (uint32_t)rising[i]);
        assert_int_equal(cw_store_u32_key(c), (uint32_t)rising[i]);
        if (i > 0) {
            cw_store_key_u64(b, rising[i - 1]);
            assert_true(memcmp(b, a, 8) < 0);
        }
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_row_comes_back_after_close_and_open),
        T(deletes_and_replacements_are_stored),
        T(a_value_of_a_megabyte_comes_back),
        T(scans_go_both_ways_from_any_key),
        T(rows_can_be_read_inside_a_scan),
        T(a_hundred_thousand_rows_are_read_in_slices),
        T(readers_see_whole_commits_while_the_writer_writes),
        T(a_second_process_is_refused_and_told_the_pid),
        T(a_second_open_in_one_process_is_refused),
        T(files_are_private_and_descriptors_close_on_exec),
        T(a_directory_that_cannot_be_made_is_named),
        T(a_small_address_space_gets_a_smaller_map),
        T(free_bytes_are_those_of_the_file_system),
        T(a_backup_opens_as_a_store_with_the_same_rows),
        cmocka_unit_test(keys_keep_the_order_of_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
