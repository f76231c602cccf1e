/* core.c: the order in which the parts of the controller are made, run and destroyed. */
#include "ctld/core.h"

#include <unistd.h>

#include "base/log.h"
#include "ctld/cycle.h"
#include "ctld/deadline.h"
#include "ctld/diskguard.h"
#include "ctld/effect.h"
#include "ctld/eventlog.h"
#include "ctld/lease.h"
#include "ctld/nodelink.h"
#include "ctld/payload.h"
#include "ctld/reqkey.h"
#include "ctld/statistics.h"
#include "ctld/stepbook.h"
#include "ctld/turn.h"
#include "ctld/users.h"
#include "ctld/waiter.h"

#define STOP_MS 20000u

void cw_core_create(struct cw_ctld *c)
{
    c->users = cw_users_create(c->loop);
    c->statistics = cw_statistics_create();
    c->turn = cw_turn_create(c->loop, c->store);
    c->reqkeys = cw_reqkeys_create(c->store, c->turn);
    c->payloads = cw_payloads_create(c->store);
    c->eventlog = cw_eventlog_create(c);
    c->effects = cw_effects_create(c);
    c->model = cw_model_create(cw_effects_on, c->effects);
    c->waits = cw_waits_create(c);
    c->cycle = cw_cycle_create(c);
    c->leases = cw_leases_create(c);
    c->stepbook = cw_stepbook_create(c);
    c->deadline = cw_deadline_create(c);
    c->disk = cw_diskguard_create(c);
    c->links = cw_nodelinks_create(c);
}

void cw_core_turn(struct cw_ctld *c)
{
    cw_statistics_turn(c->statistics);
    do {
        cw_cycle_end_of_turn(c->cycle);
        cw_effects_settle(c->effects);
        cw_turn_end(c->turn);
    } while (!cw_turn_flying(c->turn) && (!cw_turn_idle(c->turn) || cw_cycle_is_due(c->cycle)));
    cw_nodelinks_flush(c->links);
    if (c->stopping && c->busy == 0 && cw_turn_idle(c->turn))
        cw_loop_stop(c->loop);
}

/* Leaves without taking anything down: a batch is still with the worker. */
static void on_stop_late(void *arg)
{
    struct cw_ctld *c = arg;
    struct cw_error err = {0};
    bool failing = cw_turn_failing(c->turn, &err);
    cw_log_error(
        "stop: the last changes could not be stored in %u s%s%s; none of them was acknowledged",
        STOP_MS / 1000, failing ? ": " : "", err.text);
    _exit(1);
}

void cw_core_stop(struct cw_ctld *c)
{
    if (c->stopping)
        return;
    c->stopping = true;
    c->stop_timer = cw_loop_timer_open(c->loop, on_stop_late, c);
    cw_loop_timer_start(c->stop_timer, STOP_MS, 0);
}

void cw_core_destroy(struct cw_ctld *c)
{
    cw_waits_destroy(c->waits);
    cw_eventlog_drop(c->eventlog);
    cw_turn_destroy(c->turn); /* tells what never happened; needs the others */
    cw_nodelinks_destroy(c->links);
    cw_deadline_destroy(c->deadline);
    cw_stepbook_destroy(c->stepbook);
    cw_leases_destroy(c->leases);
    cw_diskguard_destroy(c->disk);
    cw_cycle_destroy(c->cycle);
    cw_model_destroy(c->model);
    cw_effects_destroy(c->effects);
    cw_eventlog_destroy(c->eventlog);
    cw_payloads_destroy(c->payloads);
    cw_reqkeys_destroy(c->reqkeys);
    cw_users_destroy(c->users);
    cw_statistics_destroy(c->statistics);
}
