#pragma once
/* The steps of the attempts that live: their numbers, their rows, and which cores and GPUs exact
 * steps keep from each other. The rows are the truth; this memory is rebuilt from them. A row is
 * STARTING until all of the step's nodes have said that its tasks run, RUNNING until all have said
 * that none does, and ends with its attempt at the latest. A step that no node has begun when its
 * tickets have run out ends, too: nobody keeps cores by asking alone. Test: stepbook_test.c. */
#include "ctld/ctld.h"
#include "ctld/steplayout.h"
#include "proto/wire.pb-c.h"

#define CW_STEPBOOK_LIVE_MAX 4096u      /* steps of one attempt at once */
#define CW_STEPBOOK_NUMBER_MAX 1000000u /* of one attempt */
#define CW_STEPBOOK_PATIENCE_S 330      /* from its number to its first word; a ticket lives 300 s */

struct cw_stepbook;
struct cw_stepbook *cw_stepbook_create(struct cw_ctld *c);
void cw_stepbook_destroy(struct cw_stepbook *b); /* NULL allowed */

/* A new step of a running attempt, or the one that this key made before; its row is in the open
 * batch. Returned memory is the arena's. -EBUSY: *ret_busy names who has what is asked for. */
int cw_stepbook_add(struct cw_stepbook *b, struct cw_attempt *at, const char *id,
                    const Cw__JobSpec *job, const Cw__StepSpec *spec, const uint8_t key[16],
                    struct cw_arena *a, struct cw_steplayout *ret_layout, uint32_t *ret_step,
                    char **ret_busy, struct cw_error *err);
/* What a node says of its part; what is not known here any more changes nothing. */
void cw_stepbook_report(struct cw_stepbook *b, const struct cw_node *n, const Cw__StepReport *r);
/* Inside the effect: the attempt has ended, its steps with it. */
void cw_stepbook_attempt_ended(struct cw_stepbook *b, const struct cw_attempt *at);
/* Of the store or newer; -ENOENT with a sentence. */
int cw_stepbook_find(struct cw_stepbook *b, uint64_t id, uint32_t attempt, uint32_t step,
                     struct cw_arena *a, Cw__StepRecord **ret, struct cw_error *err);
/* Ends what nobody began. The next time to look, or INT64_MAX. */
int64_t cw_stepbook_due(struct cw_stepbook *b, int64_t now_ns);
/* Recovery, in the order of the keys, after the attempts. rec NULL: a row that has ended. -ESTALE:
 * its attempt has ended, the row should have. */
int cw_stepbook_restore(struct cw_stepbook *b, uint64_t id, uint32_t attempt, uint32_t step,
                        const Cw__StepRecord *rec);
