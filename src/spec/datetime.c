/* Dates and times as people type them (contract: datetime.h). Test: datetime_test.c,
 * fuzz_datetime.c. */
#include "spec/datetime.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"

/* A day and a time of day as far as they were given. */
struct parts {
    bool has_day, has_time, has_zone;
    int year, month, day; /* month and day from 1 */
    int hour, minute, second;
    int zone_s; /* east of Greenwich */
};

static int bad(const char *text, struct cw_error *err)
{
    return cw_fail(err, -EINVAL,
                   "'%.40s' is no time: now+2hours, 16:00, tomorrow, noon, 12/31/26, 2026-12-31 or "
                   "2026-12-31T16:00 are some",
                   text);
}

/* Exactly n digits at *p; -1: they are not there. */
static int digits(const char **p, int n)
{
    int v = 0;
    for (int i = 0; i < n; i++) {
        if (!isdigit((unsigned char)(*p)[i]))
            return -1;
        v = v * 10 + ((*p)[i] - '0');
    }
    *p += n;
    return v;
}

static bool take(const char **p, char c)
{
    bool there = **p == c;
    *p += there;
    return there;
}

static bool take_word(const char **p, const char *word)
{
    size_t n = strlen(word);
    bool there = strncasecmp(*p, word, n) == 0 && !isalnum((unsigned char)(*p)[n]);
    if (!there && strncasecmp(*p, word, n) == 0 && ((*p)[n] == 'T' || (*p)[n] == 't'))
        there = isdigit((unsigned char)(*p)[n + 1]) != 0;
    *p += there ? n : 0;
    return there;
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* ---- the present plus something ---- */
static int64_t unit_seconds(const char *text)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}, {"week", 604800}};
    size_t n = strlen(text);
    if (n == 0)
        return 1;
    for (size_t i = 0; i < CW_ARRAY_LEN(units); i++) {
        size_t whole = strlen(units[i].name);
        if (n == 1 && tolower((unsigned char)text[0]) == units[i].name[0])
            return units[i].seconds;
        if (strncasecmp(text, units[i].name, whole) == 0 &&
            (n == whole || (n == whole + 1 && tolower((unsigned char)text[whole]) == 's')))
            return units[i].seconds;
    }
    return 0;
}

