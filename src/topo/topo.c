/* The node's inventory by hwloc, and binding.
 *
 * hwloc answers 0 to binding calls on a described topology and binds nothing, and it falls back to
 * the real machine when HWLOC_XMLFILE cannot be read: both are refused here. Test: topo_test.c. */
#include "config.h"

#include "topo/topo.h"

#include "base/buf.h"
#include "base/mem.h"
#include "topo/topomem.h"

#include <hwloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cw_topo {
    hwloc_topology_t hw;
    struct cw_topo_core *cores;
    uint32_t n_cores;
    uint64_t mem_bytes;
    char hash[17];
};

static const char *env_or_null(const char *name)
{
    const char *v = getenv(name);
    return v != NULL && *v != '\0' ? v : NULL;
}

/* ---- loading --------------------------------------------------------------------------------- */

static int check_source(struct cw_topo *t, struct cw_error *err)
{
    static const char *const names[] = { "HWLOC_SYNTHETIC", "HWLOC_XMLFILE", "HWLOC_FSROOT" };
    if (!hwloc_topology_is_thissystem(t->hw) || env_or_null("HWLOC_THISSYSTEM") != NULL)
        return 0;
    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++)
        if (env_or_null(names[i]) != NULL)
            return cw_fail_node(err, -EINVAL, "topology: %s=%s: hwloc cannot use it", names[i],
                                env_or_null(names[i]));
    return 0;
}

static int load(struct cw_topo *t, const char *synthetic, struct cw_error *err)
{
    if (hwloc_topology_init(&t->hw) < 0)
        return cw_fail_node(err, -ENOMEM, "topology: hwloc does not start");
    if (synthetic != NULL && hwloc_topology_set_synthetic(t->hw, synthetic) < 0)
        return cw_fail_node(err, -EINVAL, "topology: \"%s\": not an hwloc synthetic description",
                            synthetic);
    hwloc_topology_set_flags(t->hw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_load(t->hw) < 0)
        return cw_fail_node(err, -EINVAL, "topology: hwloc cannot read this machine");
    return synthetic != NULL ? 0 : check_source(t, err);
}

/* ---- the core list --------------------------------------------------------------------------- */

/* Logical number of the first NUMA node next to obj. A core without memory has that of what holds
 * it. */
static uint32_t numa_of(const struct cw_topo *t, hwloc_obj_t obj)
{
    while (obj->parent != NULL && hwloc_bitmap_iszero(obj->nodeset))
        obj = obj->parent;
    for (hwloc_obj_t n = NULL;
         (n = hwloc_get_next_obj_by_type(t->hw, HWLOC_OBJ_NUMANODE, n)) != NULL;)
        if (hwloc_bitmap_isset(obj->nodeset, n->os_index))
            return n->logical_index;
    return 0;
}

static uint32_t ancestor_number(const struct cw_topo *t, hwloc_obj_t obj, hwloc_obj_type_t type,
                                uint32_t otherwise)
{
    hwloc_obj_t a = hwloc_get_ancestor_obj_by_type(t->hw, type, obj);
    return a != NULL ? a->logical_index : otherwise;
}

/* False when no processor of it is allowed. */
static bool fill_core(const struct cw_topo *t, hwloc_obj_t obj, struct cw_topo_core *c)
{
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(t->hw);
    uint32_t n = 0;
    c->pus = cw_xcalloc((size_t)hwloc_bitmap_weight(obj->cpuset), sizeof(uint32_t));
    for (int pu = hwloc_bitmap_first(obj->cpuset); pu >= 0; pu = hwloc_bitmap_next(obj->cpuset, pu))
        if (hwloc_bitmap_isset(allowed, (unsigned)pu))
            c->pus[n++] = (uint32_t)pu;
    if (n == 0) {
        free(c->pus);
        return false;
    }
    c->n_pus = n;
    c->logical = obj->logical_index;
    c->numa = numa_of(t, obj);
    uint32_t n_l3 = (uint32_t)hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_L3CACHE);
    c->l3 = ancestor_number(t, obj, HWLOC_OBJ_L3CACHE, n_l3 + c->numa);
    c->package = ancestor_number(t, obj, HWLOC_OBJ_PACKAGE, 0);
    return true;
}

