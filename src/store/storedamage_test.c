/* Damaged files: rows that fail their checksum, pages of zeros or noise, files cut short. */
#include "config.h"

#include "store/store.h"
#include "base/file.h"
#include "base/mem.h"
#include "store/storedir_test.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ROWS 2000
#define PAGE 4096
static struct cw_buf good; /* the undamaged data file */

static char *data_path(void)
{
    return cw_file_join(dir, "data.mdb");
}

static void make_value(uint64_t i, char out[64])
{
    memset(out, 'v', 64);
    snprintf(out, 64, "value number %llu of this store", (unsigned long long)i);
}

/* Some rows were deleted again, so that there are free pages too. */
static void fill(struct cw_store *s)
{
    for (int round = 0; round < 3; round++) {
        struct cw_batch *b = cw_batch_create();
        for (uint64_t i = 0; i < ROWS + ROWS / 4; i++) {
            uint8_t k[8];
            char val[64];
            make_value(i, val);
            cw_store_key_u64(k, i);
            if (round < 2 || i < ROWS)
                cw_batch_put(b, CW_TABLE_JOB, k, 8, val, sizeof(val));
            else
                cw_batch_del(b, CW_TABLE_JOB, k, 8);
        }
        assert_int_equal(cw_store_commit(s, b, NULL), 0);
        cw_batch_destroy(b);
    }
}

static int setup(void **state)
{
    (void)state;
    struct cw_store *s;
    if (make_dir() < 0 || cw_store_open(dir, CW_STORE_SYNC_NONE, &s, NULL) < 0)
        return -1;
    fill(s);
    cw_store_close(s);
    cw_autofree char *path = data_path();
    return cw_file_read(path, 64 << 20, &good, NULL);
}

static int teardown(void **state)
{
    (void)state;
    cw_buf_fini(&good);
    return remove_dir();
}

static void write_data(const void *p, size_t n)
{
    cw_autofree char *path = data_path();
    assert_int_equal(cw_file_write_atomic(path, p, n, 0600, NULL), 0);
}

static int try_open(struct cw_store **ret, struct cw_error *err)
{
    *err = (struct cw_error){ 0 };
    return cw_store_open(dir, CW_STORE_SYNC_NONE, ret, err);
}

static void check_refusal(int rc, const struct cw_error *err)
{
    if (rc != -EBADMSG)
        fail_msg("%d %s", rc, err->text);
    assert_non_null(strstr(err->text, "data.mdb: damaged ("));
    assert_non_null(strstr(err->text, "crun-ctl backup"));
    assert_int_equal(err->fault, CW_FAULT_NODE);
}

/* ---- values ---------------------------------------------------------------------------------- */

struct rows {
    uint64_t good, bad, bad_key;
};

static bool see_good(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct rows *r = arg;
    char want[64];
    assert_int_equal(klen, 8);
    assert_int_equal(vlen, sizeof(want));
    make_value(cw_store_u64_key(key), want);
    assert_memory_equal(val, want, sizeof(want));
    r->good++;
    return true;
}

static bool see_bad(const void *key, size_t klen, const void *val, size_t vlen, void *arg)
{
    struct rows *r = arg;
    (void)val;
    (void)vlen; /* its length may be damaged too */
    r->bad_key = klen == 8 ? cw_store_u64_key(key) : 0;
    r->bad++;
    return true;
}

/* Flips one bit in the live copy of row i's value: the one on the last page that has it. */
static void flip_bit_in_row(uint64_t i)
{
    char val[64], *at = NULL;
    make_value(i, val);
    for (char *p = good.data;
         (p = memmem(p, (size_t)(good.data + good.len - p), val, sizeof(val))) != NULL; p++) {
        p[20] ^= 1; /* older copies lie on free pages; damaging them too does no harm */
        at = p;
    }
    assert_non_null(at);
    write_data(good.data, good.len);
}

