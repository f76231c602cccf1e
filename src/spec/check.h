#pragma once
/* The checks of a request that client and controller share: everything that needs no state of the
 * cluster. Pure. Test: check_test.c. */
#include "base/error.h"
#include "proto/wire.pb-c.h"

#define CW_CHECK_MAX_ARRAY_INDEX 2147483647u
#define CW_CHECK_MIN_MEM (1024u * 1024u) /* less does not even start a shell */
#define CW_CHECK_MAX_ENV 65536u /* entries */
#define CW_CHECK_MAX_PAYLOAD (768u * 1024u)
#define CW_CHECK_MAX_CORES (1024u * 1024u) /* of one job */

/* p NULL: a spec whose payload was checked before.
 * -EINVAL/-E2BIG with one sentence naming the field, its value and what is allowed. Fields that
 * nothing carries out yet are refused too: what a job asks for is never dropped in silence. */
int cw_check_spec(const Cw__JobSpec *s, const Cw__Payload *p, struct cw_error *err);
int cw_check_dependency_kind(Cw__DependencyKind k, struct cw_error *err);
/* The effective numbers of a spec (defaults filled in). */
uint32_t cw_spec_ntasks(const Cw__JobSpec *s);
uint32_t cw_spec_cpus_per_task(const Cw__JobSpec *s);
uint32_t
cw_spec_cores(const Cw__JobSpec *s); /* ntasks * cpus_per_task, UINT32_MAX when it is more */
uint32_t cw_spec_gpus(const Cw__JobSpec *s);
