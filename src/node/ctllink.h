#pragma once
/* The session to the controller: HELLO with all that is known here, numbered records both ways. A
 * START is acknowledged once the shepherd has it; an END is let go once the controller has
 * committed it. Test: testsuite/t0300, t0401. */
#include "node/crund.h"
#include "node/task_table.h"
#include "proto/wire.pb-c.h"

/* inventory is borrowed and must outlive the link. */
int cw_ctllink_open(struct cw_node *n, const Cw__Inventory *inventory, struct cw_ctllink **ret,
                    struct cw_error *err);
void cw_ctllink_close(struct cw_ctllink *c); /* NULL allowed */
/* Queues a record; nothing while no controller has said WELCOME (then everything is told). of:
 * the task that hears of the acknowledgement of number *ret_seq, NULL: nobody has to. */
void cw_ctllink_push(struct cw_ctllink *c, const Cw__NodeRecordMsg *m,
                     const struct cw_tasktab_entry *of, uint64_t *ret_seq); /* c NULL allowed */
/* End of a turn. sent: everything received has reached the shepherds. */
void cw_ctllink_turn_end(struct cw_ctllink *c, bool sent);
