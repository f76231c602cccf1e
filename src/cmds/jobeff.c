/* See jobeff.h. */
#include "cmds/jobeff.h"

void cw_jobeff_of(const struct cw_fieldrow *r, struct cw_jobeff *ret)
{
    const Cw__AttemptRecord *a = r->job->attempt;
    const Cw__Usage *u = a != NULL ? a->usage : NULL;
    int64_t ran = 0;
    *ret = (struct cw_jobeff){.cores = cw_jobfield_cores(r->job),
                              .mem_bytes = cw_jobfield_mem(r->job)};
    if (u == NULL || !cw_jobfield_ran_ns(r, &ran) || ran <= 0)
        return;
    for (size_t i = 0; i <= a->n_more_grants; i++)
        ret->gpus += (uint32_t)(i == 0 ? a->grant->n_gpus : a->more_grants[i - 1]->n_gpus);
    ret->cpu_ns = u->cpu_user_ns + u->cpu_sys_ns;
    ret->core_ns = ret->cores * (uint64_t)ran;
    ret->has_cpu = ret->core_ns > 0;
    ret->mem_used_bytes = u->has_mem_anon_peak_bytes ? u->mem_anon_peak_bytes
                          : u->has_mem_peak_bytes    ? u->mem_peak_bytes
                                                     : u->maxrss_bytes;
    ret->has_mem = ret->mem_bytes > 0;
}

double cw_jobeff_cpu(const struct cw_jobeff *e)
{
    return e->has_cpu ? (double)e->cpu_ns / (double)e->core_ns : 0;
}

double cw_jobeff_mem(const struct cw_jobeff *e)
{
    return e->has_mem ? (double)e->mem_used_bytes / (double)e->mem_bytes : 0;
}

json_t *cw_jobeff_json(const struct cw_jobeff *e)
{
    json_t *o = json_pack("{s:I}", "cores", (json_int_t)e->cores);
    if (e->has_cpu) {
        json_object_set_new(o, "cpu_used_ns", json_integer((json_int_t)e->cpu_ns));
        json_object_set_new(o, "cpu_granted_ns", json_integer((json_int_t)e->core_ns));
        json_object_set_new(o, "cpu", json_real(cw_jobeff_cpu(e)));
    }
    if (e->has_mem) {
        json_object_set_new(o, "mem_used_bytes", json_integer((json_int_t)e->mem_used_bytes));
        json_object_set_new(o, "mem_granted_bytes", json_integer((json_int_t)e->mem_bytes));
        json_object_set_new(o, "mem", json_real(cw_jobeff_mem(e)));
    }
    if (e->gpus > 0)
        json_object_set_new(o, "gpus", json_integer(e->gpus));
    return o;
}
