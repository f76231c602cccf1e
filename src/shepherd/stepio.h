#pragma once
/* The session of a step: from the pipes or the terminal of its ranks into the ring, and input from
 * readers to the ranks. Reading stops while the ring is full and somebody has to be waited for; a
 * detached step never waits. End of file of a rank comes behind its last byte. Test:
 * step_test.c. */
#include "shepherd/step.h"

/* Takes fd (non-blocking from now on). */
void cw_stepio_open(struct cw_stepfd *f, struct cw_steptask *t, enum cw_stepfd_kind kind, int fd);
void cw_stepio_close(struct cw_stepfd *f);
/* Something is ready on the herd's poll descriptor; handles it. The steps concerned are handed to
 * fn, once for each event. */
void cw_stepio_run(struct cw_herd *h, void (*fn)(struct cw_step *s));
/* The ring has room again, or nobody is waited for any more. */
void cw_stepio_resume(struct cw_step *s);
/* The processes are gone: reads what is there and, with force, closes what others keep open. */
void cw_stepio_drain(struct cw_step *s, bool force);
/* All outputs are at their end. */
bool cw_stepio_at_end(const struct cw_step *s);
/* Input from offset on; returns the offset behind what was taken. */
uint64_t cw_stepio_write(struct cw_step *s, uint64_t offset, const void *p, size_t n, bool eof);
bool cw_stepio_input_closed(const struct cw_step *s); /* no rank reads it any more */
