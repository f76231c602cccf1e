/* Counters and quantiles behind crun-diag. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ctld/latency.h"
#include "ctld/statistics.h"

#define MINUTE (60 * CW_NS_PER_S)

static void quantiles_are_those_of_the_last_thousand(void **state)
{
    struct cw_latency l = {0};
    (void)state;
    assert_int_equal(cw_latency_quantile_us(&l, 500), 0);
    for (int i = 1; i <= 100; i++)
        cw_latency_add(&l, i * 1000);
    assert_int_equal(cw_latency_quantile_us(&l, 500), 50);
    assert_int_equal(cw_latency_quantile_us(&l, 990), 99);
    assert_int_equal(cw_latency_quantile_us(&l, 1000), 100);
    for (unsigned i = 0; i < CW_LATENCY_KEPT; i++)
        cw_latency_add(&l, 7000);
    assert_int_equal(cw_latency_quantile_us(&l, 1000), 7);
    assert_int_equal(l.max_ns, 100 * 1000);
    assert_int_equal(l.n, 100 + CW_LATENCY_KEPT);
}

static void requests_are_counted_by_the_whole_minute(void **state)
{
    uint64_t n, rate;
    struct cw_statistics *s = cw_statistics_create();
    (void)state;
    for (int i = 0; i < 5; i++)
        cw_statistics_request(s, CW_KIND_JOBS, 7, 10 * MINUTE);
    cw_statistics_request(s, CW_KIND_JOBS, 7, 11 * MINUTE);
    cw_statistics_kind(s, CW_KIND_JOBS, 11 * MINUTE, &n, &rate);
    assert_int_equal(n, 6);
    assert_int_equal(rate, 5);
    cw_statistics_kind(s, CW_KIND_JOBS, 12 * MINUTE, &n, &rate);
    assert_int_equal(rate, 1);
    cw_statistics_kind(s, CW_KIND_JOBS, 13 * MINUTE, &n, &rate);
    assert_int_equal(rate, 0);
    cw_statistics_kind(s, CW_KIND_WAIT, 11 * MINUTE, &n, &rate);
    assert_int_equal(n, 0);
    cw_statistics_destroy(s);
}

static void the_ten_users_who_ask_most_come_first(void **state)
{
    struct cw_requestcount top[10];
    struct cw_statistics *s = cw_statistics_create();
    (void)state;
    for (uint32_t uid = 0; uid < 30; uid++)
        for (uint32_t i = 0; i <= uid * 7 % 30; i++) /* 7 and 30 have no common factor */
            cw_statistics_request(s, CW_KIND_PING, uid, 0);
    assert_int_equal(cw_statistics_users(s, 0, top, 10), 10);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(top[i].n, 30 - i);
    assert_int_equal(top[0].uid * 7 % 30, 29);
    cw_statistics_destroy(s);
}

static void users_beyond_the_table_share_one_row(void **state)
{
    struct cw_requestcount top[1];
    struct cw_statistics *s = cw_statistics_create();
    (void)state;
    for (uint32_t uid = 0; uid < CW_STATISTICS_USERS_MAX + 50; uid++)
        cw_statistics_request(s, CW_KIND_PING, uid, 0);
    assert_int_equal(cw_statistics_users(s, 0, top, 1), 1);
    assert_int_equal(top[0].uid, CW_STATISTICS_OTHERS);
    assert_int_equal(top[0].n, 50);
    cw_statistics_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_the_last_thousand),
        cmocka_unit_test(requests_are_counted_by_the_whole_minute),
        cmocka_unit_test(the_ten_users_who_ask_most_come_first),
        cmocka_unit_test(users_beyond_the_table_share_one_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
