#pragma once
/* Choosing whole cores on plain 64-bit words: compact, within one L3, then one NUMA node, then one
 * package, then anywhere; of the domains that fit the one with the fewest free cores, so that large
 * ones stay whole; near the granted GPUs when there are any. Pure. Test: corepick_test.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CW_COREPICK_MAX 4096 /* cores of one node */

/* Masks of one node's shape, derived once from its core list. Bit i is the i-th core of the list.
 */
struct cw_coremap;
/* The arrays give each core's domain numbers (any numbers; copied). n_cores <= CW_COREPICK_MAX, a
 * larger list is cut there. */
struct cw_coremap *cw_coremap_create(uint32_t n_cores, const uint32_t *l3, const uint32_t *numa,
                                     const uint32_t *package);
void cw_coremap_destroy(struct cw_coremap *m);         /* NULL allowed */
uint32_t cw_coremap_words(const struct cw_coremap *m); /* 64-bit words of a mask */
/* Picks n cores out of free (words as above; bits past the last core are ignored) into ret; ret may
 * be free_words itself. prefer_numa: a number out of the numa array, < 0: no preference. It wins
 * over compactness when that node, or else its package, has room for all n. Returns false and
 * leaves ret alone when fewer than n are free. Deterministic. */
bool cw_corepick(const struct cw_coremap *m, const uint64_t *free_words, uint32_t n,
                 int prefer_numa, uint64_t *ret);
