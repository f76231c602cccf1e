/* Shares of processors; see stepbind.h. */
#include "shepherd/stepbind.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

static size_t count_cores(const struct cw_stepcpu *cpus, size_t n)
{
    size_t cores = 0;
    for (size_t i = 0; i < n; i++)
        cores += i == 0 || cpus[i].core != cpus[i - 1].core;
    return cores;
}

/* From..to of `total` equal things for one of `ranks`; at least one. */
static void share(size_t total, size_t rank, size_t ranks, size_t *ret_from, size_t *ret_to)
{
    *ret_from = rank * total / ranks;
    *ret_to = (rank + 1) * total / ranks;
    if (*ret_to == *ret_from)
        *ret_to = *ret_from + 1;
}

bool cw_stepbind_share(const struct cw_stepcpu *cpus, size_t n, size_t rank, size_t ranks,
                       cpu_set_t *ret)
{
    size_t cores = count_cores(cpus, n), from, to, core = 0;
    if (n == 0 || rank >= ranks)
        return false;
    bool whole = cores >= ranks;
    share(whole ? cores : n, rank, ranks, &from, &to);
    CPU_ZERO(ret);
    for (size_t i = 0; i < n; i++) {
        core += i > 0 && cpus[i].core != cpus[i - 1].core;
        size_t at = whole ? core : i;
        if (at >= from && at < to)
            CPU_SET(cpus[i].cpu, ret);
    }
    return true;
}

/* The lowest of its siblings; itself where the machine does not say. */
static int core_of(int cpu)
{
    char path[96], text[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    cw_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return cpu;
    text[n] = '\0';
    return (int)strtol(text, NULL, 10);
}

static int by_core(const void *a, const void *b)
{
    const struct cw_stepcpu *x = a, *y = b;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

size_t cw_stepbind_list(const cpu_set_t *set, struct cw_stepcpu *ret)
{
    size_t n = 0;
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, set))
            ret[n++] = (struct cw_stepcpu){ c, core_of(c) };
    qsort(ret, n, sizeof *ret, by_core);
    return n;
}
