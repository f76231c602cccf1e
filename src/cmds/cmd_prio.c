/* crun-prio: the terms of waiting jobs' ranks, one column each. Test: testsuite/t2530-diag.t. */
#include <stdio.h>
#include <string.h>

#include "cmds/jobquery.h"
#include "cmds/listing.h"

static const struct cw_arg args[] = {
    CW_JOBQUERY_ARGS,
    {"noheader", 'h', NULL, "no header line"},
    {"parsable2", 'P', NULL, "fields joined by '|', no padding"},
    {NULL, 0, NULL, NULL},
};

struct prio {
    struct cw_jobquery query;
    bool no_header, parsable;
};

static int on_option(const struct cw_arg *opt, const char *value, void *arg, struct cw_error *err)
{
    struct prio *p = arg;
    int rc = cw_jobquery_option(&p->query, opt, value, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (strcmp(opt->name, "noheader") == 0)
        p->no_header = true;
    else
        p->parsable = true;
    return 0;
}

/* Names of all terms, in the order in which they first appear. */
static void term_names(const Cw__PrioReply *r, struct cw_strv *names)
{
    for (size_t i = 0; i < r->n_rows; i++)
        for (size_t t = 0; t < r->rows[i]->n_terms; t++) {
            const char *name = r->rows[i]->terms[t]->name;
            size_t k = 0;
            while (k < names->n && strcmp(names->v[k], name) != 0)
                k++;
            if (k == names->n)
                cw_strv_add(names, name);
        }
}

static void print_rows(const Cw__PrioReply *r, const struct prio *p)
{
    cw_autostrv struct cw_strv names = {0}, headers = {0};
    static const char *const fixed[] = {">JOBID", "PARTITION", "USER", ">PLACE", ">PRIORITY"};
    term_names(r, &names);
    for (size_t i = 0; i < CW_ARRAY_LEN(fixed); i++)
        cw_strv_add(&headers, fixed[i]);
    for (size_t i = 0; i < names.n; i++) {
        char *h = cw_xasprintf(">%s", names.v[i]);
        for (char *c = h; *c != '\0'; c++)
            *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        cw_strv_add_take(&headers, h);
    }
    struct cw_listing *l =
        cw_listing_create((const char *const *)headers.v, p->no_header, p->parsable);
    for (size_t i = 0; i < r->n_rows; i++) {
        const Cw__PrioRow *row = r->rows[i];
        cw_autostrv struct cw_strv cells = {0};
        cw_strv_add_take(&cells, cw_xasprintf("%llu", (unsigned long long)row->id));
        cw_strv_add(&cells, row->partition != NULL ? row->partition : "");
        cw_strv_add_take(&cells, row->user != NULL ? cw_xstrdup(row->user)
                                                   : cw_xasprintf("%u", row->uid));
        cw_strv_add_take(&cells, row->has_place
                                     ? cw_xasprintf("%llu", (unsigned long long)row->place)
                                     : cw_xstrdup("-"));
        cw_strv_add_take(&cells, cw_xasprintf("%lld", (long long)row->priority));
        for (size_t k = 0; k < names.n; k++) {
            size_t t = 0;
            while (t < row->n_terms && strcmp(row->terms[t]->name, names.v[k]) != 0)
                t++;
            cw_strv_add_take(&cells, t == row->n_terms
                                         ? cw_xstrdup("-")
                                         : cw_xasprintf("%lld", (long long)row->terms[t]->value));
        }
        cw_listing_cells(l, (const char *const *)cells.v);
    }
    cw_listing_print(l);
}

static json_t *row_json(const Cw__PrioRow *r)
{
    json_t *o = json_pack("{s:I, s:I}", "job_id", (json_int_t)r->id, "priority",
                          (json_int_t)r->priority);
    json_t *terms = json_object();
    if (r->has_uid)
        json_object_set_new(o, "uid", json_integer(r->uid));
    if (r->user != NULL)
        json_object_set_new(o, "user", json_string(r->user));
    if (r->partition != NULL)
        json_object_set_new(o, "partition", json_string(r->partition));
    if (r->has_place)
        json_object_set_new(o, "place", json_integer((json_int_t)r->place));
    for (size_t t = 0; t < r->n_terms; t++)
        json_object_set_new(terms, r->terms[t]->name,
                            json_integer((json_int_t)r->terms[t]->value));
    json_object_set_new(o, "terms", terms);
    return o;
}

static int run(struct cw_cli *c, struct prio *p)
{
    Cw__PrioRequest req = CW__PRIO_REQUEST__INIT;
    ProtobufCMessage *m;
    req.filter = cw_jobquery_filter(&p->query);
    int rc = cw_cli_call(c, CW_KIND_PRIO, &req.base, 0, &m);
    if (rc >= 0)
        return rc;
    const Cw__PrioReply *r = (const Cw__PrioReply *)m;
    if (c->common.json) {
        json_t *rows = json_array();
        for (size_t i = 0; i < r->n_rows; i++)
            json_array_append_new(rows, row_json(r->rows[i]));
        cw_cli_print_json("prio", json_pack("{s:o}", "jobs", rows));
    } else {
        print_rows(r, p);
    }
    return CW_EXIT_OK;
}

int cw_cmd_prio(struct cw_cli *c, int argc, char *const *argv)
{
    struct prio p = {0};
    struct cw_error err;
    c->args = args;
    cw_jobquery_init(&p.query);
    int rc = cw_cli_begin(c, argc, argv, on_option, &p);
    if (rc < 0 && cw_jobquery_operands(&p.query, &c->operand, &err) != 0)
        rc = cw_cli_usage(c, "%s", err.text);
    if (rc < 0)
        rc = cw_cli_connect(c);
    if (rc < 0)
        rc = cw_jobquery_resolve(c, &p.query.ids, 0);
    if (rc < 0)
        rc = run(c, &p);
    cw_jobquery_fini(&p.query);
    return rc;
}