static int fill_cores(struct cw_topo *t, struct cw_error *err)
{
    /* Some virtual machines and descriptions have processors but no cores. */
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    int n = hwloc_get_nbobjs_by_type(t->hw, type);
    t->cores = cw_xcalloc(n > 0 ? (size_t)n : 1, sizeof(*t->cores));
    for (hwloc_obj_t obj = NULL; (obj = hwloc_get_next_obj_by_type(t->hw, type, obj)) != NULL;)
        if (fill_core(t, obj, &t->cores[t->n_cores]))
            t->n_cores++;
    if (t->n_cores == 0)
        return cw_fail_node(err, -ENODEV, "topology: no processor may be used");
    return 0;
}

/* ---- memory and hash ------------------------------------------------------------------------- */

/* A description says what memory it has only where it names it: hwloc fills in 1 GB a node
 * otherwise. */
static int fill_mem(struct cw_topo *t, const char *synthetic, struct cw_error *err)
{
    bool named =
        synthetic != NULL ? strstr(synthetic, "memory=") != NULL : !cw_topo_is_this_system(t);
    t->mem_bytes = hwloc_get_root_obj(t->hw)->total_memory;
    if (named && t->mem_bytes > 0)
        return 0;
    return cw_topomem_read("", &t->mem_bytes, err);
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t hash_text(const char *p, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void fill_hash(struct cw_topo *t)
{
    cw_autobuf struct cw_buf text = { 0 };
    for (hwloc_obj_t p = NULL;
         (p = hwloc_get_next_obj_by_type(t->hw, HWLOC_OBJ_PACKAGE, p)) != NULL;) {
        const char *model = hwloc_obj_get_info_by_name(p, "CPUModel");
        cw_buf_addf(&text, "package %u %s\n", p->logical_index, model != NULL ? model : "-");
    }
    for (hwloc_obj_t c = NULL;
         (c = hwloc_get_next_obj_by_type(t->hw, HWLOC_OBJ_L3CACHE, c)) != NULL;)
        cw_buf_addf(&text, "l3 %u %" PRIu64 "\n", c->logical_index, (uint64_t)c->attr->cache.size);
    for (uint32_t i = 0; i < t->n_cores; i++) {
        const struct cw_topo_core *c = &t->cores[i];
        cw_buf_addf(&text, "core %u %u %u %u", c->logical, c->l3, c->numa, c->package);
        for (uint32_t k = 0; k < c->n_pus; k++)
            cw_buf_addf(&text, " %u", c->pus[k]);
        cw_buf_add_str(&text, "\n");
    }
    snprintf(t->hash, sizeof(t->hash), "%016" PRIx64, hash_text(cw_buf_str(&text), text.len));
}

int cw_topo_open(const char *synthetic, struct cw_topo **ret, struct cw_error *err)
{
    if (synthetic == NULL || *synthetic == '\0')
        synthetic = env_or_null("HWLOC_XMLFILE") == NULL ? env_or_null("HWLOC_SYNTHETIC") : NULL;
    struct cw_topo *t = cw_xcalloc(1, sizeof(*t));
    int rc = load(t, synthetic, err);
    if (rc == 0)
        rc = fill_cores(t, err);
    if (rc == 0)
        rc = fill_mem(t, synthetic, err);
    if (rc < 0) {
        cw_topo_close(t);
        return rc;
    }
    fill_hash(t);
    *ret = t;
    return 0;
}

void cw_topo_close(struct cw_topo *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->n_cores; i++)
        free(t->cores[i].pus);
    free(t->cores);
    if (t->hw != NULL)
        hwloc_topology_destroy(t->hw);
    free(t);
}

bool cw_topo_is_this_system(const struct cw_topo *t)
{
    return hwloc_topology_is_thissystem(t->hw) != 0;
}

const struct cw_topo_core *cw_topo_cores(const struct cw_topo *t, uint32_t *ret_n)
{
    *ret_n = t->n_cores;
    return t->cores;
}

uint64_t cw_topo_mem_bytes(const struct cw_topo *t)
{
    return t->mem_bytes;
}

const char *cw_topo_hash(const struct cw_topo *t)
{
    return t->hash;
}

/* ---- sets ------------------------------------------------------------------------------------ */

void cw_topo_cpus_of(const struct cw_topo *t, const struct cw_idset *cores,
                     struct cw_idset *ret_cpus)
{
    for (uint32_t i = 0; i < t->n_cores; i++) {
        const struct cw_topo_core *c = &t->cores[i];
        if (!cw_idset_has(cores, c->logical))
            continue;
        for (uint32_t k = 0; k < c->n_pus; k++)
            cw_idset_add(ret_cpus, c->pus[k], c->pus[k]);
    }
}

/* Numbers past the last processor of the machine are cut: a set may say 0-18446744073709551615. */
static hwloc_bitmap_t make_bitmap(const struct cw_topo *t, const struct cw_idset *cpus)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (set == NULL)
        abort();
    uint64_t last = (uint64_t)hwloc_bitmap_last(hwloc_topology_get_complete_cpuset(t->hw));
    for (size_t i = 0; i < cpus->n; i++) {
        uint64_t end = cpus->r[i].last < last ? cpus->r[i].last : last;
        if (cpus->r[i].first <= end)
            hwloc_bitmap_set_range(set, (unsigned)cpus->r[i].first, (int)end);
    }
    return set;
}

