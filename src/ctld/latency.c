/* See latency.h. */
#include "ctld/latency.h"

#include <stdlib.h>
#include <string.h>

void cw_latency_add(struct cw_latency *l, int64_t ns)
{
    int64_t us = ns < 0 ? 0 : ns / 1000;
    l->us[l->n++ % CW_LATENCY_KEPT] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
    if (ns > l->max_ns)
        l->max_ns = ns;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t cw_latency_quantile_us(const struct cw_latency *l, unsigned permille)
{
    uint32_t sorted[CW_LATENCY_KEPT];
    size_t n = l->n < CW_LATENCY_KEPT ? (size_t)l->n : CW_LATENCY_KEPT;
    if (n == 0)
        return 0;
    memcpy(sorted, l->us, n * sizeof sorted[0]);
    qsort(sorted, n, sizeof sorted[0], by_size);
    size_t rank = (n * permille + 999) / 1000; /* the smallest that covers so many */
    return sorted[rank == 0 ? 0 : rank - 1];
}
