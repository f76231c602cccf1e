#pragma once
/* Output file patterns:
 *   %A id of the array (or the job)  %a array index  %b index modulo 10  %j job id, an element's
 * own %J job id and step, 12.0 (a batch script has no step number: the id)  %s step ("batch")  %t
 * rank %n number of the node  %N its short name  %u user  %x job name  %r attempt  %% a percent
 * sign Numbers take a width, zero padded: %4j (at most 10). A leading backslash goes and switches
 * expansion off, "none" means /dev/null. In parts that a user chose (%x, %u, %N) '/' becomes '_',
 * and . and .. lose their meaning. Pure. Test: outpath_test.c, fuzz_outpath.c. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct cw_outpath_vars {
    uint64_t id, array_id, index; /* array_id 0: not an array (%A gives id, %a gives 0) */
    uint32_t attempt;
    const char *user, *name, *host;
    const char *step; /* NULL: "batch" */
    uint32_t rank, node;
};
int cw_outpath_check(const char *pattern, struct cw_error *err); /* unknown %q: -EINVAL */
/* Relative results are put behind workdir. -EINVAL as above, -ENAMETOOLONG. */
int cw_outpath_expand(const char *pattern, const char *workdir, const struct cw_outpath_vars *v,
                      struct cw_buf *ret, struct cw_error *err);
/* "crun-%j.out", "crun-%A_%a.out", "slurm-..." */
const char *cw_outpath_default(bool array, bool slurm);
