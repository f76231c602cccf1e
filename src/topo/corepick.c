/* Choosing cores by best fit over nested domains.
 *
 * The domains of a node form a tree of four levels: L3, NUMA node, package, whole node. A domain is
 * keyed by all numbers above it, so the tree nests even where the hardware does not (one L3 over
 * two NUMA nodes). A pick finds the lowest level at which one domain holds all n, and there the
 * domain with the fewest free cores. A pick that spans domains takes the fewest of them: largest
 * first, and the tightest fit for the rest. Test: corepick_test.c. */
#include "config.h"

#include "topo/corepick.h"

#include "base/mem.h"

#include <string.h>

enum level { LEVEL_L3, LEVEL_NUMA, LEVEL_PACKAGE, LEVEL_NODE, LEVEL_N };
#define MAX_WORDS (CW_COREPICK_MAX / 64)

struct domain {
    uint32_t
        up[LEVEL_N]; /* index of the domain that holds this one, per level (own index at its own) */
    uint32_t numa;   /* number given by the caller */
    uint32_t lo, hi; /* words of the mask that are not zero: [lo, hi) */
    uint64_t *mask;
};

struct cw_coremap {
    uint32_t words;
    uint32_t n[LEVEL_N];
    struct domain *d[LEVEL_N];
    uint64_t *masks;
};

/* ---- the map --------------------------------------------------------------------------------- */

struct place {
    uint32_t key[LEVEL_N]; /* domain numbers of one core, LEVEL_NODE always 0 */
    uint32_t at[LEVEL_N];  /* its domain's index per level */
};

/* Numbers the domains of one level in the order of their first cores; the levels above are done. */
static void number_level(struct cw_coremap *m, struct place *p, uint32_t n_cores, int level)
{
    m->d[level] = cw_xcalloc(n_cores > 0 ? n_cores : 1, sizeof(struct domain));
    for (uint32_t i = 0; i < n_cores; i++) {
        uint32_t k = 0;
        uint32_t above = level == LEVEL_NODE ? 0 : p[i].at[level + 1];
        for (uint32_t first = 0; k < m->n[level]; k++) {
            first = m->d[level][k].lo; /* while building: the first core of the domain */
            if (p[first].key[level] == p[i].key[level] &&
                (level == LEVEL_NODE || p[first].at[level + 1] == above))
                break;
        }
        p[i].at[level] = k;
        if (k < m->n[level])
            continue;
        struct domain *d = &m->d[level][m->n[level]++];
        d->lo = i;
        d->numa = p[i].key[LEVEL_NUMA];
        for (int up = level; up < LEVEL_N; up++)
            d->up[up] = p[i].at[up];
    }
}

static void fill_masks(struct cw_coremap *m, const struct place *p, uint32_t n_cores)
{
    size_t total = 0;
    for (int level = 0; level < LEVEL_N; level++)
        total += m->n[level];
    m->masks = cw_xcalloc(total * m->words + 1, sizeof(uint64_t));
    uint64_t *next = m->masks;
    for (int level = 0; level < LEVEL_N; level++) {
        for (uint32_t k = 0; k < m->n[level]; k++, next += m->words) {
            m->d[level][k].mask = next;
            m->d[level][k].lo /= 64;
        }
        for (uint32_t i = 0; i < n_cores; i++) {
            struct domain *d = &m->d[level][p[i].at[level]];
            d->mask[i / 64] |= UINT64_C(1) << (i % 64);
            d->hi = i / 64 + 1;
        }
    }
}

struct cw_coremap *cw_coremap_create(uint32_t n_cores, const uint32_t *l3, const uint32_t *numa,
                                     const uint32_t *package)
{
    if (n_cores > CW_COREPICK_MAX)
        n_cores = CW_COREPICK_MAX;
    struct cw_coremap *m = cw_xcalloc(1, sizeof(*m));
    m->words = (n_cores + 63) / 64;
    cw_autofree struct place *p = cw_xcalloc(n_cores > 0 ? n_cores : 1, sizeof(*p));
    for (uint32_t i = 0; i < n_cores; i++) {
        p[i].key[LEVEL_L3] = l3[i];
        p[i].key[LEVEL_NUMA] = numa[i];
        p[i].key[LEVEL_PACKAGE] = package[i];
    }
    for (int level = LEVEL_N - 1; level >= 0; level--)
        number_level(m, p, n_cores, level);
    fill_masks(m, p, n_cores);
    return m;
}

void cw_coremap_destroy(struct cw_coremap *m)
{
    if (m == NULL)
        return;
    for (int level = 0; level < LEVEL_N; level++)
        free(m->d[level]);
    free(m->masks);
    free(m);
}

uint32_t cw_coremap_words(const struct cw_coremap *m)
{
    return m->words;
}

/* ---- the pick -------------------------------------------------------------------------------- */

struct pick {
    const struct cw_coremap *m;
    const uint64_t *free_words;
    uint64_t out[MAX_WORDS];
    uint32_t n_free[LEVEL_N]
                   [CW_COREPICK_MAX]; /* per domain; 0 once taken from. Only m->n are set */
    const struct domain *prefer;      /* a NUMA domain, or NULL */
};

/* Adds pairs, nibbles, bytes, then all bytes by one multiplication (Warren, Hacker's Delight, 5-1):
 * inline on every machine, where the builtin is a call without -mpopcnt. */
static uint32_t count_bits(uint64_t x)
{
    x -= (x >> 1) & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint32_t)((x * UINT64_C(0x0101010101010101)) >> 56);
}

