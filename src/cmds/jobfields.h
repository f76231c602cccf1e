#pragma once
/* The fields of a job that lists can show: one row each with its long name, squeue's letter, its
 * heading and how to print it. Names are those of squeue -O and of sacct -o where these have one,
 * and ours; upper and lower case do not matter. crun-queue and crun-acct share the table; what
 * differs between both (JobID, the form of times) is asked from the row. A field of Slurm that means
 * nothing here prints N/A. Test: jobfields_test.c. */
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "proto/wire.pb-c.h"

struct cw_fieldrow { /* what is printed: a job, an element, an attempt of one, or one of its steps */
    const Cw__JobInfo *job;
    const Cw__StepRecord *step; /* NULL: the job itself */
    int64_t now_ns;
    bool acct;     /* as sacct prints it: JobID 12_3, times with hours, Unknown */
    bool whole;    /* of the job over all its attempts: state and times of the last */
    size_t id_max; /* a longer list of indices is cut; 0: never */
};

struct cw_jobfield {
    const char *name;
    char letter;         /* of squeue -o; 0: none */
    const char *heading; /* of squeue; sacct heads with the name */
    bool right;          /* numbers stand at the right */
    void (*text)(const struct cw_fieldrow *r, struct cw_buf *out); /* NULL: N/A */
    /* What it sorts by, where that is no text; false: the row has none (sorts first). NULL: text. */
    bool (*number)(const struct cw_fieldrow *r, int64_t *ret);
};
const struct cw_jobfield *cw_jobfield_find(const char *name, size_t len); /* NULL: unknown */
const struct cw_jobfield *cw_jobfield_letter(char letter);
size_t cw_jobfield_count(void);
const struct cw_jobfield *cw_jobfield_nth(size_t i);
/* "unknown field 'x'", with the nearest known one. Returns -EINVAL. */
int cw_jobfield_unknown(const char *name, size_t len, struct cw_error *err);
void cw_jobfield_text(const struct cw_jobfield *f, const struct cw_fieldrow *r, struct cw_buf *out);

/* The ways of printing that others share. */
char *cw_jobfield_cpu_text(uint64_t cpu_ns, char *buf, size_t cap);      /* 00:01.234 or H:MM:SS */
char *cw_jobfield_elapsed_text(uint64_t s, char *buf, size_t cap);       /* [D-]HH:MM:SS */
/* Facts behind the fields. */
uint64_t cw_jobfield_cores(const Cw__JobInfo *j); /* granted, or asked for while it waits */
uint32_t cw_jobfield_nodes(const Cw__JobInfo *j);
uint64_t cw_jobfield_mem(const Cw__JobInfo *j); /* of all its nodes; 0: not known */
bool cw_jobfield_ran_ns(const struct cw_fieldrow *r, int64_t *ret);
