#pragma once
/* A plan: the ordered lines that plugins add and the isolation plugin carries out. Test: plan_test.c. */
#include <crunwlm/plugin.h>

struct cw_plan *cw_plan_create(void);
void cw_plan_destroy(struct cw_plan *p);
int cw_plan_add(struct cw_plan *p, const char *origin, const struct cw_plan_line *line); /* copies */
uint32_t cw_plan_count(const struct cw_plan *p);
const struct cw_plan_line *cw_plan_get(const struct cw_plan *p, uint32_t i);
