#pragma once
/* The fields of a spec that may change after accept (crun-ctl update), each by its name: that of
 * JobSpec, or settings.X, array.throttle. Pure. Test: specfield_test.c. */
#include <stdbool.h>

#include "base/error.h"
#include "base/mem.h"
#include "proto/job.pb-c.h"

struct cw_specfield {
    const char *name;
    bool while_running; /* may also change while the job runs */
};
const struct cw_specfield *cw_specfield_find(const char *name); /* NULL: may not change */
/* Takes the field from `from` (absent there: clears it). Strings and lists are shared, not copied;
 * a settings or array message that is missing in `to` is made in the arena. -EINVAL: to has no array. */
int cw_specfield_copy(const char *name, const Cw__JobSpec *from, Cw__JobSpec *to, struct cw_arena *a,
                      struct cw_error *err);
/* "KEY" as people write it behind crun-ctl update (an option's name, or scontrol's word such as
 * TimeLimit): the option that reads its value, and the fields that it sets (ends with NULL). "throttle"
 * is no option: *ret_option is NULL then. False: unknown. */
bool cw_specfield_key(const char *key, const char **ret_option, const char *const **ret_fields);
