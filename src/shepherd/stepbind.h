#pragma once
/* Which processors each rank of a step gets: its contiguous share of the whole cores granted here.
 * With fewer cores than ranks, a share of single threads; with fewer threads than ranks, one thread
 * for several. Test: stepbind_test.c. */
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

struct cw_stepcpu {
    int cpu;  /* OS number */
    int core; /* any number that its siblings share */
};
/* cpus: sorted by core, then cpu. False: nothing to bind to. */
bool cw_stepbind_share(const struct cw_stepcpu *cpus, size_t n, size_t rank, size_t ranks,
                       cpu_set_t *ret);
/* The set as such a list; core from the machine's own description. ret: room for CPU_SETSIZE. */
size_t cw_stepbind_list(const cpu_set_t *set, struct cw_stepcpu *ret);
