/* Fields, formats and sort keys of lists of jobs; efficiency; points in the past. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cmds/jobeff.h"
#include "cmds/jobformat.h"
#include "cmds/sincetext.h"

#define S CW_NS_PER_S

struct rig {
    Cw__JobSpec spec;
    Cw__Owner owner;
    Cw__Settings settings;
    Cw__Grant grant[2], *more[1];
    Cw__Usage usage;
    Cw__AttemptRecord attempt;
    Cw__JobInfo job;
    struct cw_fieldrow row;
};

/* A job that ran 100 s on two nodes with 2 cores each, busy half of the time. */
static void rig_init(struct rig *r)
{
    memset(r, 0, sizeof *r);
    cw__job_spec__init(&r->spec);
    cw__owner__init(&r->owner);
    cw__settings__init(&r->settings);
    cw__usage__init(&r->usage);
    cw__attempt_record__init(&r->attempt);
    cw__job_info__init(&r->job);
    for (int i = 0; i < 2; i++) {
        cw__grant__init(&r->grant[i]);
        r->grant[i].node = i == 0 ? "n1" : "n2";
        r->grant[i].cores = "0-1";
        r->grant[i].cpus = "0-3";
        r->grant[i].mem_bytes = 1024u << 20;
    }
    r->owner.name = "alice";
    r->spec.name = "work";
    r->spec.settings = &r->settings;
    r->usage.cpu_user_ns = (uint64_t)(150 * S);
    r->usage.cpu_sys_ns = (uint64_t)(50 * S);
    r->usage.has_mem_peak_bytes = true;
    r->usage.mem_peak_bytes = 512u << 20;
    r->more[0] = &r->grant[1];
    r->attempt.grant = &r->grant[0];
    r->attempt.more_grants = r->more;
    r->attempt.n_more_grants = 1;
    r->attempt.attempt = 2;
    r->attempt.state = r->job.state = CW__STATE__FAILED;
    r->attempt.has_start_ns = r->attempt.has_end_ns = true;
    r->attempt.start_ns = 1000 * S;
    r->attempt.end_ns = 1100 * S;
    r->attempt.exit_code = 3;
    r->attempt.usage = &r->usage;
    r->job.id = 12;
    r->job.spec = &r->spec;
    r->job.owner = &r->owner;
    r->job.attempt = &r->attempt;
    r->row = (struct cw_fieldrow){.job = &r->job, .now_ns = 2000 * S, .acct = true};
}

static void field_is(const struct rig *r, const char *name, const char *want)
{
    struct cw_buf out = {0};
    const struct cw_jobfield *f = cw_jobfield_find(name, strlen(name));
    assert_non_null(f);
    cw_jobfield_text(f, &r->row, &out);
    assert_string_equal(cw_buf_str(&out), want);
    cw_buf_fini(&out);
}

static void fields_count_all_nodes_of_an_attempt(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    field_is(&r, "nodelist", "n[1-2]");
    field_is(&r, "NNODES", "2");
    field_is(&r, "AllocCPUS", "4");
    field_is(&r, "ReqMem", "2G");
    field_is(&r, "CPUTimeRAW", "400");
    field_is(&r, "TotalCPU", "03:20.000");
    field_is(&r, "Elapsed", "00:01:40");
    field_is(&r, "ExitCode", "3:0");
    field_is(&r, "Restarts", "1");
    field_is(&r, "SubmitLine", "N/A");
}

static void a_step_has_its_own_id_time_and_state(void **state)
{
    struct rig r;
    Cw__StepRecord step = CW__STEP_RECORD__INIT;
    char *nodes[] = {"n2"};
    (void)state;
    rig_init(&r);
    step.step = 4;
    step.name = "mpi";
    step.state = CW__STATE__COMPLETED;
    step.has_start_ns = step.has_end_ns = true;
    step.start_ns = 1010 * S;
    step.end_ns = 1020 * S;
    step.nodes = nodes;
    step.n_nodes = 1;
    r.row.step = &step;
    field_is(&r, "JobID", "12.4");
    field_is(&r, "State", "COMPLETED");
    field_is(&r, "Elapsed", "00:00:10");
    field_is(&r, "NodeList", "n2");
    field_is(&r, "JobName", "mpi");
    field_is(&r, "TotalCPU", "");
}

static void a_reason_is_one_word(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.row.acct = false;
    r.job.attempt = NULL;
    r.job.state = CW__STATE__PENDING;
    r.job.reason = "Waits for room";
    field_is(&r, "Reason", "Waits_for_room");
    field_is(&r, "ReasonList", "(Waits_for_room)");
    field_is(&r, "NodeList", "");
}

static void every_field_prints_an_empty_job_without_harm(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    for (int with = 0; with < 4; with++) {
        r.job.attempt = with & 1 ? &r.attempt : NULL;
        r.attempt.usage = NULL;
        r.attempt.grant = NULL;
        r.attempt.n_more_grants = 0;
        r.spec.settings = with & 2 ? &r.settings : NULL;
        for (size_t i = 0; i < cw_jobfield_count(); i++) {
            struct cw_buf out = {0};
            int64_t n;
            const struct cw_jobfield *f = cw_jobfield_nth(i);
            cw_jobfield_text(f, &r.row, &out);
            if (f->number != NULL)
                f->number(&r.row, &n);
            cw_buf_fini(&out);
        }
    }
}

