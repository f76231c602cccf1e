/* allocget.c: see allocget.h. The start of the job is heard from the history, so it is not asked
 * for again and again; the same questions renew the lease. */
#include "cmds/allocget.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "spec/outcome.h"

#define FIRST_MS 300u /* then what it waits for is told */
#define WAIT_MS 15000u
#define RELEASE_MS 10000u

uint32_t cw_allocget_lease(void)
{
    const char *text = getenv("CRUN_ALLOC_LEASE");
    char *end;
    unsigned long n = text != NULL ? strtoul(text, &end, 10) : 0;
    return n >= 3 && n <= 86400 && *end == '\0' ? (uint32_t)n : CW_ALLOCGET_LEASE_S;
}

void cw_allocget_release(struct cw_cli *c, uint64_t id, int exit_code)
{
    Cw__ReleaseRequest q = CW__RELEASE_REQUEST__INIT;
    ProtobufCMessage *m;
    struct cw_error err;
    q.id = id;
    q.has_exit_code = true;
    q.exit_code = (uint32_t)exit_code & 0xff;
    cw_cli_interrupted = 0; /* whatever brought us here, this is said */
    if (cw_client_call(c->client, CW_KIND_RELEASE, &q.base, RELEASE_MS, c->arena, &m, &err) < 0)
        fprintf(stderr, "%s: job %" PRIu64 " could not be given back and ends by its lease: %s\n",
                c->name, id, err.text);
}

/* The last event there is; *ret 0 with -1, or the exit code. */
static int events(struct cw_cli *c, uint64_t *seq, uint64_t id, uint32_t wait_ms)
{
    static char *kinds[] = {(char *)"running", (char *)"end", (char *)"cancel", (char *)"hold"};
    cw_autofree char *text = cw_xasprintf("%" PRIu64, id);
    Cw__EventsRequest q = CW__EVENTS_REQUEST__INIT;
    ProtobufCMessage *m;
    q.has_after_seq = id != 0;
    q.after_seq = *seq;
    q.n_ids = id != 0;
    q.ids = &text;
    q.n_kinds = CW_ARRAY_LEN(kinds);
    q.kinds = kinds;
    q.has_wait_ms = wait_ms > 0;
    q.wait_ms = wait_ms;
    int rc = cw_cli_call(c, CW_KIND_EVENTS, &q.base, wait_ms > 0 ? wait_ms + 60000 : 0, &m);
    if (rc < 0)
        *seq = ((const Cw__EventsReply *)m)->last_seq;
    return rc;
}

static int submit(struct cw_cli *c, struct cw_request *r, uint64_t *ret_id)
{
    uint8_t key[16];
    ProtobufCMessage *m;
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        abort();
    Cw__Payload none = CW__PAYLOAD__INIT;
    Cw__SubmitItem item = CW__SUBMIT_ITEM__INIT, *items[] = {&item};
    item.request_key.data = key;
    item.request_key.len = sizeof key;
    item.spec = r->spec;
    item.payload = &none;
    Cw__SubmitRequest q = CW__SUBMIT_REQUEST__INIT;
    q.n_items = 1;
    q.items = items;
    int rc = cw_cli_call(c, CW_KIND_SUBMIT, &q.base, 0, &m);
    if (rc >= 0)
        return rc;
    const Cw__SubmitReply *reply = (const Cw__SubmitReply *)m;
    const Cw__SubmitResult *res = reply->n_results == 1 ? reply->results[0] : NULL;
    struct cw_error err;
    if (res == NULL)
        cw_fail(&err, -EPROTO, "the controller answered with %zu results for one job",
                reply->n_results);
    else if (res->failure != NULL)
        cw_fail(&err, -res->failure->code, "%s", res->failure->text);
    else
        *ret_id = res->job_id;
    for (size_t i = 0; res != NULL && i < res->n_notes && !r->quiet; i++)
        fprintf(stderr, "%s: %s\n", c->name, res->notes[i]);
    return res == NULL || res->failure != NULL ? cw_cli_fail(c, &err) : -1;
}

static int keep(struct cw_cli *c, uint64_t id, Cw__JobInfo **ret)
{
    Cw__KeepRequest q = CW__KEEP_REQUEST__INIT;
    ProtobufCMessage *m;
    q.id = id;
    int rc = cw_cli_call(c, CW_KIND_KEEP, &q.base, 0, &m);
    if (rc < 0)
        *ret = ((Cw__KeepReply *)m)->job;
    return rc;
}

static void tell(const struct cw_cli *c, const struct cw_request *r, const Cw__JobInfo *j,
                 char **said)
{
    const char *reason = j->reason != NULL ? j->reason : cw_state_name(j->state);
    if (r->quiet || !isatty(STDERR_FILENO) || (*said != NULL && strcmp(*said, reason) == 0))
        return;
    fprintf(stderr, "%s: job %" PRIu64 " waits: %s%s%s\n", c->name, j->id, reason,
            j->reason_text != NULL ? ": " : "", j->reason_text != NULL ? j->reason_text : "");
    free(*said);
    *said = cw_xstrdup(reason);
}

static int ended(const struct cw_cli *c, const Cw__JobInfo *j)
{
    fprintf(stderr, "%s: job %" PRIu64 " ended before it ran: %s%s%s\n", c->name, j->id,
            cw_state_name(j->state), j->attempt != NULL && j->attempt->message != NULL ? ": " : "",
            j->attempt != NULL && j->attempt->message != NULL ? j->attempt->message : "");
    return j->has_exit_status ? j->exit_status : CW_EXIT_REFUSED;
}

static int wait_start(struct cw_cli *c, struct cw_request *r, uint64_t id, uint64_t seq,
                      Cw__JobInfo **ret)
{
    cw_autofree char *said = NULL;
    uint32_t every = cw_allocget_lease() * 1000 / 3, wait_ms = FIRST_MS;
    for (;;) {
        int rc = events(c, &seq, id, wait_ms);
        if (rc < 0)
            rc = keep(c, id, ret);
        if (rc >= 0)
            return rc;
        if ((*ret)->state == CW__STATE__RUNNING)
            return -1;
        if (cw_state_terminal((*ret)->state))
            return ended(c, *ret);
        tell(c, r, *ret, &said);
        wait_ms = every < WAIT_MS ? every : WAIT_MS;
    }
}

int cw_allocget(struct cw_cli *c, struct cw_request *r, uint64_t *ret_id, Cw__JobInfo **ret_job)
{
    uint64_t seq = 0, id = 0;
    r->spec->has_allocation = r->spec->allocation = true;
    r->spec->has_alloc_lease_s = true;
    r->spec->alloc_lease_s = cw_allocget_lease();
    int rc = events(c, &seq, 0, 0);
    if (rc < 0)
        rc = submit(c, r, &id);
    if (rc >= 0)
        return rc;
    rc = wait_start(c, r, id, seq, ret_job);
    if (rc >= 0)
        cw_allocget_release(c, id, rc);
    *ret_id = id;
    return rc;
}