void cw_topo_mems_of(const struct cw_topo *t, const struct cw_idset *cpus,
                     struct cw_idset *ret_nodes)
{
    hwloc_bitmap_t set = make_bitmap(t, cpus);
    for (hwloc_obj_t n = NULL;
         (n = hwloc_get_next_obj_by_type(t->hw, HWLOC_OBJ_NUMANODE, n)) != NULL;)
        if (hwloc_bitmap_intersects(n->cpuset, set))
            cw_idset_add(ret_nodes, n->os_index, n->os_index);
    hwloc_bitmap_free(set);
}

/* ---- binding --------------------------------------------------------------------------------- */

static int bind_bitmap(struct cw_topo *t, pid_t pid, hwloc_const_bitmap_t set, const char *text,
                       struct cw_error *err)
{
    if (hwloc_set_proc_cpubind(t->hw, pid, set, HWLOC_CPUBIND_PROCESS) < 0)
        return cw_fail_errno(err, -errno, "process %ld: bind to processors %s", (long)pid, text);
    hwloc_bitmap_t now = hwloc_bitmap_alloc();
    if (now == NULL)
        abort();
    /* The kernel cuts the set to the process's cpuset cgroup without a word. */
    int rc = hwloc_get_proc_cpubind(t->hw, pid, now, HWLOC_CPUBIND_PROCESS);
    if (rc < 0)
        rc = cw_fail_errno(err, -errno, "process %ld: read its binding", (long)pid);
    else if (!hwloc_bitmap_isequal(now, set))
        rc =
            cw_fail_node(err, -EXDEV, "process %ld: bind to processors %s: its cgroup allows fewer",
                         (long)pid, text);
    hwloc_bitmap_free(now);
    return rc;
}

int cw_topo_bind(struct cw_topo *t, pid_t pid, const struct cw_idset *cpus, struct cw_error *err)
{
    if (pid == 0)
        pid = getpid();
    cw_autobuf struct cw_buf text = { 0 };
    cw_idset_format(cpus, &text);
    if (!cw_topo_is_this_system(t))
        return cw_fail_node(
            err, -ENOTSUP, "process %ld: bind to processors %s: the topology is not this machine's",
            (long)pid, cw_buf_str(&text));
    hwloc_bitmap_t set = make_bitmap(t, cpus);
    int rc;
    if (cw_idset_empty(cpus) || (uint64_t)hwloc_bitmap_weight(set) != cw_idset_count(cpus) ||
        !hwloc_bitmap_isincluded(set, hwloc_topology_get_complete_cpuset(t->hw)))
        rc = cw_fail_node(
            err, -EINVAL, "process %ld: bind to processors \"%s\": this machine has %d", (long)pid,
            cw_buf_str(&text), hwloc_bitmap_weight(hwloc_topology_get_complete_cpuset(t->hw)));
    else
        rc = bind_bitmap(t, pid, set, cw_buf_str(&text), err);
    hwloc_bitmap_free(set);
    return rc;
}

int cw_topo_cpuset(const struct cw_idset *cpus, cpu_set_t *ret, struct cw_error *err)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cw_idset_empty(cpus))
        return cw_fail_node(err, -EINVAL, "processor set: empty");
    for (size_t i = 0; i < cpus->n; i++) {
        if (cpus->r[i].last >= CPU_SETSIZE)
            return cw_fail_node(err, -ERANGE, "processor set: %" PRIu64 " is more than %d",
                                cpus->r[i].last, CPU_SETSIZE - 1);
        for (uint64_t cpu = cpus->r[i].first; cpu <= cpus->r[i].last; cpu++)
            CPU_SET(cpu, &set);
    }
    *ret = set;
    return 0;
}
