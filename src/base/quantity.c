/* Sizes and durations as people type them.
 *
 * All arithmetic is checked; whatever a printer prints, the parser reads back as the same value.
 * Test: quantity_test.c, fuzz_quantity.c. */
#include "config.h"

#include "base/quantity.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char size_letters[] = "BKMGTP"; /* each 1024 times the one before */

/* Digits at *p as a number; false when there are none or it overflows (*ret_overflow tells which).
 */
static bool take_number(const char **p, uint64_t *ret, bool *ret_overflow)
{
    const char *s = *p;
    uint64_t n = 0;

    *ret_overflow = false;
    for (; *s >= '0' && *s <= '9'; s++) {
        if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n)) {
            *ret_overflow = true;
            return false;
        }
    }
    if (s == *p)
        return false;
    *p = s;
    *ret = n;
    return true;
}

/* [K|M|G|T|P][i][B], or nothing at all for unit_bytes. */
static bool take_unit(const char **p, uint64_t unit_bytes, uint64_t *ret)
{
    const char *s = *p;

    if (*s == '\0') {
        *ret = unit_bytes;
        return true;
    }
    const char *letter = strchr(size_letters, toupper((unsigned char)*s++));
    if (letter == NULL)
        return false;
    *ret = UINT64_C(1) << (10 * (letter - size_letters));
    if (letter != size_letters) {
        if (*s == 'i' || *s == 'I')
            s++;
        if (*s == 'b' || *s == 'B')
            s++;
    }
    *p = s;
    return *s == '\0';
}

/* ".digits"; how many there are. */
static bool take_fraction(const char **p, size_t *ret_digits)
{
    *ret_digits = strspn(*p + 1, "0123456789");
    *p += 1 + *ret_digits;
    return *ret_digits > 0;
}

/* 0.DIGITS times unit: from the last digit to the first, so that nothing
 * grows beyond 10 times unit; rounded up to whole bytes. */
static uint64_t fraction_of(const char *digits, size_t n, uint64_t unit)
{
    uint64_t part = 0;
    bool rest = false;

    while (n-- > 0) {
        uint64_t sum = part + (uint64_t)(digits[n] - '0') * unit;
        part = sum / 10;
        rest = rest || sum % 10 != 0;
    }
    return part + rest;
}

int cw_size_parse(const char *text, uint64_t unit_bytes, uint64_t *ret_bytes, struct cw_error *err)
{
    uint64_t whole, unit, total;
    const char *p = text, *fraction;
    size_t digits = 0;
    bool overflow;

    if (!take_number(&p, &whole, &overflow)) {
        if (overflow)
            return cw_fail(err, -ERANGE, "size '%.64s': too large", text);
        return cw_fail(err, -EINVAL, "size '%.64s': a number like 512M or 1.5G is expected", text);
    }
    fraction = p + 1;
    if (*p == '.' && !take_fraction(&p, &digits))
        return cw_fail(err, -EINVAL, "size '%.64s': digits are expected behind the point", text);
    if (!take_unit(&p, unit_bytes, &unit))
        return cw_fail(err, -EINVAL,
                       "size '%.64s': the unit may be K, M, G, T or P (1024-based), or B", text);
    if (__builtin_mul_overflow(whole, unit, &total) ||
        __builtin_add_overflow(total, fraction_of(fraction, digits, unit), &total))
        return cw_fail(err, -ERANGE, "size '%.64s': too large", text);
    *ret_bytes = total;
    return 0;
}

char *cw_size_format(uint64_t bytes, char *buf, size_t cap)
{
    size_t i = 0;

    while (bytes > 0 && bytes % 1024 == 0 && size_letters[i + 1] != '\0') {
        bytes /= 1024;
        i++;
    }
    snprintf(buf, cap, "%" PRIu64 "%c", bytes, size_letters[i]);
    return buf;
}

