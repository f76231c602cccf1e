#pragma once
/* A job as clients see it, wherever it is: in memory while it lives, in the store for as long as
 * its row is kept. One id space and one way to ask (FEATURES-BATCH C5). Everything returned lives
 * in the arena given; nothing points into the model. While commits fail everything comes from the
 * store, so that nothing is told which is not on disk. Test: jobview_test.c. */
#include "base/mem.h"
#include "ctld/ctld.h"
#include "proto/wire.pb-c.h"

/* One job, found. Fields are copies; `live` is NULL for a finished one and must not be kept. */
struct cw_jobsrc {
    struct cw_job *live;
    Cw__JobRecord *rec; /* what never changes, and for finished jobs the rest too */
    bool is_array;
    uint64_t count;                              /* elements */
    struct cw_idset indices, pending, cancelled; /* arrays only; ordinals but for indices */
};
/* By job or element id; ordinal (NULL allowed) is set when id named an element. -ENOENT: "job 12
 * does not exist"; -EBADMSG: its row is damaged. */
int cw_jobview_find(struct cw_ctld *c, uint64_t id, struct cw_arena *a, struct cw_jobsrc *ret,
                    bool *ret_is_element, uint64_t *ret_ordinal, struct cw_error *err);
void cw_jobview_from_live(struct cw_job *j, struct cw_arena *a, struct cw_jobsrc *ret);
int cw_jobview_from_row(const void *val, size_t vlen, struct cw_arena *a, struct cw_jobsrc *ret,
                        struct cw_error *err);
void cw_jobsrc_fini(struct cw_jobsrc *s);

/* The job as one row: a plain job, or an array with its waiting indices and its counts. */
Cw__JobInfo *cw_jobview_info(struct cw_ctld *c, const struct cw_jobsrc *s, struct cw_arena *a);
Cw__JobInfo *cw_jobview_element(struct cw_ctld *c, const struct cw_jobsrc *s, uint64_t ordinal,
                                struct cw_arena *a);
/* With this attempt instead of the newest. */
Cw__JobInfo *cw_jobview_with_attempt(struct cw_ctld *c, const struct cw_jobsrc *s,
                                     const Cw__AttemptRecord *rec, struct cw_arena *a);
/* State of an element without building a row; 0 with *ret_known false when only the store knows. */
Cw__State cw_jobview_element_state(struct cw_ctld *c, const struct cw_jobsrc *s, uint64_t ordinal,
                                   bool *ret_known);
uint64_t cw_jobsrc_element_id(const struct cw_jobsrc *s, uint64_t ordinal);

/* Fills i->steps of its attempt from the store. */
void cw_jobview_steps(struct cw_ctld *c, Cw__JobInfo *i, struct cw_arena *a);

/* attempt 0: the newest. -ENOENT. */
int cw_jobview_attempt(struct cw_ctld *c, uint64_t element_id, uint32_t attempt, struct cw_arena *a,
                       Cw__AttemptRecord **ret, struct cw_error *err);
