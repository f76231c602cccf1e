/* See jobwait.h. */
#include "cmds/jobwait.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmds/jobtext.h"
#include "spec/outcome.h"

#define POLL_MS 30000u         /* one long poll; the answer comes earlier when the jobs end */
#define POLL_TERMINAL_MS 2000u /* on a terminal, so that the status line lives */

static void show_status(const Cw__WaitReply *r)
{
    size_t waiting = 0, running = 0, ended = 0;
    for (size_t i = 0; i < r->n_jobs; i++) {
        const Cw__JobInfo *j = r->jobs[i];
        waiting += j->state == CW__STATE__PENDING;
        ended += cw_state_terminal(j->state);
        running += j->state != CW__STATE__PENDING && !cw_state_terminal(j->state);
    }
    fprintf(stderr, "\r\033[K%zu waiting, %zu running, %zu ended", waiting, running, ended);
}

static int worst(const Cw__WaitReply *r)
{
    int code = 0;
    for (size_t i = 0; i < r->n_jobs; i++)
        if (r->jobs[i]->has_exit_status && r->jobs[i]->exit_status > code)
            code = r->jobs[i]->exit_status;
    return code;
}

static int finish(const struct cw_cli *c, const Cw__WaitReply *r)
{
    if (c->common.json) {
        json_t *jobs = json_array();
        for (size_t i = 0; i < r->n_jobs; i++)
            json_array_append_new(jobs, cw_jobtext_json(r->jobs[i]));
        cw_cli_print_json("wait", json_pack("{s:o}", "jobs", jobs));
    }
    return worst(r);
}

int cw_jobwait(struct cw_cli *c, char *const *ids, size_t n, uint64_t timeout_ms)
{
    int64_t start = cw_clock_mono_ns() / CW_NS_PER_MS;
    bool terminal = isatty(STDERR_FILENO) && !c->common.json;
    for (;;) {
        uint64_t poll = terminal ? POLL_TERMINAL_MS : POLL_MS;
        uint64_t spent = (uint64_t)(cw_clock_mono_ns() / CW_NS_PER_MS - start);
        if (timeout_ms != 0 && timeout_ms - (spent < timeout_ms ? spent : timeout_ms) < poll)
            poll = timeout_ms > spent ? timeout_ms - spent : 1;
        Cw__WaitRequest req = CW__WAIT_REQUEST__INIT;
        req.n_ids = n;
        req.ids = (char **)ids;
        req.has_timeout_ms = true;
        req.timeout_ms = (uint32_t)poll;
        ProtobufCMessage *m;
        cw_arena_reset(c->arena);
        /* The controller may restart meanwhile: keep asking for as long as the user does. */
        int rc = cw_cli_call(c, CW_KIND_WAIT, &req.base, (uint32_t)poll + 60000u, &m);
        if (rc >= 0)
            return rc;
        const Cw__WaitReply *r = (const Cw__WaitReply *)m;
        if (terminal)
            show_status(r);
        spent = (uint64_t)(cw_clock_mono_ns() / CW_NS_PER_MS - start);
        bool late = timeout_ms != 0 && spent >= timeout_ms;
        if (terminal && (r->done || late))
            fputs("\r\033[K", stderr);
        if (r->done)
            return finish(c, r);
        if (late) {
            fprintf(stderr, "%s: not ended within the given time\n", c->name);
            return CW_EXIT_REFUSED;
        }
    }
}