static void no_name_and_no_letter_is_used_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < cw_jobfield_count(); i++) {
        const struct cw_jobfield *f = cw_jobfield_nth(i);
        assert_ptr_equal(cw_jobfield_find(f->name, strlen(f->name)), f);
        if (f->letter != 0)
            assert_ptr_equal(cw_jobfield_letter(f->letter), f);
    }
}

static void letters_take_width_side_and_text_between(void **state)
{
    struct cw_jobformat f = {0};
    (void)state;
    assert_int_equal(cw_jobformat_letters("%.18i x%%%9P!", &f, NULL), 0);
    assert_int_equal(f.n, 2);
    assert_int_equal(f.v[0].width, 18);
    assert_true(f.v[0].right);
    assert_null(f.v[0].before);
    assert_string_equal(f.v[1].before, " x%");
    assert_int_equal(f.v[1].width, 9);
    assert_false(f.v[1].right);
    assert_string_equal(f.behind, "!");
    cw_jobformat_fini(&f);
}

static void bad_formats_are_refused_with_their_place(void **state)
{
    static const struct {
        bool letters;
        const char *text, *says;
    } cases[] = {
        {true, "%", "a letter is missing behind %"},
        {true, "plain", "names no column"},
        {true, "%i%!", "letter '!' is unknown"},
        {true, "%.99999i", "a width is at most 4096"},
        {false, "", "names no column"},
        {false, "Stat", "did you mean StateCompact?"},
        {false, "State:x", "'x' behind State is no width"},
        {false, "State%20x", "'x' behind State is no width"},
        {false, "qqq", "field 'qqq' is unknown (--helpformat lists all)"},
    };
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        struct cw_jobformat f = {0};
        struct cw_error err;
        int rc = cases[i].letters ? cw_jobformat_letters(cases[i].text, &f, &err)
                                  : cw_jobformat_names(cases[i].text, 0, &f, &err);
        assert_true(rc < 0);
        assert_non_null(strstr(err.text, cases[i].says));
        assert_int_equal(f.n, 0);
    }
}

static void sort_keys_are_letters_or_names(void **state)
{
    struct cw_jobsort s;
    struct cw_error err;
    (void)state;
    assert_int_equal(cw_jobsort_parse("-i,+JobName,M", &s, NULL), 0);
    assert_int_equal(s.n, 3);
    assert_true(s.down[0]);
    assert_false(s.down[1]);
    assert_string_equal(s.field[2]->name, "TimeUsed");
    assert_true(cw_jobsort_parse("", &s, &err) < 0);
    assert_true(cw_jobsort_parse("i,i,i,i,i,i,i,i,i", &s, &err) < 0);
}

static void efficiency_is_used_of_granted(void **state)
{
    struct rig r;
    struct cw_jobeff e;
    (void)state;
    rig_init(&r);
    cw_jobeff_of(&r.row, &e);
    assert_true(e.has_cpu && e.has_mem);
    assert_true(cw_jobeff_cpu(&e) == 0.5);
    assert_true(cw_jobeff_mem(&e) == 0.25);
    r.attempt.has_start_ns = false; /* never ran */
    cw_jobeff_of(&r.row, &e);
    assert_false(e.has_cpu || e.has_mem);
}

static void points_in_the_past_are_read_in_all_their_forms(void **state)
{
    static const struct {
        const char *text;
        int64_t s; /* relative to now unless absolute */
        bool absolute;
    } cases[] = {
        {"now", 0, false},       {"now-2hours", -7200, false}, {"now-1day", -86400, false},
        {"now-90", -90, false},  {"now+5minutes", 300, false}, {"2h", -7200, false},
        {"7d", -604800, false},  {"1970-01-02T00:00:00Z", 86400, true},
    };
    int64_t now = 1800000000 * S, got;
    struct cw_error err;
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        assert_int_equal(cw_since_parse(cases[i].text, now, &got, &err), 0);
        assert_int_equal(got, (cases[i].absolute ? 0 : now) + cases[i].s * S);
    }
    static const char *const bad[] = {"now-", "now-x", "now-2fortnights", "2026-13-01", "soon", ""};
    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++)
        assert_true(cw_since_parse(bad[i], now, &got, &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_count_all_nodes_of_an_attempt),
        cmocka_unit_test(a_step_has_its_own_id_time_and_state),
        cmocka_unit_test(a_reason_is_one_word),
        cmocka_unit_test(every_field_prints_an_empty_job_without_harm),
        cmocka_unit_test(no_name_and_no_letter_is_used_twice),
        cmocka_unit_test(letters_take_width_side_and_text_between),
        cmocka_unit_test(bad_formats_are_refused_with_their_place),
        cmocka_unit_test(sort_keys_are_letters_or_names),
        cmocka_unit_test(efficiency_is_used_of_granted),
        cmocka_unit_test(points_in_the_past_are_read_in_all_their_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