static const struct unit {
    char letter;
    uint64_t seconds;
} time_units[] = { { 'w', 604800 }, { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };
#define N_TIME_UNITS (sizeof(time_units) / sizeof(time_units[0]))

static int bad_duration(const char *text, struct cw_error *err)
{
    return cw_fail(
        err, -EINVAL,
        "duration '%.64s': expected minutes, M:S, H:M:S, D-H[:M[:S]], parts like 1h30m, or "
        "'unlimited'",
        text);
}

static int long_duration(const char *text, struct cw_error *err)
{
    return cw_fail(err, -ERANGE, "duration '%.64s': longer than 100 years; 'unlimited' has no end",
                   text);
}

static bool add_scaled(uint64_t *total, uint64_t n, uint64_t scale)
{
    uint64_t part;

    return !__builtin_mul_overflow(n, scale, &part) &&
           !__builtin_add_overflow(*total, part, total) && *total <= CW_DURATION_MAX;
}

/* Parts with unit letters, from large to small: 1d12h, 90s. */
static int parse_parts(const char *text, uint64_t *ret, struct cw_error *err)
{
    const char *p = text;
    uint64_t total = 0, n;
    size_t unit = 0;
    bool overflow;

    while (*p != '\0') {
        if (!take_number(&p, &n, &overflow))
            return overflow ? long_duration(text, err) : bad_duration(text, err);
        while (unit < N_TIME_UNITS && time_units[unit].letter != tolower((unsigned char)*p))
            unit++;
        if (unit == N_TIME_UNITS)
            return bad_duration(text, err);
        if (!add_scaled(&total, n, time_units[unit++].seconds))
            return long_duration(text, err);
        p++;
    }
    *ret = total;
    return 0;
}

/* Numbers between ':' and at most one '-' behind the first; f[0..n). */
static int split_fields(const char *text, uint64_t f[4], size_t *ret_n, bool *ret_days,
                        struct cw_error *err)
{
    const char *p = text;
    bool overflow;
    size_t n = 0;

    *ret_days = false;
    for (;;) {
        if (n == 4)
            return bad_duration(text, err);
        if (!take_number(&p, &f[n], &overflow))
            return overflow ? long_duration(text, err) : bad_duration(text, err);
        n++;
        if (*p == '\0')
            break;
        if (*p == '-' && n == 1)
            *ret_days = true;
        else if (*p != ':')
            return bad_duration(text, err);
        p++;
    }
    *ret_n = n;
    return 0;
}

static int parse_clock(const char *text, uint64_t *ret, struct cw_error *err)
{
    /* Seconds that the first field stands for, by whether days lead and how many fields there are.
     */
    static const uint64_t scale[4] = { 86400, 3600, 60, 1 };
    uint64_t f[4], total = 0;
    bool days = false;
    size_t n = 0;
    int rc = split_fields(text, f, &n, &days, err);

    if (rc < 0)
        return rc;
    if (!days && n == 4)
        return bad_duration(text, err);
    if (!days && n == 1 && f[0] == 0) {
        *ret = CW_DURATION_UNLIMITED;
        return 0;
    }
    size_t at = days ? 0 : n == 3 ? 1 : 2;
    for (size_t i = 0; i < n; i++) {
        if (!add_scaled(&total, f[i], scale[at + i]))
            return long_duration(text, err);
    }
    *ret = total;
    return 0;
}

int cw_duration_parse(const char *text, uint64_t *ret_seconds, struct cw_error *err)
{
    if (strcasecmp(text, "infinite") == 0 || strcasecmp(text, "unlimited") == 0) {
        *ret_seconds = CW_DURATION_UNLIMITED;
        return 0;
    }
    if (*text == '\0')
        return bad_duration(text, err);
    if (text[strspn(text, "0123456789:-")] == '\0')
        return parse_clock(text, ret_seconds, err);
    return parse_parts(text, ret_seconds, err);
}

char *cw_duration_format(uint64_t seconds, char *buf, size_t cap)
{
    uint64_t days = seconds / 86400;
    unsigned rest = (unsigned)(seconds % 86400);

    if (seconds == CW_DURATION_UNLIMITED)
        snprintf(buf, cap, "unlimited");
    else if (days > 0)
        snprintf(buf, cap, "%" PRIu64 "-%02u:%02u:%02u", days, rest / 3600, rest / 60 % 60,
                 rest % 60);
    else
        snprintf(buf, cap, "%02u:%02u:%02u", rest / 3600, rest / 60 % 60, rest % 60);
    return buf;
}
