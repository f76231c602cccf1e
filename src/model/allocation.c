/* The end of an allocation, a job without a leader: given back by its owner's command, whose exit
 * code then is the job's, or left alone by it. What waits is cancelled. Test: allocation_test.c. */
#include "model/model.h"

static struct cw_attempt *live_attempt(struct cw_job *j)
{
    return cw_list_empty(&j->attempts)
               ? NULL
               : cw_list_entry(j->attempts.prev, struct cw_attempt, on_job);
}

static void end(struct cw_model *m, struct cw_job *j, struct cw_attempt *a, Cw__Cause why,
                uint32_t uid, int64_t now_ns)
{
    if (a != NULL && a->state <= CW__STATE__COMPLETING)
        cw_attempt_ask_kill(m, a, why, uid, now_ns);
    else
        cw_model_cancel(m, j, NULL, uid, now_ns);
}

void cw_model_release(struct cw_model *m, struct cw_job *j, int exit_code, uint32_t signal,
                      uint32_t uid, int64_t now_ns)
{
    struct cw_attempt *a = live_attempt(j);
    if (a != NULL && a->kill_step == 0) {
        a->rec->has_exit_code = exit_code >= 0;
        a->rec->exit_code = exit_code >= 0 ? (uint32_t)exit_code : 0;
        a->rec->has_signal = signal != 0;
        a->rec->signal = signal;
    }
    end(m, j, a, CW__CAUSE__CAUSE_RELEASED, uid, now_ns);
}

void cw_model_owner_gone(struct cw_model *m, struct cw_job *j, int64_t now_ns)
{
    end(m, j, live_attempt(j), CW__CAUSE__CAUSE_OWNER_GONE, j->uid, now_ns);
}
