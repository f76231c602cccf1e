#pragma once
/* Reports of steps on their way from a shepherd to the controller: kept and told again until the
 * controller has them, then acknowledged to the shepherd. A task is let go only when none is left.
 * Test: task_table_test.c, step_test.c. */
#include "node/crund.h"
#include "node/task_table.h"

struct cw_stepreports_step {
    struct cw_list link; /* of its task */
    uint32_t step;
    bool end;
    struct cw_buf packed; /* StepReport */
    uint64_t seq;         /* of the record that carries it; 0: not told yet */
};
/* A report arrived: told to the controller, unless it is known. */
void cw_stepreports_take(struct cw_node *n, struct cw_tasktab_entry *e, const Cw__StepReport *m,
                         const void *packed, size_t len);
void cw_stepreports_tell(struct cw_node *n, struct cw_tasktab_entry *e); /* all, again */
/* The controller has record seq. True: it was one of these. */
bool cw_stepreports_acked(struct cw_tasktab_entry *e, uint64_t seq);
void cw_stepreports_clear(struct cw_tasktab_entry *e);
