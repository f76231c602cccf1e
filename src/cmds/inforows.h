#pragma once
/* Rows of crun-info in a format of sinfo's letters: nodes of a partition whose columns read the same
 * share a row. Tested by t2530-diag.t. */
#include "base/buf.h"
#include "base/error.h"
#include "proto/wire.pb-c.h"

struct cw_infoformat;
/* "%P %.5a %.10l %.6D %.6t %N" */
int cw_infoformat_parse(const char *text, struct cw_infoformat **ret, struct cw_error *err);
void cw_infoformat_destroy(struct cw_infoformat *f); /* NULL allowed */
void cw_infoformat_letters(void);                    /* --helpformat */

struct cw_inforows {
    const Cw__NodesReply *reply;
    bool by_node, no_header, reasons; /* one node a row; reasons: only nodes that have one */
    char *const *partitions;          /* none: all */
    size_t n_partitions;
    char *const *states; /* lower case; none: all */
    size_t n_states;
};
void cw_inforows_print(const struct cw_infoformat *f, const struct cw_inforows *r);
