/* Jobs: ids, rows, reasons, memory. */
#include "model/job.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/mem.h"
#include "model/model_fixture.h"

static const struct cw_partition main_part = {
    .name = "main", .is_default = true, .all_nodes = true, .default_time_s = 60};

static void ids_of_an_array_are_its_own_and_its_elements(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    struct cw_job *a = fix_submit(&f, &(struct fix_job){0});
    struct cw_job *b = fix_submit(&f, &(struct fix_job){.array = "0-8:2,20"});
    struct cw_job *c = fix_submit(&f, &(struct fix_job){0});
    assert_int_equal(a->id, 1);
    assert_int_equal(b->id, 2);
    assert_int_equal(b->count, 6);
    assert_int_equal(c->id, 9);
    for (uint64_t id = 2; id <= 8; id++)
        assert_ptr_equal(cw_model_job(f.m, id), b);
    uint64_t k = 99;
    assert_true(cw_job_ordinal(b, 8, &k));
    assert_int_equal(k, 5);
    assert_int_equal(cw_job_index(b, 5), 20);
    assert_int_equal(cw_job_index(b, 1), 2);
    assert_false(cw_job_ordinal(b, 2, &k));
    assert_false(cw_job_ordinal(b, 9, &k));
    assert_null(cw_model_job(f.m, 10));
    assert_null(cw_model_job(f.m, 0));
    fix_fini(&f);
}

static const struct refusal {
    struct fix_job job;
    int code;
    const char *text;
} refusals[] = {
    {{.partition = "gone"}, -EINVAL, "partition gone does not exist"},
    {{.array = "3-1"}, -EINVAL, "array \"3-1\""},
    {{.deps = {{CW__DEPENDENCY_KIND__AFTEROK, 77, false}}},
     -ENOENT,
     "dependency afterok:77: no such job"},
    {{.deps = {{CW__DEPENDENCY_KIND__AFTERCORR, 77, false}}},
     -EINVAL,
     "dependency aftercorr is not carried out"},
};

static void a_refused_submit_changes_nothing(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    for (size_t i = 0; i < CW_ARRAY_LEN(refusals); i++) {
        struct cw_job *j = NULL;
        struct cw_error err = {0};
        assert_int_equal(fix_try_submit(&f, &refusals[i].job, &j, &err), refusals[i].code);
        if (strstr(err.text, refusals[i].text) == NULL)
            fail_msg("row %zu says: %s", i, err.text);
        assert_null(j);
    }
    assert_int_equal(f.n_effects, 0);
    assert_int_equal(cw_model_next_id(f.m), 1);
    fix_fini(&f);
}

static void submit_stores_the_row_before_the_pass_runs(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    struct cw_job *j = fix_submit(&f, &(struct fix_job){0});
    assert_string_equal(fix_trail(&f), "put-job event:submit cycle");
    assert_int_equal(j->time_limit_s, 60);
    fix_submit(&f, &(struct fix_job){.hold = true});
    assert_string_equal(fix_trail(&f), "put-job event:submit");
    fix_fini(&f);
}

static void the_cheap_row_says_what_the_record_says(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    struct cw_job *plain = fix_submit(&f, &(struct fix_job){.hold = true});
    struct cw_job *jobs[] = {
        plain,
        fix_submit(&f, &(struct fix_job){.array = "5-9"}),
        fix_submit(&f, &(struct fix_job){.deps = {{CW__DEPENDENCY_KIND__AFTERANY, plain->id, false},
                                                  {CW__DEPENDENCY_KIND__AFTEROK, 4, true}}}),
    };
    for (size_t i = 0; i < CW_ARRAY_LEN(jobs); i++) {
        struct cw_buf b = {0};
        cw_job_row(jobs[i], &b);
        Cw__JobRecord *a = cw__job_record__unpack(NULL, b.len, (uint8_t *)b.data),
                      *r = cw_job_record(jobs[i]);
        assert_non_null(a);
        uint8_t pa[4096], pr[4096];
        size_t na = cw__job_record__pack(a, pa), nr = cw__job_record__pack(r, pr);
        assert_int_equal(na, nr);
        assert_memory_equal(pa, pr, na);
        assert_int_equal(a->id, jobs[i]->id);
        assert_string_equal(a->spec->workdir, "/home/alice/project");
        cw__job_record__free_unpacked(a, NULL);
        cw__job_record__free_unpacked(r, NULL);
        cw_buf_fini(&b);
    }
    Cw__JobRecord *r = cw_job_record(jobs[2]);
    assert_false(r->spec->dependencies[0]->satisfied);
    assert_true(r->spec->dependencies[1]->satisfied);
    cw__job_record__free_unpacked(r, NULL);
    fix_fini(&f);
}

static void a_job_whose_partition_vanished_is_kept_and_says_so(void **state)
{
    (void)state;
    struct fix f, g;
    fix_init(&f);
    fix_partition(&f, &main_part);
    fix_partition(&f, &(struct cw_partition){.name = "debug", .all_nodes = true});
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.partition = "debug"});
    struct cw_buf b = {0};
    cw_job_row(j, &b);
    Cw__JobRecord *rec = cw__job_record__unpack(NULL, b.len, (uint8_t *)b.data);
    fix_init(&g);
    fix_partition(&g, &main_part);
    struct cw_job *k;
    assert_int_equal(cw_model_restore_job(g.m, rec, &k, NULL), 0);
    assert_int_equal(cw_job_reason(k), CW_REASON_PARTITION_DOWN);
    assert_string_equal(cw_reason_word(cw_job_reason(k)), "PartitionDown");
    assert_false(cw_job_eligible(k));
    assert_true(cw_list_empty(cw_model_queue(g.m)));
    assert_int_equal(cw_model_cancel(g.m, k, NULL, 0, 5), 1);
    assert_int_equal(g.last_final_state, CW__STATE__CANCELLED);
    cw__job_record__free_unpacked(rec, NULL);
    cw_buf_fini(&b);
    fix_fini(&f);
    fix_fini(&g);
}

