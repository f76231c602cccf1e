#pragma once
/* What columns a list of jobs has, from squeue's letters ("%.18i %.9P %j"), from names with widths
 * ("JobID,State:12,Reason:.20" or sacct's "JobID,State%20,Name%-8"), and what it is sorted by. A
 * width is the least: nothing is ever cut, since programs read these lists. Pure. Test:
 * jobfields_test.c, fuzz_jobformat.c. */
#include "cmds/jobfields.h"

#define CW_JOBFORMAT_COLUMNS_MAX 256u
#define CW_JOBFORMAT_WIDTH_MAX 4096u

struct cw_jobcolumn {
    const struct cw_jobfield *field;
    char *before; /* text in front of it, or NULL */
    size_t width; /* 0: none given */
    bool right;
};
struct cw_jobformat {
    struct cw_jobcolumn *v;
    size_t n;
    char *behind; /* text behind the last, or NULL */
    bool letters; /* print text between columns as given; else columns stand apart */
};
int cw_jobformat_letters(const char *text, struct cw_jobformat *ret, struct cw_error *err);
/* Appends to ret (zeroed at first). width: of columns without one of their own. */
int cw_jobformat_names(const char *text, size_t width, struct cw_jobformat *ret,
                       struct cw_error *err);
void cw_jobformat_fini(struct cw_jobformat *f);

struct cw_jobsort { /* "-p,+i": by fields' letters or names */
    const struct cw_jobfield *field[8];
    bool down[8];
    size_t n;
};
int cw_jobsort_parse(const char *text, struct cw_jobsort *ret, struct cw_error *err);
