/* stepcreate.c: STEP_CREATE with one request key, so that asking again is the same step. See
 * stepcreate.h. */
#include "cmds/stepcreate.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define AGAIN_MIN_MS 50u
#define AGAIN_MAX_MS 1000u

/* Each text once, until it is another one. */
static void tell(const struct cw_cli *c, bool quiet, char **said, const char *text)
{
    if (quiet || (*said != NULL && strcmp(*said, text) == 0))
        return;
    fprintf(stderr, "%s: waiting: %s\n", c->name, text);
    free(*said);
    *said = cw_xstrdup(text);
}

static int ask(struct cw_cli *c, const Cw__StepCreateRequest *q, bool quiet,
               const Cw__StepCreateReply **ret, char **said)
{
    struct cw_error err;
    ProtobufCMessage *m;
    for (uint32_t pause_ms = AGAIN_MIN_MS;; pause_ms *= 2) {
        int rc = cw_client_call(c->client, CW_KIND_STEP_CREATE, &q->base, 0, c->arena, &m, &err);
        const Cw__StepCreateReply *r = rc == 0 ? (const Cw__StepCreateReply *)m : NULL;
        if (r != NULL && r->busy == NULL) {
            *ret = r;
            return -1;
        }
        if (r == NULL && rc != -EAGAIN)
            return cw_cli_fail(c, &err);
        tell(c, quiet, said, r != NULL ? r->busy : err.text);
        if (pause_ms > AGAIN_MAX_MS)
            pause_ms = AGAIN_MAX_MS;
        if (cw_client_pause(c->client, pause_ms) < 0)
            return cw_client_exit_code(-EINTR);
    }
}

int cw_stepcreate(struct cw_cli *c, const char *id, const Cw__StepSpec *spec, bool quiet,
                  const Cw__StepCreateReply **ret)
{
    uint8_t key[16];
    cw_autofree char *said = NULL;
    Cw__StepCreateRequest q = CW__STEP_CREATE_REQUEST__INIT;
    Cw__StepSpec asked = *spec; /* where it goes is decided without what it runs */
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        abort();
    if (asked.name == NULL && asked.n_argv > 0)
        asked.name = asked.argv[0];
    asked.n_argv = asked.n_env = 0;
    asked.argv = asked.env = NULL;
    q.id = (char *)id;
    q.spec = &asked;
    q.request_key.len = sizeof key;
    q.request_key.data = key;
    return ask(c, &q, quiet, ret, &said);
}