static void every_waiting_job_has_a_reason(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    struct cw_job *a = fix_submit(&f, &(struct fix_job){0});
    struct cw_job *b = fix_submit(&f, &(struct fix_job){.hold = true});
    struct cw_job *c =
        fix_submit(&f, &(struct fix_job){.deps = {{CW__DEPENDENCY_KIND__AFTERANY, a->id, false}}});
    assert_int_equal(cw_job_reason(a), CW_REASON_PRIORITY);
    assert_int_equal(cw_job_reason(b), CW_REASON_HELD);
    assert_int_equal(cw_job_reason(c), CW_REASON_DEPENDENCY);
    assert_int_equal(b->reason, CW_REASON_HELD);
    cw_model_hold(f.m, b, false, 0, false, 1);
    assert_int_equal(cw_job_reason(b), CW_REASON_PRIORITY);
    fix_fini(&f);
}

static void the_queue_keeps_the_order_of_ids_when_jobs_come_back(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    struct cw_job *j[9];
    for (size_t i = 0; i < 9; i++)
        j[i] = fix_submit(&f, &(struct fix_job){0});
    static const int order[] = {4, 0, 8, 3, 7};
    for (size_t i = 0; i < CW_ARRAY_LEN(order); i++)
        cw_model_hold(f.m, j[order[i]], true, 0, false, 1);
    assert_int_equal(cw_model_n_queued(f.m, 0), 4);
    for (size_t i = 0; i < CW_ARRAY_LEN(order); i++)
        cw_model_hold(f.m, j[order[i]], false, 0, false, 1);
    size_t k = 0;
    cw_list_each(pos, cw_model_queue(f.m))
        assert_ptr_equal(cw_list_entry(pos, struct cw_job, in_queue), j[k++]);
    assert_int_equal(k, 9);
    assert_int_equal(cw_model_n_queued_partitions(f.m), 1);
    fix_fini(&f);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void an_array_of_a_million_costs_as_much_as_one_job(void **state)
{
    (void)state;
    struct fix f;
    fix_init(&f);
    fix_partition(&f, &main_part);
    fix_submit(&f, &(struct fix_job){.array = "0-9"});
    struct mallinfo2 before = mallinfo2();
    double t = seconds();
    struct cw_job *j = fix_submit(&f, &(struct fix_job){.array = "1-1000000"});
    t = seconds() - t;
    struct mallinfo2 after = mallinfo2();
    print_message("# array of 1,000,000: %.0f us, %zu bytes\n", t * 1e6,
                  after.uordblks - before.uordblks);
    assert_int_equal(j->count, 1000000);
    assert_true(t < 0.05);
    assert_true(after.uordblks < before.uordblks + 8192);
    struct cw_node *n = fix_node(&f, "n1", 8, 1 << 30, 0, NULL);
    for (int i = 0; i < 8; i++)
        assert_non_null(fix_grant(&f, j, n, 5));
    struct cw_buf *row = cw_idtable_find(f.jobs, j->id);
    assert_true(row->len < 300);
    fix_fini(&f);
}

/* DESIGN.md 10: at most 1 KB a queued job. Rows kept by the fixture do not count. */
static void a_queued_plain_job_takes_at_most_a_kilobyte(void **state)
{
    (void)state;
    enum { N = 100000 };
    struct cw_model *m = cw_model_create(NULL, NULL);
    assert_int_equal(cw_model_partition_add(m, &main_part), 0);
    struct fix f = {.m = m};
    struct mallinfo2 before = mallinfo2();
    double t = seconds();
    for (int i = 0; i < N; i++)
        fix_submit(&f, &(struct fix_job){
                           .name = i % 2 ? "train" : "evaluate", .cores = 4, .mem_bytes = 1 << 30});
    t = seconds() - t;
    struct mallinfo2 after = mallinfo2();
    size_t each = (after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / N;
    print_message("# %d queued jobs: %zu bytes each, %.1f us a submit\n", N, each, t * 1e6 / N);
#ifndef __SANITIZE_ADDRESS__
    assert_true(each > 0 && each <= 1024);
#endif
    cw_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_an_array_are_its_own_and_its_elements),
        cmocka_unit_test(a_refused_submit_changes_nothing),
        cmocka_unit_test(submit_stores_the_row_before_the_pass_runs),
        cmocka_unit_test(the_cheap_row_says_what_the_record_says),
        cmocka_unit_test(a_job_whose_partition_vanished_is_kept_and_says_so),
        cmocka_unit_test(every_waiting_job_has_a_reason),
        cmocka_unit_test(the_queue_keeps_the_order_of_ids_when_jobs_come_back),
        cmocka_unit_test(an_array_of_a_million_costs_as_much_as_one_job),
        cmocka_unit_test(a_queued_plain_job_takes_at_most_a_kilobyte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
