/* States, causes, exit statuses (contract: outcome.h). Test: outcome_test.c. */
#include "spec/outcome.h"

#include <strings.h>

#include "base/mem.h"

static const struct state_row {
    Cw__State state;
    const char *name, *letters;
    bool terminal;
    int exit_status; /* of a job in this state that never ran */
} states[] = {
    {CW__STATE__PENDING, "PENDING", "PD", false, -1},
    {CW__STATE__STARTING, "STARTING", "CF", false, -1},
    {CW__STATE__RUNNING, "RUNNING", "R", false, -1},
    {CW__STATE__COMPLETING, "COMPLETING", "CG", false, -1},
    {CW__STATE__COMPLETED, "COMPLETED", "CD", true, 0},
    {CW__STATE__FAILED, "FAILED", "F", true, 1},
    {CW__STATE__CANCELLED, "CANCELLED", "CA", true, CW_EXIT_CANCELLED},
    {CW__STATE__TIMEOUT, "TIMEOUT", "TO", true, CW_EXIT_TIME_LIMIT},
    {CW__STATE__OUT_OF_MEMORY, "OUT_OF_MEMORY", "OOM", true, CW_EXIT_OOM},
    {CW__STATE__NODE_FAIL, "NODE_FAIL", "NF", true, CW_EXIT_NODE_FAIL},
    {CW__STATE__LAUNCH_FAILED, "LAUNCH_FAILED", "LF", true, CW_EXIT_LAUNCH},
    {CW__STATE__DEADLINE, "DEADLINE", "DL", true, CW_EXIT_DEADLINE},
    {CW__STATE__PREEMPTED, "PREEMPTED", "PR", true, CW_EXIT_PREEMPTED},
};

/* A leader that exits with 0 completes instead (cw_outcome_state). */
static const struct cause_row {
    Cw__Cause cause;
    const char *name;
    Cw__State state;
    int exit_status; /* 0: the leader's own */
} causes[] = {
    {CW__CAUSE__CAUSE_EXIT, "exit", CW__STATE__FAILED, 0},
    {CW__CAUSE__CAUSE_SIGNAL, "signal", CW__STATE__FAILED, 0},
    {CW__CAUSE__CAUSE_CANCEL, "cancel", CW__STATE__CANCELLED, CW_EXIT_CANCELLED},
    {CW__CAUSE__CAUSE_TIME_LIMIT, "time limit", CW__STATE__TIMEOUT, CW_EXIT_TIME_LIMIT},
    {CW__CAUSE__CAUSE_OOM, "out of memory", CW__STATE__OUT_OF_MEMORY, CW_EXIT_OOM},
    {CW__CAUSE__CAUSE_LAUNCH_USER, "launch (user)", CW__STATE__LAUNCH_FAILED, CW_EXIT_LAUNCH},
    {CW__CAUSE__CAUSE_LAUNCH_NODE, "launch (node)", CW__STATE__LAUNCH_FAILED, CW_EXIT_LAUNCH},
    {CW__CAUSE__CAUSE_NODE_LOST, "node lost", CW__STATE__NODE_FAIL, CW_EXIT_NODE_FAIL},
    {CW__CAUSE__CAUSE_DEPENDENCY, "dependency", CW__STATE__CANCELLED, CW_EXIT_DEPENDENCY},
    {CW__CAUSE__CAUSE_DEADLINE, "deadline", CW__STATE__DEADLINE, CW_EXIT_DEADLINE},
    {CW__CAUSE__CAUSE_PREEMPTED, "preempted", CW__STATE__PREEMPTED, CW_EXIT_PREEMPTED},
    {CW__CAUSE__CAUSE_RELEASED, "released", CW__STATE__FAILED, 0},
    {CW__CAUSE__CAUSE_REQUEUED, "requeued", CW__STATE__CANCELLED, CW_EXIT_CANCELLED},
    {CW__CAUSE__CAUSE_OWNER_GONE, "owner gone", CW__STATE__CANCELLED, CW_EXIT_CANCELLED},
    {CW__CAUSE__CAUSE_PEER, "another node", CW__STATE__NODE_FAIL, CW_EXIT_NODE_FAIL},
};

static const struct state_row *state_row(Cw__State s)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(states); i++)
        if (states[i].state == s)
            return &states[i];
    return NULL;
}

static const struct cause_row *cause_row(Cw__Cause c)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(causes); i++)
        if (causes[i].cause == c)
            return &causes[i];
    return NULL;
}

Cw__State cw_outcome_state(const Cw__TaskEnd *e)
{
    const struct cause_row *row = cause_row(e->cause);
    if (row == NULL)
        return CW__STATE__FAILED;
    bool by_code = e->cause == CW__CAUSE__CAUSE_EXIT || e->cause == CW__CAUSE__CAUSE_RELEASED;
    if (by_code && e->has_exit_code && e->exit_code == 0)
        return CW__STATE__COMPLETED;
    return row->state;
}

int cw_outcome_exit_status(const Cw__AttemptRecord *a)
{
    const struct cause_row *row = a->has_cause ? cause_row(a->cause) : NULL;
    if (row == NULL)
        return -1;
    if (a->cause == CW__CAUSE__CAUSE_LAUNCH_USER && a->has_exit_code &&
        (a->exit_code == 126 || a->exit_code == 127))
        return (int)a->exit_code;
    if (row->exit_status != 0)
        return row->exit_status;
    if (a->has_exit_code)
        return (int)(a->exit_code & 0xff);
    return a->has_signal ? 128 + (int)(a->signal & 0x7f) : 1;
}

int cw_outcome_exit_status_job(Cw__State s, const Cw__AttemptRecord *a_or_null)
{
    const struct state_row *row = state_row(s);
    if (row == NULL || !row->terminal)
        return -1;
    if (a_or_null != NULL && a_or_null->has_cause)
        return cw_outcome_exit_status(a_or_null);
    return row->exit_status;
}

bool cw_state_terminal(Cw__State s)
{
    const struct state_row *row = state_row(s);
    return row != NULL && row->terminal;
}

const char *cw_state_name(Cw__State s)
{
    const struct state_row *row = state_row(s);
    return row != NULL ? row->name : "UNKNOWN";
}

const char *cw_state_letters(Cw__State s)
{
    const struct state_row *row = state_row(s);
    return row != NULL ? row->letters : "??";
}

bool cw_state_parse(const char *text, Cw__State *ret)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(states); i++)
        if (strcasecmp(states[i].name, text) == 0 || strcasecmp(states[i].letters, text) == 0) {
            *ret = states[i].state;
            return true;
        }
    return false;
}

const char *cw_cause_name(Cw__Cause c)
{
    const struct cause_row *row = cause_row(c);
    return row != NULL ? row->name : "unknown";
}
