/* Which cores a pick takes: a table of shapes, free cores, wishes and expected cores. */
#include "config.h"

#include "topo/corepick.h"
#include "base/idset.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* packages x NUMA nodes in each x L3 in each x cores in each */
struct shape {
    uint32_t packages, numas, l3s, cores;
};
#define DUAL { 2, 2, 2, 4 } /* 32 cores: L3 of 4, NUMA node of 8, package of 16 */
#define EPYC { 2, 4, 4, 8 } /* 256 cores: L3 of 8, NUMA node of 32, package of 128 */

static struct cw_coremap *make_map(struct shape s)
{
    uint32_t n = s.packages * s.numas * s.l3s * s.cores;
    cw_autofree uint32_t *l3 = cw_xcalloc(n, sizeof(*l3)), *numa = cw_xcalloc(n, sizeof(*numa)),
                         *package = cw_xcalloc(n, sizeof(*package));
    for (uint32_t i = 0; i < n; i++) {
        l3[i] = i / s.cores;
        numa[i] = l3[i] / s.l3s;
        package[i] = numa[i] / s.numas;
    }
    return cw_coremap_create(n, l3, numa, package);
}

static void words_of(const char *list, uint64_t *words)
{
    struct cw_idset set = { 0 };
    struct cw_error err;
    if (cw_idset_parse(list, strlen(list), CW_COREPICK_MAX - 1, &set, &err) < 0)
        fail_msg("%s: %s", list, err.text);
    for (size_t i = 0; i < set.n; i++)
        for (uint64_t c = set.r[i].first; c <= set.r[i].last; c++)
            words[c / 64] |= UINT64_C(1) << (c % 64);
    cw_idset_fini(&set);
}

static void list_of(const uint64_t *words, uint32_t n_words, struct cw_buf *out)
{
    struct cw_idset set = { 0 };
    for (uint64_t c = 0; c < n_words * 64ULL; c++)
        if (words[c / 64] >> (c % 64) & 1)
            cw_idset_add(&set, c, c);
    cw_idset_format(&set, out);
    cw_idset_fini(&set);
}

static const struct {
    const char *what;
    struct shape shape;
    const char *free_cores;
    uint32_t n;
    int prefer;
    const char *want; /* NULL: refused */
} cases[] = {
    { "one core of an idle machine is the first", DUAL, "0-31", 1, -1, "0" },
    { "a pick of one L3's size stays in one L3", DUAL, "1-31", 4, -1, "4-7" },
    { "the L3 with the fewest free that fits is taken", DUAL, "0-5,8-10,16-31", 2, -1, "4-5" },
    { "an exact fit wins over a larger hole before it", DUAL, "0-3,9-10,16-31", 2, -1, "9-10" },
    { "among equal L3 the fuller NUMA node is taken", DUAL, "0-7,8-11,16-31", 4, -1, "8-11" },
    { "among equal NUMA nodes the fuller package is taken", DUAL, "0-15,16-23", 8, -1, "16-23" },
    { "more than an L3 stays in one NUMA node", DUAL, "2-31", 6, -1, "2-7" },
    { "more than a NUMA node stays in one package", DUAL, "0-3,16-31", 10, -1, "16-25" },
    { "a scattered NUMA node is better than two", DUAL, "0,2,5,7,10,16", 3, -1, "0,2,5" },
    { "parts are taken largest first, then the tightest", DUAL, "0-3,4,8-11,12-13", 6, -1, "8-13" },
    { "a spread over packages takes whole nodes first", DUAL, "0-7,15,16-31", 20, -1, "0-3,16-31" },
    { "all free cores can be taken", DUAL, "0-31", 32, -1, "0-31" },
    { "one more than free is refused", DUAL, "0-30", 32, -1, NULL },
    { "none of none is a pick", DUAL, "", 0, -1, "" },
    { "one of none is refused", DUAL, "", 1, -1, NULL },
    { "the preferred node wins over a tighter fit", DUAL, "0-1,8-31", 2, 3, "24-25" },
    { "the preferred node wins over compactness", DUAL, "0-3,8,10,12,14", 4, 1, "8,10,12,14" },
    { "a full preferred node gives way to its package", DUAL, "0-7,24-27,30", 4, 2, "24-27" },
    { "a spread begins at the preferred node", DUAL, "0-15,16-18,24-31", 10, 2, "16-18,24-30" },
    { "a pick over packages begins at the preferred one", DUAL, "0-15,16-17", 17, 2, "0-14,16-17" },
    { "an unknown preferred node is no preference", DUAL, "4-31", 2, 9, "4-5" },
    { "12 cores near NUMA node 2 with 64-70 busy", { 2, 2, 4, 8 }, "0-63,71-127", 12, 2, "72-83" },
    { "bits past the last core do not count", { 1, 1, 1, 3 }, "0-9", 4, -1, NULL },
    { "a machine of one core gives it", { 1, 1, 1, 1 }, "0", 1, 0, "0" },
    { "a pick over word borders", EPYC, "60-67,100-140", 33, -1, "60-64,100-127" },
    { "half an EPYC is one package", EPYC, "0-126,128-255", 128, -1, "128-255" },
};