static int after_now(const char *text, const char *p, int64_t now_ns, int64_t *ret,
                     struct cw_error *err)
{
    int64_t n = 0, ns;
    if (*p == '\0') {
        *ret = now_ns;
        return 0;
    }
    if (!take(&p, '+') || !isdigit((unsigned char)*p))
        return bad(text, err);
    for (; isdigit((unsigned char)*p); p++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
            return cw_fail(err, -ERANGE, "'%.40s' is too far away", text);
    int64_t unit = unit_seconds(p);
    if (unit == 0)
        return cw_fail(err, -EINVAL,
                       "'%.40s': '%.20s' is no unit: seconds, minutes, hours, days, weeks", text, p);
    if (__builtin_mul_overflow(n, unit, &n) || __builtin_mul_overflow(n, CW_NS_PER_S, &ns) ||
        __builtin_add_overflow(now_ns, ns, &ns))
        return cw_fail(err, -ERANGE, "'%.40s' is too far away", text);
    *ret = ns;
    return 0;
}

/* ---- days ---- */
static void day_of(int64_t now_ns, int plus, struct parts *d)
{
    time_t t = (time_t)(now_ns / CW_NS_PER_S);
    struct tm tm;
    localtime_r(&t, &tm);
    d->has_day = true;
    d->year = tm.tm_year + 1900;
    d->month = tm.tm_mon + 1;
    d->day = tm.tm_mday + plus;
    if (d->day > month_days(d->year, d->month)) {
        d->day = 1;
        d->month++;
    }
    if (d->month > 12) {
        d->month = 1;
        d->year++;
    }
}

/* MM DD YY with the same separator (or none) between them. */
static bool short_date(const char **p, char separator, struct parts *d)
{
    const char *q = *p;
    d->month = digits(&q, 2);
    bool good = d->month >= 0 && (separator == 0 || take(&q, separator));
    d->day = good ? digits(&q, 2) : -1;
    good = d->day >= 0 && (separator == 0 || take(&q, separator));
    d->year = good ? digits(&q, 2) : -1;
    if (d->year < 0 || isdigit((unsigned char)*q))
        return false;
    d->year += 2000;
    d->has_day = true;
    *p = q;
    return true;
}

static bool long_date(const char **p, struct parts *d)
{
    const char *q = *p;
    d->year = digits(&q, 4);
    d->month = d->year >= 0 && take(&q, '-') ? digits(&q, 2) : -1;
    d->day = d->month >= 0 && take(&q, '-') ? digits(&q, 2) : -1;
    if (d->day < 0)
        return false;
    d->has_day = true;
    *p = q;
    return true;
}

static void read_day(const char **p, int64_t now_ns, struct parts *d)
{
    if (take_word(p, "today"))
        day_of(now_ns, 0, d);
    else if (take_word(p, "tomorrow"))
        day_of(now_ns, 1, d);
    else if (!long_date(p, d) && !short_date(p, '/', d) && !short_date(p, '.', d))
        short_date(p, 0, d);
}

/* ---- times of day ---- */
static bool read_half(const char **p, struct parts *d)
{
    bool pm = strncasecmp(*p, "pm", 2) == 0;
    if (!pm && strncasecmp(*p, "am", 2) != 0)
        return true;
    if (d->hour < 1 || d->hour > 12)
        return false;
    d->hour = d->hour % 12 + (pm ? 12 : 0);
    *p += 2;
    return true;
}

static bool read_time(const char **p, struct parts *d)
{
    if (take_word(p, "midnight") || take_word(p, "noon")) {
        d->hour = tolower((unsigned char)(*p)[-1]) == 'n' ? 12 : 0;
        d->has_time = true;
        return true;
    }
    bool two = isdigit((unsigned char)(*p)[0]) && isdigit((unsigned char)(*p)[1]);
    d->hour = digits(p, two ? 2 : 1);
    d->minute = d->hour >= 0 && take(p, ':') ? digits(p, 2) : -1;
    d->second = d->minute >= 0 && take(p, ':') ? digits(p, 2) : 0;
    d->has_time = true;
    return d->minute >= 0 && d->second >= 0 && read_half(p, d);
}

static bool read_zone(const char **p, struct parts *d)
{
    bool west = **p == '-';
    if (take(p, 'Z') || take(p, 'z')) {
        d->has_zone = true;
        return true;
    }
    if (!take(p, '+') && !take(p, '-'))
        return true;
    int h = digits(p, 2), m = h >= 0 && take(p, ':') ? digits(p, 2) : -1;
    if (m < 0 || m > 59 || h > 18)
        return false;
    d->has_zone = true;
    d->zone_s = (h * 3600 + m * 60) * (west ? -1 : 1);
    return true;
}

/* ---- to seconds since 1970 ---- */
static bool shows(const struct tm *asked, const struct tm *got)
{
    return asked->tm_mday == got->tm_mday && asked->tm_hour == got->tm_hour &&
           asked->tm_min == got->tm_min && asked->tm_sec == got->tm_sec;
}

/* Of a time shown twice the first (summer time still holds); a skipped one is read as winter time,
 * which puts it behind the gap. */
static int64_t local_seconds(const struct tm *asked)
{
    for (int summer = 1; summer >= -1; summer--) {
        struct tm tm = *asked;
        tm.tm_isdst = summer;
        time_t t = mktime(&tm);
        if (shows(asked, &tm) && (summer < 0 || (tm.tm_isdst > 0) == summer))
            return (int64_t)t;
    }
    struct tm tm = *asked;
    tm.tm_isdst = 0;
    return (int64_t)mktime(&tm);
}

static int64_t to_seconds(const struct parts *d)
{
    struct tm tm = {.tm_year = d->year - 1900,
                    .tm_mon = d->month - 1,
                    .tm_mday = d->day,
                    .tm_hour = d->hour,
                    .tm_min = d->minute,
                    .tm_sec = d->second};
    return d->has_zone ? (int64_t)timegm(&tm) - d->zone_s : local_seconds(&tm);
}

static int check_parts(const char *text, const struct parts *d, struct cw_error *err)
{
    if (d->hour > 23 || d->minute > 59 || d->second > 59)
        return cw_fail(err, -EINVAL, "'%.40s': %02d:%02d:%02d is no time of day", text, d->hour,
                       d->minute, d->second);
    if (d->month < 1 || d->month > 12 || d->day < 1 || d->day > month_days(d->year, d->month))
        return cw_fail(err, -EINVAL, "'%.40s': there is no day %d of month %d in %d", text, d->day,
                       d->month, d->year);
    if (d->year < 1970 || d->year > CW_DATETIME_MAX_YEAR)
        return cw_fail(err, -ERANGE, "'%.40s': the year is not from 1970 to %d", text,
                       CW_DATETIME_MAX_YEAR);
    return 0;
}

static int read_parts(const char *text, int64_t now_ns, struct parts *d, struct cw_error *err)
{
    const char *p = text;
    read_day(&p, now_ns, d);
    bool more = !d->has_day || *p != '\0';
    if (d->has_day && more && !take(&p, 'T') && !take(&p, 't') && !take(&p, ' '))
        return bad(text, err);
    if (more && (!read_time(&p, d) || (d->has_day && !read_zone(&p, d)) || *p != '\0'))
        return bad(text, err);
    return 0;
}

int cw_datetime_parse(const char *text, int64_t now_ns, int64_t *ret_ns, struct cw_error *err)
{
    struct parts d = {0};
    int64_t ns = 0;
    const int64_t end = INT64_C(7258118400) * CW_NS_PER_S; /* 2200-01-01 */
    if (now_ns < 0 || now_ns >= end)
        return cw_fail(err, -ERANGE, "the clock is not between 1970 and %d", CW_DATETIME_MAX_YEAR);
    if (strncasecmp(text, "now", 3) == 0) {
        int rc = after_now(text, text + 3, now_ns, &ns, err);
        if (rc < 0)
            return rc;
    } else {
        int rc = read_parts(text, now_ns, &d, err);
        bool time_only = !d.has_day;
        if (rc == 0 && time_only)
            day_of(now_ns, 0, &d);
        if (rc == 0)
            rc = check_parts(text, &d, err);
        if (rc < 0)
            return rc;
        ns = to_seconds(&d) * CW_NS_PER_S;
        if (time_only && ns <= now_ns) {
            day_of(now_ns, 1, &d);
            ns = to_seconds(&d) * CW_NS_PER_S;
        }
    }
    if (ns < 0 || ns >= end)
        return cw_fail(err, -ERANGE, "'%.40s' is not between 1970 and %d", text,
                       CW_DATETIME_MAX_YEAR);
    *ret_ns = ns;
    return 0;
}

char *cw_datetime_format(int64_t ns, char *buf, size_t cap)
{
    return cw_clock_format(ns, buf, cap);
}
