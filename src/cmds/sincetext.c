/* See sincetext.h. */
#include "cmds/sincetext.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/quantity.h"

int64_t cw_since_midnight(int64_t now_ns)
{
    time_t now = (time_t)(now_ns / CW_NS_PER_S);
    struct tm tm;
    localtime_r(&now, &tm);
    tm.tm_sec = tm.tm_min = tm.tm_hour = 0;
    tm.tm_isdst = -1;
    return (int64_t)mktime(&tm) * CW_NS_PER_S;
}

/* "now", "now-2hours", "now-90": seconds where no unit is named. */
static int since_now(const char *text, int64_t now_ns, int64_t *ret_ns, struct cw_error *err)
{
    static const struct {
        const char *name;
        int64_t s;
    } units[] = {{"", 1},        {"seconds", 1}, {"minutes", 60}, {"hours", 3600},
                 {"days", 86400}, {"weeks", 7 * 86400}};
    char *end;
    *ret_ns = now_ns;
    if (text[3] == '\0')
        return 0;
    long n = strtol(text + 4, &end, 10);
    if ((text[3] == '-' || text[3] == '+') && end != text + 4 && n >= 0 && n < 1000000000)
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
            size_t len = strlen(units[i].name);
            if (strcmp(end, units[i].name) != 0 &&
                !(len > 1 && strlen(end) == len - 1 && strncmp(end, units[i].name, len - 1) == 0))
                continue;
            int64_t off;
            if (__builtin_mul_overflow(n * units[i].s, CW_NS_PER_S, &off))
                break;
            *ret_ns = text[3] == '-' ? now_ns - off : now_ns + off;
            return 0;
        }
    return cw_fail(err, -EINVAL, "time '%s': allowed is now-COUNT[seconds|minutes|hours|days|weeks]",
                   text);
}

static bool since_date(const char *text, int64_t *ret_ns)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);
        if (end == NULL || (*end != '\0' && strcmp(end, "Z") != 0))
            continue;
        tm.tm_isdst = -1;
        *ret_ns = (int64_t)(*end == 'Z' ? timegm(&tm) : mktime(&tm)) * CW_NS_PER_S;
        return true;
    }
    return false;
}

int cw_since_parse(const char *text, int64_t now_ns, int64_t *ret_ns, struct cw_error *err)
{
    uint64_t s;
    if (strncmp(text, "now", 3) == 0)
        return since_now(text, now_ns, ret_ns, err);
    if (strcmp(text, "today") == 0 || strcmp(text, "midnight") == 0) {
        *ret_ns = cw_since_midnight(now_ns);
        return 0;
    }
    if (since_date(text, ret_ns))
        return 0;
    int rc = cw_duration_parse(text, &s, NULL);
    if (rc < 0)
        return cw_fail(err, rc,
                       "time '%s' is neither how long ago (2h, 7d) nor a moment (now-2hours, today, "
                       "2026-11-30, 2026-11-30T20:47:52)",
                       text);
    *ret_ns = s == CW_DURATION_UNLIMITED ? 0 : now_ns - (int64_t)s * CW_NS_PER_S;
    return 0;
}
