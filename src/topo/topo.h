#pragma once
/* A node's hardware through hwloc: inventory, binding, checking. The scheduler never calls hwloc:
 * it works on the words of corepick.h, made from the inventory's core list.
 *
 * HWLOC_SYNTHETIC / HWLOC_XMLFILE (or an explicit synthetic string) replace the machine for tests;
 * a topology that is not this system never binds, and says so. Load uses INCLUDE_DISALLOWED and
 * offers only allowed processors. Allocatable memory is min(/proc/meminfo, cgroup v1/v2 limit):
 * hwloc is for locality only. One thread. Test: topo_test.c. */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/idset.h"

struct cw_topo_core {
    uint32_t logical;
    uint32_t *pus; /* OS numbers, ascending; only allowed ones */
    uint32_t n_pus, numa, l3,
        package; /* logical numbers; l3 without such a cache: one per NUMA node */
};
struct cw_topo;
/* synthetic: an hwloc synthetic description, or NULL for this machine (or the HWLOC_* environment).
 * -EINVAL: the description (or what HWLOC_* names) is not understood. */
int cw_topo_open(const char *synthetic, struct cw_topo **ret, struct cw_error *err);
void cw_topo_close(struct cw_topo *t); /* NULL allowed */
bool cw_topo_is_this_system(const struct cw_topo *t);
/* Ascending by logical number; cores with no allowed processor are left out. */
const struct cw_topo_core *cw_topo_cores(const struct cw_topo *t, uint32_t *ret_n);
/* Allocatable. A machine described with memory= (or by XML) has what it says. */
uint64_t cw_topo_mem_bytes(const struct cw_topo *t);
const char *cw_topo_hash(const struct cw_topo *t); /* hex; equal hardware gives equal hashes */
/* OS processor numbers of a set of logical cores (added to ret_cpus); unknown cores give none. */
void cw_topo_cpus_of(const struct cw_topo *t, const struct cw_idset *cores,
                     struct cw_idset *ret_cpus);
/* NUMA nodes (OS numbers, added) that hold these cpus. */
void cw_topo_mems_of(const struct cw_topo *t, const struct cw_idset *cpus,
                     struct cw_idset *ret_nodes);
/* Binds all threads of process pid (0: the caller's) to these OS processors. -ENOTSUP when not this
 * system; -EINVAL for none or unknown ones; -EXDEV when a cgroup gave the process fewer than asked.
 */
int cw_topo_bind(struct cw_topo *t, pid_t pid, const struct cw_idset *cpus, struct cw_error *err);
/* Shepherds need no topology object: plain affinity words of a cpu set, for the spawned child. */
int cw_topo_cpuset(const struct cw_idset *cpus, cpu_set_t *ret, struct cw_error *err);
