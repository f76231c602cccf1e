#pragma once
/* What passes between controller and shepherds: starts, signals and kills downwards; STARTED, END
 * and EMPTIED upwards until acknowledged. One START of a key runs once: a second is answered with
 * what is known. Test: testsuite/t0401, t0402. */
#include "node/graves.h"
#include "node/crund.h"
#include "node/shepherds.h"
#include "proto/wire.pb-c.h"

extern const struct cw_shepherds_ops cw_taskflow_shepherds_ops; /* arg: the node */
extern const struct cw_graves_ops cw_taskflow_graves_ops;
void cw_taskflow_dead(const char *shepherd, void *node); /* found dead at start */
void cw_taskflow_record(struct cw_node *n, const Cw__NodeRecordMsg *m);
void cw_taskflow_acked(struct cw_node *n, uint64_t id, uint32_t attempt, uint64_t seq);
/* A controller that has not heard what we know, or has lost it: tell all. */
void cw_taskflow_tell_all(struct cw_node *n);
void cw_taskflow_forget(struct cw_node *n, const Cw__TaskKey *k); /* WELCOME: recorded already */
void cw_taskflow_fence(struct cw_node *n, const Cw__TaskKey *k);  /* WELCOME: kill */
void cw_taskflow_sent(void); /* starts of this turn are with the shepherds: the crash points */
