#pragma once
/* Which nodes a job may run on, as an expression over the labels of nodes: `a100&!debug|(x&y)`.
 * `!` binds more than `&`, `&` more than `|`; a label is 1 to 63 of A-Za-z0-9._-=/ . Pure. Test:
 * constraint_test.c, fuzz_constraint.c. */
#include <stdbool.h>

#include "base/error.h"

#define CW_CONSTRAINT_MAX 1024 /* bytes of an expression */

/* -EINVAL with a sentence that names the column. */
int cw_constraint_check(const char *text, struct cw_error *err);
typedef bool cw_constraint_has(const char *label, size_t len, void *arg);
/* text must have passed the check (else false). */
bool cw_constraint_holds(const char *text, cw_constraint_has *has, void *arg);
/* The labels of a node against an expression. */
bool cw_constraint_matches(const char *text, char *const *labels, size_t n);
bool cw_constraint_label_ok(const char *label);
