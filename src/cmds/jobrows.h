#pragma once
/* Prints jobs as rows of a format while they come. Plain columns are as wide as the first thousand
 * rows need (all of them on a terminal) and grow for what is longer, so a million rows cost no
 * memory; sorting keeps all of them. Tested by t2500-queue-formats.t. */
#include "cmds/jobformat.h"

struct cw_jobrows;
struct cw_jobrows_style {
    bool no_header, acct; /* acct: headings are the fields' names */
    const char *delimiter; /* NULL: columns; else fields joined by it, without padding */
    bool trailing;         /* a delimiter behind the last field too */
    const struct cw_jobsort *sort; /* NULL: as they come */
};
/* The format and the sort stay the caller's and must outlive the rows. */
struct cw_jobrows *cw_jobrows_create(const struct cw_jobformat *f,
                                     const struct cw_jobrows_style *style);
void cw_jobrows_add(struct cw_jobrows *rows, const struct cw_fieldrow *r);
void cw_jobrows_finish(struct cw_jobrows *rows);  /* prints the rest; frees */
void cw_jobrows_discard(struct cw_jobrows *rows); /* NULL allowed */
