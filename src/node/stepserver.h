#pragma once
/* STEP_* and STAT requests on the node's own socket: checks the ticket and passes the packed
 * request on to the shepherd of the task, which answers, at once or later; never looks into it.
 * Here is only who waits for which answer. A task that has ended is remembered for some time: the
 * last output of its steps may not have been read. Test: stepserver_test.c. */
#include "node/crund.h"
#include "node/shepherds.h"
#include "node/task_table.h"
#include "wire/rpc_server.h"

struct cw_stepserver *cw_stepserver_create(struct cw_node *n);
void cw_stepserver_destroy(struct cw_stepserver *s); /* NULL allowed; drops who waits */
bool cw_stepserver_serves(enum cw_kind kind);
void cw_stepserver_call(struct cw_stepserver *s, struct cw_rpc_call *call);
void cw_stepserver_answer(struct cw_stepserver *s, const void *body, size_t n); /* STEP_ANSWER */
void cw_stepserver_lost(struct cw_stepserver *s, const struct cw_shepherd_link *l); /* it is dead */
/* The task leaves the table. */
void cw_stepserver_past(struct cw_stepserver *s, const struct cw_tasktab_entry *e);
