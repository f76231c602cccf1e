/* The two clocks. Test: none (one line each). */
#include "config.h"

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * CW_NS_PER_S + ts.tv_nsec;
}

int64_t cw_clock_real_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

int64_t cw_clock_mono_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

char *cw_clock_format(int64_t real_ns, char *buf, size_t cap)
{
    time_t s = (time_t)(real_ns / CW_NS_PER_S);
    struct tm tm;

    if (real_ns % CW_NS_PER_S < 0)
        s--;
    gmtime_r(&s, &tm); /* an int64 of ns spans 1677..2262: cannot fail */
    if (strftime(buf, cap, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0 && cap > 0)
        buf[0] = '\0';
    return buf;
}
