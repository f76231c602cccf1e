#pragma once
/* Output file patterns (FEATURES-BATCH 2.4): %j %A %a %b %J %n %N %t %s %u %x %r %%, %4j padding, a
 * leading backslash switches expansion off, "none" means /dev/null. Name parts from users have '/'
 * replaced by '_'. Pure. Test: outpath_test.c. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct cw_outpath_vars {
    uint64_t id, array_id, index; /* array_id 0: not an array (%A gives id, %a gives 0) */
    uint32_t attempt;
    const char *user, *name, *host;
};
int cw_outpath_check(const char *pattern, struct cw_error *err); /* unknown %q: -EINVAL */
/* Relative results are put behind workdir. */
int cw_outpath_expand(const char *pattern, const char *workdir, const struct cw_outpath_vars *v, struct cw_buf *ret, struct cw_error *err);
const char *cw_outpath_default(bool array, bool slurm); /* "crun-%j.out", "crun-%A_%a.out", "slurm-..." */