static void every_case_of_the_table_picks_what_it_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        uint64_t free_words[CW_COREPICK_MAX / 64] = { 0 }, got[CW_COREPICK_MAX / 64] = { 0 };
        struct cw_coremap *m = make_map(cases[i].shape);
        cw_autobuf struct cw_buf text = { 0 };
        words_of(cases[i].free_cores, free_words);
        bool ok = cw_corepick(m, free_words, cases[i].n, cases[i].prefer, got);
        list_of(got, cw_coremap_words(m), &text);
        const char *is = ok ? cw_buf_str(&text) : "refused";
        const char *want = cases[i].want != NULL ? cases[i].want : "refused";
        if (strcmp(is, want) != 0)
            fail_msg("%s: %s, not %s", cases[i].what, is, want);
        cw_coremap_destroy(m);
    }
}

static void a_refused_pick_leaves_ret_alone(void **state)
{
    (void)state;
    uint64_t free_words[1] = { 3 }, got[1] = { 0xabcd };
    struct cw_coremap *m = make_map((struct shape)DUAL);
    assert_false(cw_corepick(m, free_words, 3, -1, got));
    assert_int_equal(got[0], 0xabcd);
    cw_coremap_destroy(m);
}

static void one_l3_over_two_numa_nodes_still_nests(void **state)
{
    (void)state;
    const uint32_t l3[] = { 0, 0, 0, 0 }, numa[] = { 0, 0, 1, 1 }, package[] = { 0, 0, 0, 0 };
    struct cw_coremap *m = cw_coremap_create(4, l3, numa, package);
    uint64_t free_words[1] = { 0xe }, got[1];
    assert_true(cw_corepick(m, free_words, 2, -1, got));
    assert_int_equal(got[0], 0xc);
    cw_coremap_destroy(m);
}

static void an_asymmetric_machine_uses_its_small_package_for_small_picks(void **state)
{
    (void)state;
    /* package 0: one L3 of 5 cores; package 1: one L3 of 2; numbers need not start at 0 */
    const uint32_t l3[] = { 7, 7, 7, 7, 7, 9, 9 }, numa[] = { 4, 4, 4, 4, 4, 8, 8 },
                   package[] = { 1, 1, 1, 1, 1, 3, 3 };
    struct cw_coremap *m = cw_coremap_create(7, l3, numa, package);
    uint64_t free_words[1] = { 0x7f }, got[1];
    assert_true(cw_corepick(m, free_words, 2, -1, got));
    assert_int_equal(got[0], 0x60);
    assert_true(cw_corepick(m, free_words, 2, 4, got));
    assert_int_equal(got[0], 0x03);
    cw_coremap_destroy(m);
}

static void a_machine_without_cores_refuses_every_pick(void **state)
{
    (void)state;
    struct cw_coremap *m = cw_coremap_create(0, NULL, NULL, NULL);
    uint64_t none[1] = { 0 };
    assert_int_equal(cw_coremap_words(m), 0);
    assert_false(cw_corepick(m, none, 1, -1, none));
    cw_coremap_destroy(m);
    cw_coremap_destroy(NULL);
}

static uint64_t next_random(uint64_t *s) /* xorshift64 (Marsaglia) */
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static uint32_t weight(const uint64_t *w, uint32_t n)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (uint32_t)__builtin_popcountll(w[i]);
    return sum;
}

static void random_picks_take_exactly_n_free_cores_and_repeat_themselves(void **state)
{
    (void)state;
    uint64_t seed = 42;
    struct cw_coremap *m = make_map((struct shape)EPYC);
    for (int round = 0; round < 20000; round++) {
        uint64_t free_words[4], got[4], again[4];
        for (int w = 0; w < 4; w++)
            free_words[w] = next_random(&seed) & next_random(&seed);
        uint32_t n_free = weight(free_words, 4), n = (uint32_t)(next_random(&seed) % 100);
        int prefer = (int)(next_random(&seed) % 10) - 1;
        bool ok = cw_corepick(m, free_words, n, prefer, got);
        assert_int_equal(ok, n <= n_free);
        if (!ok)
            continue;
        assert_int_equal(weight(got, 4), n);
        for (int w = 0; w < 4; w++)
            assert_int_equal(got[w] & ~free_words[w], 0);
        assert_true(cw_corepick(m, free_words, n, prefer, again));
        assert_memory_equal(got, again, sizeof(got));
    }
    cw_coremap_destroy(m);
}

/* The bar is far above what it takes (a fraction of a microsecond) so that a busy machine passes; a
 * pick that became quadratic in cores does not. */
static void a_pick_on_256_cores_takes_less_than_20_microseconds(void **state)
{
    (void)state;
    struct cw_coremap *m = make_map((struct shape)EPYC);
    uint64_t free_words[4] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX }, got[4];
    struct timespec a, b;
    const int rounds = 10000;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (int i = 0; i < rounds; i++)
        assert_true(cw_corepick(m, free_words, 1 + (uint32_t)(i % 40), -1, got));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
    double us = ns / 1e3 / rounds;
    print_message("# %.3f us a pick\n", us);
    assert_true(us < 20);
    cw_coremap_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_of_the_table_picks_what_it_says),
        cmocka_unit_test(a_refused_pick_leaves_ret_alone),
        cmocka_unit_test(one_l3_over_two_numa_nodes_still_nests),
        cmocka_unit_test(an_asymmetric_machine_uses_its_small_package_for_small_picks),
        cmocka_unit_test(a_machine_without_cores_refuses_every_pick),
        cmocka_unit_test(random_picks_take_exactly_n_free_cores_and_repeat_themselves),
        cmocka_unit_test(a_pick_on_256_cores_takes_less_than_20_microseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
