#pragma once
/* Which jobs a request means: JobFilter made ready for matching. Selectors become intervals of ids;
 * the rest is compared with rows. Test: jobview_test.c. */
#include "ctld/jobview.h"
#include "proto/wire.pb-c.h"
#include "spec/selector.h"

#define CW_JOBFILTER_IDS_MAX 10000u

struct cw_jobfilter {
    const Cw__JobFilter *msg;
    struct cw_selector *sel; /* sorted by first id */
    size_t n_sel;            /* 0: all jobs */
};
int cw_jobfilter_init(struct cw_jobfilter *f, const Cw__JobFilter *msg, struct cw_error *err);
void cw_jobfilter_fini(struct cw_jobfilter *f);
/* By what never changes: owner, name, partition, account, qos, labels. default_partition stands in for an unnamed one. */
bool cw_jobfilter_job(const struct cw_jobfilter *f, const struct cw_jobsrc *s,
                      const char *default_partition);
bool cw_jobfilter_live(const struct cw_jobfilter *f, const struct cw_job *j,
                       const char *partition); /* the same; unpacks only for qos and labels */
/* Has a part on one of the nodes asked for; a NULL attempt has none. */
bool cw_jobfilter_nodes(const struct cw_jobfilter *f, const Cw__AttemptRecord *a);
bool cw_jobfilter_state(const struct cw_jobfilter *f, Cw__State s);
/* Nothing given at all? */
bool cw_jobfilter_is_empty(const struct cw_jobfilter *f);
/* Ordinals of array s that this selector names; false: none. Whole array: ret gets all. */
bool cw_jobfilter_ordinals(const struct cw_selector *sel, const struct cw_idset *indices,
                           struct cw_idset *ret);
