#pragma once
/* Dead shepherds: their journals say what they carried. A helper (`crun-shepherd --reclaim`) kills
 * what is left and writes an end for each task into the journal; then each end is reported, and
 * when the controller has all of them the files go. Test: testsuite/t0402. */
#include "node/crund.h"
#include "shepherd/journal.h"

struct cw_graves_ops {
    /* A task of a dead shepherd and what is known of it; again when the helper has finished (done).
     */
    void (*task)(const char *shepherd, const struct cw_journal_task *t, bool done, void *arg);
    /* Everything that its journal knows has an end now. */
    void (*settled)(const char *shepherd, void *arg);
};
struct cw_graves *cw_graves_create(struct cw_node *node, const struct cw_graves_ops *ops,
                                   void *arg);
void cw_graves_destroy(struct cw_graves *g);
void cw_graves_bury(struct cw_graves *g,
                    const char *shepherd); /* starts the work; told twice is once */
/* Writes into the dead shepherd's journal (made when missing) a task that it carried as far as we
 * know, but of which its journal is silent: so that the helper looks for its box. */
int cw_graves_claim(struct cw_graves *g, const char *shepherd, uint64_t id, uint32_t attempt);
void cw_graves_again(struct cw_graves *g, const char *shepherd); /* the helper, once more */
/* No task of this shepherd is left in the table: its files may go (if its work is done). */
void cw_graves_close(struct cw_graves *g, const char *shepherd);
