/* Tests of quantity.c. */
#include "config.h"

#include "base/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

#define MIB (UINT64_C(1) << 20)

static const struct {
    const char *text;
    uint64_t want;
    int rc;
} sizes[] = {
    { "0", 0, 0 },
    { "512", 512 * MIB, 0 },
    { "512M", 512 * MIB, 0 },
    { "512m", 512 * MIB, 0 },
    { "512MB", 512 * MIB, 0 },
    { "512MiB", 512 * MIB, 0 },
    { "512mib", 512 * MIB, 0 },
    { "1K", 1024, 0 },
    { "4G", 4096 * MIB, 0 },
    { "1T", MIB *MIB, 0 },
    { "2P", 2048 * MIB *MIB, 0 },
    { "1000B", 1000, 0 },
    { "1.5G", 1536 * MIB, 0 },
    { "0.5", MIB / 2, 0 },
    { "0.1K", 103, 0 }, /* 102.4 rounds up */
    { "0.000000000000000001B", 1, 0 },
    { "16383P", 16383 * 1024 * MIB *MIB, 0 },
    { "18446744073709551615B", UINT64_MAX, 0 },
    { "18446744073709551615.5B", 0, -ERANGE },
    { "16384P", 0, -ERANGE },
    { "18446744073709551616B", 0, -ERANGE },
    { "99999999999999999999", 0, -ERANGE },
    { "", 0, -EINVAL },
    { "M", 0, -EINVAL },
    { "-1M", 0, -EINVAL },
    { "+1M", 0, -EINVAL },
    { " 1M", 0, -EINVAL },
    { "1M ", 0, -EINVAL },
    { "1 M", 0, -EINVAL },
    { "1.M", 0, -EINVAL },
    { ".5G", 0, -EINVAL },
    { "1.5.5G", 0, -EINVAL },
    { "1iB", 0, -EINVAL },
    { "1BB", 0, -EINVAL },
    { "1Mi B", 0, -EINVAL },
    { "1X", 0, -EINVAL },
    { "0x10", 0, -EINVAL },
    { "1e3", 0, -EINVAL },
    { "1.0000000000000000001G", 1024 * MIB + 1, 0 },
    { "0.99999999999999999999999999P", MIB * MIB * 1024, 0 },
    { "1.000000000000000000000000G", 1024 * MIB, 0 },
};

static void sizes_are_read_as_documented(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(sizes); i++) {
        struct cw_error err = { 0 };
        uint64_t got = 77;
        int rc = cw_size_parse(sizes[i].text, MIB, &got, &err);
        if (rc != sizes[i].rc || (rc == 0 && got != sizes[i].want) || (rc < 0 && got != 77))
            fail_msg("size '%s': rc %d, value %llu", sizes[i].text, rc, (unsigned long long)got);
        if (rc < 0)
            assert_memory_equal(err.text, "size '", 6);
    }
}

static void printed_sizes_read_back_the_same(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = { { 0, "0B" },
                  { 1000, "1000B" },
                  { 1024, "1K" },
                  { 1536 * MIB, "1536M" },
                  { 4096 * MIB, "4G" },
                  { UINT64_MAX, "18446744073709551615B" },
                  { UINT64_C(1) << 63, "8192P" } };
    char buf[32];

    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        uint64_t back = 1;
        assert_string_equal(cw_size_format(cases[i].bytes, buf, sizeof(buf)), cases[i].text);
        assert_int_equal(cw_size_parse(buf, MIB, &back, NULL), 0);
        assert_true(back == cases[i].bytes);
    }
}

static const struct {
    const char *text;
    uint64_t want;
    int rc;
} durations[] = {
    { "30", 1800, 0 },
    { "1:30", 90, 0 },
    { "90:00", 5400, 0 },
    { "1:00:00", 3600, 0 },
    { "00:90:00", 5400, 0 },
    { "2-0", 172800, 0 },
    { "2-12", 216000, 0 },
    { "2-12:30", 217800, 0 },
    { "2-12:30:15", 217815, 0 },
    { "1-00:00:00", 86400, 0 },
    { "90s", 90, 0 },
    { "5m", 300, 0 },
    { "2h", 7200, 0 },
    { "1d", 86400, 0 },
    { "1w", 604800, 0 },
    { "1h30m", 5400, 0 },
    { "1W2D3H4M5S", 788645, 0 },
    { "0s", 0, 0 },
    { "0:00", 0, 0 },
    { "0", CW_DURATION_UNLIMITED, 0 },
    { "00", CW_DURATION_UNLIMITED, 0 },
    { "infinite", CW_DURATION_UNLIMITED, 0 },
    { "UNLIMITED", CW_DURATION_UNLIMITED, 0 },
    { "3155760000s", CW_DURATION_MAX, 0 },
    { "3155760001s", 0, -ERANGE },
    { "99999999999999999999", 0, -ERANGE },
    { "18446744073709551615", 0, -ERANGE },
    { "307445734561825861", 0, -ERANGE }, /* times 60 wraps to a small number */
    { "99999999999999999999h", 0, -ERANGE },
    { "", 0, -EINVAL },
    { "-", 0, -EINVAL },
    { "-5", 0, -EINVAL },
    { "1-", 0, -EINVAL },
    { "1:", 0, -EINVAL },
    { ":30", 0, -EINVAL },
    { "1:2:3:4", 0, -EINVAL },
    { "1-2:3:4:5", 0, -EINVAL },
    { "1:2-3", 0, -EINVAL },
    { "1-2-3", 0, -EINVAL },
    { "1h1h", 0, -EINVAL },
    { "30m1h", 0, -EINVAL },
    { "1h30", 0, -EINVAL },
    { "h", 0, -EINVAL },
    { "1.5h", 0, -EINVAL },
    { "1y", 0, -EINVAL },
    { "1 h", 0, -EINVAL },
    { "forever", 0, -EINVAL },
};

static void durations_are_read_as_documented(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(durations); i++) {
        struct cw_error err = { 0 };
        uint64_t got = 77;
        int rc = cw_duration_parse(durations[i].text, &got, &err);
        if (rc != durations[i].rc || (rc == 0 && got != durations[i].want) || (rc < 0 && got != 77))
            fail_msg("duration '%s': rc %d, value %llu", durations[i].text, rc,
                     (unsigned long long)got);
        if (rc < 0)
            assert_memory_equal(err.text, "duration '", 10);
    }
}

static void printed_durations_read_back_the_same(void **state)
{
    static const uint64_t values[] = {
        0, 1, 59, 60, 3599, 3600, 86399, 86400, 90061, CW_DURATION_MAX, CW_DURATION_UNLIMITED
    };
    char buf[32];

    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(values); i++) {
        uint64_t back = 1;
        assert_int_equal(
            cw_duration_parse(cw_duration_format(values[i], buf, sizeof(buf)), &back, NULL), 0);
        assert_true(back == values[i]);
    }
    assert_string_equal(cw_duration_format(90061, buf, sizeof(buf)), "1-01:01:01");
    assert_string_equal(cw_duration_format(UINT64_MAX - 1, buf, sizeof(buf)),
                        "213503982334601-07:00:14");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_as_documented),
        cmocka_unit_test(printed_sizes_read_back_the_same),
        cmocka_unit_test(durations_are_read_as_documented),
        cmocka_unit_test(printed_durations_read_back_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
