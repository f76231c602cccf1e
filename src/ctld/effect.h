#pragma once
/* What the model's effects become: rows of the open batch, and sends that follow its commit. */
#include "ctld/ctld.h"

struct cw_effects;
struct cw_effects *cw_effects_create(struct cw_ctld *c);
void cw_effects_destroy(struct cw_effects *fx);          /* NULL allowed */
void cw_effects_on(const struct cw_effect *e, void *fx); /* a cw_effect_fn */
/* End of a turn: packs the jobs that changed, each once however often it did. */
void cw_effects_settle(struct cw_effects *fx);
uint64_t cw_effects_event_seq(const struct cw_effects *fx);
void cw_effects_set_event_seq(struct cw_effects *fx, uint64_t seq); /* recovery: last one used */
