#pragma once
/* The selection that queue, acct and cancel share (users, names, states, partitions, ids), and
 * fetching all pages of an answer. */
#include "cmds/cli.h"

struct cw_jobquery {
    Cw__JobFilter filter;
    struct cw_strv ids, names, partitions, accounts, qos, nodes;
    Cw__KeyValue labels[16], *label_rows[16];
    struct cw_strv label_text;
    uint32_t uids[256];
    Cw__State states[32];
    bool all_states;
};
void cw_jobquery_init(struct cw_jobquery *q);
void cw_jobquery_fini(struct cw_jobquery *q);
/* Rows of an argument table that cw_jobquery_option understands. */
#define CW_JOBQUERY_ARGS                                                                           \
    {"jobs", 'j', "ID,...", "only these jobs"},                                                    \
        {"user", 'u', "NAME,...", "only jobs of these users"},                                     \
        {"me", 0, NULL, "only my own jobs"},                                                       \
        {"name", 'n', "NAME,...", "only jobs of these names"},                                     \
        {"partition", 'p', "NAME,...", "only jobs of these partitions"},                           \
        {"states", 't', "STATE,...", "only jobs in these states (PD, RUNNING, ...), or all"},      \
        CW_JOBQUERY_MORE_ARGS
/* The rows whose letters are the same in every command. */
#define CW_JOBQUERY_MORE_ARGS                                                                      \
    {"account", 'A', "NAME,...", "only jobs of these accounts"},                                   \
        {"qos", 'q', "NAME,...", "only jobs of these qualities of service"},                       \
        {"nodelist", 'w', "NODES", "only jobs that are or were on these nodes"},                   \
    {                                                                                              \
        "label", 'L', "KEY=VALUE", "only jobs with this label (may be repeated)"                   \
    }
/* 1: it was one of the rows above and is applied; 0: not mine. */
int cw_jobquery_option(struct cw_jobquery *q, const struct cw_arg *opt, const char *value,
                       struct cw_error *err);
int cw_jobquery_operands(struct cw_jobquery *q, const struct cw_strv *operands,
                         struct cw_error *err);
Cw__JobFilter *cw_jobquery_filter(struct cw_jobquery *q); /* ready to send; borrows from q */
/* Ids were given, nothing else, and no row came: says that they do not exist. -1, or the exit code. */
int cw_jobquery_unknown(const struct cw_cli *c, const struct cw_jobquery *q, size_t rows);
/* Replaces "last" (my newest job) and "@NAME" (mine of that name that have not ended, else the
 * newest that has) by ids, behind the first `from` words; asks the controller only where such a word
 * is used. -1, or the exit code. */
int cw_jobquery_resolve(struct cw_cli *c, struct cw_strv *ids, size_t from);
/* All operands are job ids. -1, or the exit code of the usage error. */
int cw_jobquery_check_ids(const struct cw_cli *c);
/* All rows, page by page; fn for each. -1 to go on, else the exit code. */
int cw_jobquery_each(struct cw_cli *c, Cw__JobsRequest *req,
                     void (*fn)(const Cw__JobInfo *j, int64_t now_ns, void *arg), void *arg);
