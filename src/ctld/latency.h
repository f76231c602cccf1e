#pragma once
/* How long something took, lately: the last thousand times, exact quantiles of them, and the longest
 * ever. Adding costs a store. Pure. Test: statistics_test.c. */
#include <stdint.h>

#define CW_LATENCY_KEPT 1024u

struct cw_latency {
    uint64_t n; /* ever */
    int64_t max_ns;
    uint32_t us[CW_LATENCY_KEPT];
};
void cw_latency_add(struct cw_latency *l, int64_t ns);
/* In us; of the kept ones, permille of which took no longer. 0 when there are none. */
uint32_t cw_latency_quantile_us(const struct cw_latency *l, unsigned permille);
