/* The signal before the time limit (contract: earlysignal.h). The number of processes that it
 * reached is logged: a shell that waits in the foreground passes nothing on, and with B: people ask
 * why their program saw none. */
#include "shepherd/earlysignal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"

#define DEFAULT_BEFORE_S 60

void cw_earlysignal_plan(struct cw_task *t, const Cw__TaskStart *s, int64_t now_ms)
{
    int64_t before_s =
        s->spec->has_signal_before_s ? (int64_t)s->spec->signal_before_s : DEFAULT_BEFORE_S;
    if (!s->spec->has_signal || t->limit_at == 0)
        return;
    t->early_signal = (int)s->spec->signal;
    t->early_leader = s->spec->has_signal_leader && s->spec->signal_leader;
    t->early_at = t->limit_at - before_s * 1000;
    if (t->early_at <= now_ms)
        t->early_at = now_ms + 1; /* the whole limit is shorter: at once */
}

void cw_earlysignal_moved(struct cw_task *t, int64_t old_limit_at, int64_t now_ms)
{
    if (t->early_at == 0)
        return;
    t->early_at = t->limit_at == 0 ? 0 : t->early_at + (t->limit_at - old_limit_at);
    if (t->limit_at != 0 && t->early_at <= now_ms)
        t->early_at = now_ms + 1;
}

static int send(const struct cw_task *t)
{
    if (!t->early_leader)
        return CW_PLUG_OPS(isolation, t->isolation)
            ->signal(cw_plug_ctx(t->isolation), t->box, t->early_signal);
    if (t->headless || t->reaped)
        return 0;
    return kill(t->pid, t->early_signal) < 0 ? -errno : 1;
}

void cw_earlysignal_due(struct cw_task *t, int64_t now_ms)
{
    if (t->early_at == 0 || t->early_at > now_ms)
        return;
    t->early_at = 0;
    if (t->phase != CW_TASK_RUNNING || t->kill_cause != 0)
        return;
    int n = send(t);
    if (n < 0)
        cw_log_warn("task %llu.%u: signal %d before the time limit: %s", (unsigned long long)t->id,
                    t->attempt, t->early_signal, strerror(-n));
    else
        cw_log_info("task %llu.%u: signal %d before the time limit, to %d process%s",
                    (unsigned long long)t->id, t->attempt, t->early_signal, n, n == 1 ? "" : "es");
}
