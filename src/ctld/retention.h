#pragma once
/* Finished records expire by policy (retention_s), in small slices between other work. */
#include "ctld/ctld.h"

struct cw_retention;
struct cw_retention *cw_retention_create(struct cw_ctld *c);
void cw_retention_destroy(struct cw_retention *r);           /* NULL allowed */
uint64_t cw_retention_expired(const struct cw_retention *r); /* jobs, since start */
