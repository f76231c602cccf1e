#pragma once
/* What the node daemon knows of its tasks: rebuilt from the shepherds at start, so nothing of it is
 * stored. A task leaves when its end is recorded by the controller and its box is gone.
 * Test: task_table_test.c. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "proto/wire.pb-c.h"

struct cw_shepherd_link;
struct cw_tasktab_entry {
    struct cw_list link;
    uint64_t id;
    uint32_t attempt;
    char key[36];                      /* "12.1" */
    struct cw_shepherd_link *shepherd; /* NULL: it is dead */
    char shepherd_id[48];
    struct cw_buf started, end; /* packed TaskStarted, TaskEnd; empty: not yet */
    char *stdout_path, *stderr_path;
    bool not_empty; /* the end said so; EMPTIED must follow */
    bool emptied;
    struct cw_list steps; /* struct cw_stepreports_step: not acknowledged yet */
    bool had_steps;
    bool end_acked;
    uint64_t report_seq; /* record whose acknowledgement lets it go; 0 none */
    Cw__State state;
};
struct cw_tasktab;
struct cw_tasktab *cw_tasktab_create(void);
void cw_tasktab_destroy(struct cw_tasktab *t);
struct cw_tasktab_entry *cw_tasktab_find(struct cw_tasktab *t, uint64_t id, uint32_t attempt);
struct cw_tasktab_entry *cw_tasktab_add(struct cw_tasktab *t, uint64_t id,
                                        uint32_t attempt); /* finds or makes */
void cw_tasktab_remove(struct cw_tasktab *t, struct cw_tasktab_entry *e);
struct cw_list *cw_tasktab_list(struct cw_tasktab *t);
/* Take what a shepherd reports. True when it is news. */
bool cw_tasktab_started(struct cw_tasktab_entry *e, const Cw__TaskStarted *m, const void *packed,
                        size_t n);
bool cw_tasktab_ended(struct cw_tasktab_entry *e, const Cw__TaskEnd *m, const void *packed,
                      size_t n);
/* Nothing more will come: the report with report_seq lets it go. */
bool cw_tasktab_final(const struct cw_tasktab_entry *e);
