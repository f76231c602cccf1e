/* crun-ctl update: KEY=VALUE words into a request. Values are read by the options of crun-submit.
 * See jobupdate.h. */
#include "cmds/jobupdate.h"

#include <stdio.h>
#include <string.h>

#include "cmds/jobquery.h"
#include "spec/fieldrule.h"
#include "spec/options.h"
#include "spec/specfield.h"

#define FIELDS_MAX 64u

struct change {
    struct cw_request request;
    Cw__ArraySpec array; /* only its throttle counts */
    char *fields[FIELDS_MAX];
    size_t n;
};

static int set_throttle(struct change *x, const char *value, struct cw_error *err)
{
    uint64_t n;
    int rc = cw_field_count(value, 0, INT32_MAX, &n, err);
    if (rc < 0)
        return rc;
    cw__array_spec__init(&x->array);
    x->array.indices = (char *)"";
    x->array.has_throttle = n != 0; /* 0: no limit */
    x->array.throttle = (uint32_t)n;
    x->request.spec->array = &x->array;
    return 0;
}

/* "key=value"; an empty value clears. */
static int add_word(struct change *x, const char *word, struct cw_error *err)
{
    const char *eq = strchr(word, '='), *option, *const *fields;
    cw_autofree char *key = cw_xstrndup(word, (size_t)(eq - word));
    if (!cw_specfield_key(key, &option, &fields))
        return cw_fail(err, -EINVAL,
                       "'%s' cannot be changed; what can: time, partition, begin, ... (crun-ctl(1))",
                       key);
    for (; *fields != NULL; fields++) {
        if (x->n == FIELDS_MAX)
            return cw_fail(err, -E2BIG, "too many changes at once");
        x->fields[x->n++] = (char *)*fields;
    }
    if (eq[1] == '\0')
        return 0;
    if (option == NULL) {
        int rc = set_throttle(x, eq + 1, err);
        return rc < 0 ? cw_wrap(err, rc, "%s", key) : 0;
    }
    return cw_request_set(&x->request, option, eq + 1, CW_ORIGIN_COMMAND, NULL, err);
}

static int send_change(struct cw_cli *c, struct change *x, struct cw_jobquery *q)
{
    Cw__UpdateRequest req = CW__UPDATE_REQUEST__INIT;
    ProtobufCMessage *m;
    req.filter = cw_jobquery_filter(q);
    req.spec = x->request.spec;
    req.fields = x->fields;
    req.n_fields = x->n;
    int rc = cw_cli_connect(c);
    if (rc < 0)
        rc = cw_cli_call(c, CW_KIND_UPDATE, &req.base, 0, &m);
    if (rc >= 0)
        return rc;
    if (c->common.json)
        cw_cli_print_json("update", json_pack("{s:I}", "matched",
                                              (json_int_t)((Cw__UpdateReply *)m)->matched));
    return CW_EXIT_OK;
}

int cw_jobupdate(struct cw_cli *c)
{
    struct cw_error err = {0};
    struct change x = {.n = 0};
    struct cw_jobquery q;
    struct cw_strv ids = {.v = c->operand.v + 1};
    int rc = -1;
    while (ids.n + 1 < c->operand.n && strchr(ids.v[ids.n], '=') == NULL)
        ids.n++;
    cw_jobquery_init(&q);
    cw_request_init(&x.request, c->arena);
    if (ids.n == 0 || ids.n + 1 == c->operand.n)
        rc = cw_cli_usage(c, "allowed: update JOB ... KEY=VALUE ...");
    if (rc < 0 && cw_jobquery_operands(&q, &ids, &err) != 0)
        rc = cw_cli_usage(c, "%s", err.text);
    for (size_t i = 1 + ids.n; rc < 0 && i < c->operand.n; i++) {
        if (strchr(c->operand.v[i], '=') == NULL)
            rc = cw_cli_usage(c, "'%s' is not KEY=VALUE", c->operand.v[i]);
        else if (add_word(&x, c->operand.v[i], &err) < 0)
            rc = cw_cli_usage(c, "%s", err.text);
    }
    if (rc < 0)
        rc = send_change(c, &x, &q);
    cw_request_fini(&x.request);
    cw_jobquery_fini(&q);
    return rc;
}
