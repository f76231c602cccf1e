#pragma once
/* --signal=[B:|A:]SIGNAL[@SECONDS]: a name with or without SIG, or a number; without SECONDS a
 * minute before the limit. B: the leader alone, A: (the default) every process of the job. Pure.
 * Test: sigspec_test.c. */
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define CW_SIGSPEC_BEFORE_S 60u
#define CW_SIGSPEC_MAX_BEFORE_S 65535u
#define CW_SIGSPEC_MAX 64u /* highest signal number */

struct cw_sigspec {
    uint32_t signal, before_s;
    bool leader;
};
/* -EINVAL with what is wrong. */
int cw_sigspec_parse(const char *text, struct cw_sigspec *ret, struct cw_error *err);
