#pragma once
/* The steps of tasks: begun once per number, watched, killed, reported. A report is told on every
 * new link until the controller has it. A step ends when its last rank has, and at the latest with
 * its task, before whose END it is reported. Test: step_test.c. */
#include "shepherd/step.h"

struct cw_step *cw_stepset_find(const struct cw_task *t, uint32_t number); /* NULL: none, or gone */
/* Begins step `number` (not known yet). -EAGAIN: too many; -EINVAL: the layout makes no sense. */
int cw_stepset_begin(struct cw_herd *h, struct cw_task *t, uint32_t number,
                     const Cw__StepLayout *layout, const Cw__StepSpec *spec, struct cw_error *err);
/* TERM, the grace, KILL; again, or grace 0: KILL at once. */
void cw_stepset_kill(struct cw_step *s, Cw__Cause cause, uint32_t grace_ms);
/* A reader has been heard of. */
void cw_stepset_heard(struct cw_step *s);
/* Which child to reap next, -1: any. What a rank leaves in its process group dies here, while the
 * number is still its own. */
pid_t cw_stepset_dying(struct cw_herd *h);
void cw_stepset_reaped(struct cw_herd *h, pid_t pid, int wait_status, const struct rusage *ru);
void cw_stepset_due(struct cw_herd *h, struct cw_task *t, int64_t now_ms);
/* Its processes are being killed: that is what ends its steps. */
void cw_stepset_task_ending(struct cw_task *t);
/* The task has ended and so have its steps. */
void cw_stepset_task_ended(struct cw_herd *h, struct cw_task *t, Cw__Cause cause);
void cw_stepset_tell(struct cw_herd *h, const struct cw_task *t); /* on a new link */
void cw_stepset_acked(struct cw_task *t, uint32_t number, bool end);
/* A new node daemon: whoever waited is gone with the old one. */
void cw_stepset_new_link(struct cw_herd *h);
void cw_stepset_destroy(struct cw_task *t);
