#pragma once
/* From the store to memory, once at start. */
#include "ctld/ctld.h"

/* Partitions of the configuration, then nodes, live jobs and live attempts of the store. Rows that
 * cannot be read go to table QUARANTINE, each with a loud line, and the others load. Errors: the
 * store cannot be read or was written by a newer version. */
int cw_recover(struct cw_ctld *c, struct cw_error *err);
