/* Tests of datetime.c with a clock and zones of their own. */
#include "spec/datetime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"

/* The zone by its rule, so that no zone files are needed. */
#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"

static void zone(const char *tz)
{
    setenv("TZ", tz, 1);
    tzset();
}

static int64_t utc(const char *text)
{
    struct tm tm = {0};
    assert_non_null(strptime(text, "%Y-%m-%dT%H:%M:%S", &tm));
    return (int64_t)timegm(&tm) * CW_NS_PER_S;
}

static void expect(const char *now, const char *text, const char *want)
{
    int64_t ns = -1;
    struct cw_error err = {0};
    char shown[32];
    if (cw_datetime_parse(text, utc(now), &ns, &err) != 0)
        fail_msg("%s: %s", text, err.text);
    cw_datetime_format(ns, shown, sizeof shown);
    if (strncmp(shown, want, strlen(want)) != 0)
        fail_msg("%s at %s: %s, expected %s", text, now, shown, want);
}

static void each_form_means_what_people_read(void **state)
{
    static const char now[] = "2026-12-01T10:30:00"; /* 11:30 in Berlin */
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"now", "2026-12-01T10:30:00"},
        {"now+90", "2026-12-01T10:31:30"},
        {"now+2hours", "2026-12-01T12:30:00"},
        {"now+1minute", "2026-12-01T10:31:00"},
        {"NOW+3d", "2026-12-04T10:30:00"},
        {"now+1week", "2026-12-08T10:30:00"},
        {"16:00", "2026-12-01T15:00:00"},
        {"9:15", "2026-12-02T08:15:00"},
        {"11:30", "2026-12-02T10:30:00"}, /* now is not the next time */
        {"11:30:01", "2026-12-01T10:30:01"},
        {"4:00pm", "2026-12-01T15:00:00"},
        {"12:00am", "2026-12-01T23:00:00"},
        {"noon", "2026-12-01T11:00:00"},
        {"midnight", "2026-12-01T23:00:00"},
        {"today", "2026-11-30T23:00:00"},
        {"tomorrow", "2026-12-01T23:00:00"},
        {"tomorrow 16:00", "2026-12-02T15:00:00"},
        {"tomorrowT16:00", "2026-12-02T15:00:00"},
        {"123126", "2026-12-30T23:00:00"},
        {"12/31/26", "2026-12-30T23:00:00"},
        {"12.31.26", "2026-12-30T23:00:00"},
        {"12/31/26 noon", "2026-12-31T11:00:00"},
        {"2027-01-01", "2026-12-31T23:00:00"},
        {"2027-01-01T16:00", "2027-01-01T15:00:00"},
        {"2027-01-01T16:00:30Z", "2027-01-01T16:00:30"},
        {"2027-01-01T16:00-05:30", "2027-01-01T21:30:00"},
        {"2028-02-29T00:00Z", "2028-02-29T00:00:00"},
    };
    (void)state;
    zone(BERLIN);
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        expect(now, rows[i].text, rows[i].want);
}

static void nothing_else_is_a_time(void **state)
{
    static const char *const rows[] = {
        "", "nowt", "now+", "now-1", "now+1fortnight", "now+1 hour", "now+99999999999999999999",
        "now+9223372036854775807weeks", "25:00", "16:60", "16", "16:0", "1600", "16:00x", "13:00pm",
        "0:30am", "2026-02-29", "2027-13-01", "2027-00-10", "2027-1-1", "2027-01-01T", "2027-01-01 ",
        "2027-01-01T16:00+25:00", "2027-01-01T16:00+1", "1969-12-31", "2200-01-01", "9999-01-01",
        "022926", "13/01/26", "12/31", "12/31.26", "1231267", "tomorrows", "noonish", "16:00Z",
        "1970-01-01T00:00+05:00",
    };
    (void)state;
    zone(BERLIN);
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        int64_t ns = 77;
        struct cw_error err = {0};
        int rc = cw_datetime_parse(rows[i], utc("2026-12-01T10:30:00"), &ns, &err);
        if (rc != -EINVAL && rc != -ERANGE)
            fail_msg("'%s' gave %d", rows[i], rc);
        assert_int_equal(ns, 77);
        assert_true(err.text[0] != '\0');
    }
}

static void summer_time_begins_and_ends(void **state)
{
    (void)state;
    zone(BERLIN);
    expect("2027-03-27T12:00:00", "2027-03-28T01:59:59", "2027-03-28T00:59:59");
    expect("2027-03-27T12:00:00", "2027-03-28T02:30", "2027-03-28T01:30:00"); /* shown as 3:30 */
    expect("2027-03-27T12:00:00", "2027-03-28T03:00", "2027-03-28T01:00:00");
    expect("2027-10-30T12:00:00", "2027-10-31T02:30", "2027-10-31T00:30:00"); /* the first of two */
    expect("2027-10-30T12:00:00", "2027-10-31T03:00", "2027-10-31T02:00:00");
    expect("2027-03-27T13:00:00", "tomorrow 13:00", "2027-03-28T11:00:00"); /* 23 hours are a day */
    expect("2027-03-27T13:00:00", "now+1day", "2027-03-28T13:00:00");
    expect("2027-12-31T22:30:00", "tomorrow", "2027-12-31T23:00:00"); /* over the year's end */
    zone("UTC0");
    expect("2027-10-30T12:00:00", "2027-10-31T02:30", "2027-10-31T02:30:00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_means_what_people_read),
        cmocka_unit_test(nothing_else_is_a_time),
        cmocka_unit_test(summer_time_begins_and_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