static void a_flipped_bit_in_a_value_is_found_and_the_other_rows_are_read(void **state)
{
    (void)state;
    struct cw_store *s = NULL;
    struct cw_error err;
    cw_autobuf struct cw_buf val = { 0 };
    uint8_t k[8];
    flip_bit_in_row(42);
    if (try_open(&s, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(cw_store_checked(s)->damaged, 1);
    assert_int_equal(cw_store_checked(s)->rows, ROWS);
    assert_string_equal(cw_store_checked(s)->first, "table job, key 000000000000002a");
    cw_store_key_u64(k, 42);
    assert_int_equal(cw_store_get(s, CW_TABLE_JOB, k, 8, &val, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "table job: a row fails its checksum"));
    assert_int_equal(val.len, 0);
    struct rows r = { 0 };
    assert_int_equal(cw_store_scan(s, CW_TABLE_JOB, NULL, 0, false, 0, see_good, see_bad, &r, NULL),
                     0);
    assert_int_equal(r.good, ROWS - 1);
    assert_int_equal(r.bad, 1);
    assert_int_equal(r.bad_key, 42);
    r = (struct rows){ 0 };
    assert_int_equal(cw_store_scan(s, CW_TABLE_JOB, NULL, 0, true, 0, see_good, NULL, &r, NULL), 0);
    assert_int_equal(r.good, ROWS - 1);
    cw_store_close(s);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void a_table_of_zeroed_pages_is_refused(void **state)
{
    (void)state;
    struct cw_store *s = NULL;
    struct cw_error err;
    memset(good.data + 2 * PAGE, 0, good.len - 2 * PAGE); /* all but the two meta pages */
    write_data(good.data, good.len);
    check_refusal(try_open(&s, &err), &err);
}

static void a_file_that_is_not_a_database_is_refused(void **state)
{
    (void)state;
    struct cw_store *s = NULL;
    struct cw_error err;
    memset(good.data, 'x', good.len);
    write_data(good.data, good.len);
    check_refusal(try_open(&s, &err), &err);
}

static void a_truncated_file_is_refused_and_named(void **state)
{
    (void)state;
    static const size_t keep[] = { 1, 100, PAGE, 2 * PAGE, 3 * PAGE, 10 * PAGE };
    for (size_t i = 0; i < CW_ARRAY_LEN(keep); i++) {
        struct cw_store *s = NULL;
        struct cw_error err;
        write_data(good.data, keep[i]);
        check_refusal(try_open(&s, &err), &err);
    }
}

static void an_empty_or_missing_file_of_an_old_store_is_not_a_new_store(void **state)
{
    (void)state;
    struct cw_store *s = NULL;
    struct cw_error err;
    cw_autofree char *path = data_path();
    write_data("", 0);
    check_refusal(try_open(&s, &err), &err);
    assert_int_equal(unlink(path), 0);
    check_refusal(try_open(&s, &err), &err);
}

static void a_refused_file_is_left_as_it_was_and_a_good_one_in_its_place_opens(void **state)
{
    (void)state;
    struct cw_store *s = NULL;
    struct cw_error err;
    cw_autofree char *path = data_path();
    cw_autobuf struct cw_buf after = { 0 };
    write_data(good.data, 5 * PAGE);
    check_refusal(try_open(&s, &err), &err);
    assert_int_equal(cw_file_read(path, 64 << 20, &after, NULL), 0);
    assert_int_equal(after.len, 5 * PAGE);
    assert_memory_equal(after.data, good.data, after.len);
    write_data(good.data, good.len);
    assert_int_equal(try_open(&s, &err), 0);
    assert_int_equal(cw_store_checked(s)->damaged, 0);
    cw_store_close(s);
}

static uint64_t next_random(uint64_t *s) /* xorshift64 (Marsaglia) */
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

/* Whatever one page holds, opening ends with a store whose rows can all be read, or with a refusal.
 */
static void no_damaged_page_crashes_the_opener(void **state)
{
    (void)state;
    uint64_t seed = 20261130, opened = 0, refused = 0;
    size_t n_pages = good.len / PAGE;
    cw_autofree char *copy = cw_xmalloc(good.len);
    for (int round = 0; round < 60; round++) {
        struct cw_store *s = NULL;
        struct cw_error err;
        memcpy(copy, good.data, good.len);
        char *page = copy + next_random(&seed) % n_pages * PAGE;
        size_t from = round % 3 == 0 ? 0 : next_random(&seed) % PAGE;
        size_t n = round % 3 == 0 ? PAGE : 1 + next_random(&seed) % 8;
        for (size_t i = from; i < from + n && i < PAGE; i++)
            page[i] = round % 2 == 0 ? 0 : (char)next_random(&seed);
        write_data(copy, good.len);
        if (try_open(&s, &err) < 0) {
            check_refusal(err.code, &err);
            refused++;
            continue;
        }
        struct rows r = { 0 };
        cw_store_scan(s, CW_TABLE_JOB, NULL, 0, false, 0, see_good, see_bad, &r, NULL);
        assert_int_equal(r.bad, cw_store_checked(s)->damaged);
        cw_store_close(s);
        opened++;
    }
    print_message("# %llu opened, %llu refused\n", (unsigned long long)opened,
                  (unsigned long long)refused);
    assert_true(refused > 0 && opened > 0);
}

static void a_mark_of_another_version_is_refused(void **state)
{
    (void)state;
    struct cw_store *s = NULL;
    struct cw_error err;
    cw_autofree char *mark = cw_file_join(dir, "store.format");
    assert_int_equal(cw_file_write_atomic(mark, "crun-wlm store 2\n", 17, 0600, NULL), 0);
    assert_int_equal(try_open(&s, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "made by another version"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_flipped_bit_in_a_value_is_found_and_the_other_rows_are_read),
        T(a_table_of_zeroed_pages_is_refused),
        T(a_file_that_is_not_a_database_is_refused),
        T(a_truncated_file_is_refused_and_named),
        T(an_empty_or_missing_file_of_an_old_store_is_not_a_new_store),
        T(a_refused_file_is_left_as_it_was_and_a_good_one_in_its_place_opens),
        T(no_damaged_page_crashes_the_opener),
        T(a_mark_of_another_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
