#pragma once
/* What a node says, applied to the model: its records one by one, and its list of tasks whenever a
 * link starts, compared with ours (DESIGN.md 5.3, 5.4). Sends nothing: what is to be sent again
 * comes back. Test: reconcile_test.c. */
#include "base/mem.h"
#include "ctld/ctld.h"
#include "model/node.h"
#include "proto/wire.pb-c.h"

/* 0, or -ESTALE: a task runs there that may not: kill *ret_key (points into m). */
int cw_reconcile_record(struct cw_ctld *c, struct cw_node *n, const Cw__NodeRecordMsg *m,
                        const Cw__TaskKey **ret_key);
/* Called for parts that the node has to hear of again: to start, or (kill_step set) to be killed. */
typedef void (*cw_reconcile_again_fn)(const struct cw_part *p, void *arg);
/* Fills w->kill with tasks that are unknown or fenced here. Attempts that are gone there end or are
 * lost. */
void cw_reconcile_hello(struct cw_ctld *c, struct cw_node *n, const Cw__NodeHello *m,
                        struct cw_arena *a, Cw__NodeWelcome *w, cw_reconcile_again_fn again,
                        void *arg);
/* Does the node describe itself differently from its row? */
bool cw_reconcile_node_changed(const Cw__NodeRecord *old, const Cw__NodeRecord *now);
/* Our own state cannot start it (a damaged row): ends the attempt as a launch failure. */
void cw_reconcile_unstartable(struct cw_ctld *c, const struct cw_part *p, const char *why);