static void count_free(struct pick *p)
{
    const struct cw_coremap *m = p->m;
    for (int level = LEVEL_NUMA; level < LEVEL_N; level++)
        memset(p->n_free[level], 0, m->n[level] * sizeof(uint32_t));
    for (uint32_t k = 0; k < m->n[LEVEL_L3]; k++) {
        const struct domain *d = &m->d[LEVEL_L3][k];
        uint32_t n = 0;
        for (uint32_t w = d->lo; w < d->hi; w++)
            n += count_bits(d->mask[w] & p->free_words[w]);
        p->n_free[LEVEL_L3][k] = n;
        for (int level = LEVEL_NUMA; level < LEVEL_N; level++)
            p->n_free[level][d->up[level]] += n;
    }
}

/* Is domain a (of `level`) the tighter fit than b? The domains above decide between equals. */
static bool tighter(const struct pick *p, int level, uint32_t a, uint32_t b)
{
    const struct domain *da = &p->m->d[level][a], *db = &p->m->d[level][b];
    for (int up = level; up < LEVEL_NODE; up++) {
        uint32_t na = p->n_free[up][da->up[up]], nb = p->n_free[up][db->up[up]];
        if (na != nb)
            return na < nb;
    }
    return false; /* equal: the first one stays */
}

/* The tightest domain of `level` inside domain `scope` of `scope_level` that has n free; or -1. */
static int find_fit(const struct pick *p, int level, int scope_level, uint32_t scope, uint32_t n)
{
    int best = -1;
    for (uint32_t k = 0; k < p->m->n[level]; k++) {
        if (p->m->d[level][k].up[scope_level] != scope || p->n_free[level][k] < n)
            continue;
        if (best < 0 || tighter(p, level, k, (uint32_t)best))
            best = (int)k;
    }
    return best;
}

static uint32_t find_largest(const struct pick *p, int level, int scope_level, uint32_t scope)
{
    uint32_t best = 0, best_free = 0;
    for (uint32_t k = 0; k < p->m->n[level]; k++)
        if (p->m->d[level][k].up[scope_level] == scope && p->n_free[level][k] > best_free) {
            best = k;
            best_free = p->n_free[level][k];
        }
    return best;
}

/* The lowest n free cores of a domain. */
static void take_lowest(struct pick *p, const struct domain *d, uint32_t n)
{
    for (uint32_t w = d->lo; w < d->hi && n > 0; w++) {
        uint64_t have = d->mask[w] & p->free_words[w];
        uint32_t k = count_bits(have);
        if (k <= n) {
            p->out[w] |= have;
            n -= k;
            continue;
        }
        for (; n > 0; n--) {
            p->out[w] |= have & -have;
            have &= have - 1;
        }
    }
}

/* Takes n cores of a domain that has them, out of as few of its parts as possible. */
static void take(struct pick *p, int level, uint32_t k, uint32_t n)
{
    const struct domain *d = &p->m->d[level][k];
    if (level == LEVEL_L3 || n == p->n_free[level][k]) {
        take_lowest(p, d, n);
        return;
    }
    int part = level - 1;
    while (n > 0) {
        int fit = find_fit(p, part, level, k, n);
        uint32_t next = fit >= 0 ? (uint32_t)fit : find_largest(p, part, level, k);
        /* A spread pick begins at the preferred node (and at its package). */
        if (p->prefer != NULL && part >= LEVEL_NUMA && p->prefer->up[level] == k &&
            p->n_free[part][p->prefer->up[part]] > 0)
            next = p->prefer->up[part];
        uint32_t have = p->n_free[part][next];
        uint32_t m = have < n ? have : n;
        take(p, part, next, m);
        p->n_free[part][next] = 0;
        n -= m;
    }
}

/* Tries the levels from L3 up to the scope itself. */
static bool pick_within(struct pick *p, int scope_level, uint32_t scope, uint32_t n)
{
    if (p->n_free[scope_level][scope] < n)
        return false;
    for (int level = LEVEL_L3; level <= scope_level; level++) {
        int k = find_fit(p, level, scope_level, scope, n);
        if (k < 0)
            continue;
        take(p, level, (uint32_t)k, n);
        return true;
    }
    return false;
}

static const struct domain *find_numa(const struct cw_coremap *m, int number)
{
    for (uint32_t k = 0; number >= 0 && k < m->n[LEVEL_NUMA]; k++)
        if (m->d[LEVEL_NUMA][k].numa == (uint32_t)number)
            return &m->d[LEVEL_NUMA][k];
    return NULL;
}

bool cw_corepick(const struct cw_coremap *m, const uint64_t *free_words, uint32_t n,
                 int prefer_numa, uint64_t *ret)
{
    if (n == 0) {
        memset(ret, 0, m->words * sizeof(uint64_t));
        return true;
    }
    if (m->words == 0)
        return false;
    struct pick p; /* not zeroed as a whole: 64 KiB */
    p.m = m;
    p.free_words = free_words;
    memset(p.out, 0, m->words * sizeof(uint64_t));
    p.prefer = find_numa(m, prefer_numa);
    count_free(&p);
    if (p.n_free[LEVEL_NODE][0] < n)
        return false;
    bool found = false;
    for (int level = LEVEL_NUMA; p.prefer != NULL && !found && level < LEVEL_NODE; level++)
        found = pick_within(&p, level, p.prefer->up[level], n);
    if (!found)
        pick_within(&p, LEVEL_NODE, 0, n);
    memcpy(ret, p.out, m->words * sizeof(uint64_t));
    return true;
}
