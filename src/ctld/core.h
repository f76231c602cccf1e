#pragma once
/* The parts that decide: made together, one turn, taken down. Without sockets and plugins, so tests
 * run the same parts. */
#include "ctld/ctld.h"

/* conf, loop, store and policy of c are set; the other parts are made. cw_recover comes next. */
void cw_core_create(struct cw_ctld *c);
/* End of a turn of the loop: decide, store, act, answer. What the effects of this turn decide goes
 * round again. Stops the loop when c is stopping and nothing is left to store or to answer. */
void cw_core_turn(struct cw_ctld *c);
/* Begins a clean stop: open batches are stored and answered first. Callable more than once. */
void cw_core_stop(struct cw_ctld *c);
/* Half-made is fine; no commit may be in flight. */
void cw_core_destroy(struct cw_ctld *c);
