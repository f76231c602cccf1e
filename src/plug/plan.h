#pragma once
/* A plan: the ordered lines that plugins add and the isolation plugin carries out.
 * Test: plan_test.c. */
#include <crunwlm/plugin.h>

struct cw_plan *cw_plan_create(void);
void cw_plan_destroy(struct cw_plan *p); /* NULL allowed */
/* Copies. -EINVAL: not a line that could be carried out (kind, missing or relative path, name of a
 * limit or hook); -E2BIG: more than 4096 lines. line->size 0 counts as version 1.0. */
int cw_plan_add(struct cw_plan *p, const char *origin, const struct cw_plan_line *line);
uint32_t cw_plan_count(const struct cw_plan *p);
const struct cw_plan_line *cw_plan_get(const struct cw_plan *p, uint32_t i); /* NULL behind the last
                                                                              */
