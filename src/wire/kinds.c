/* The request table as data: from a number to its name, messages and role. Never adds a row of its
 * own: the one list is CW_KINDS. Tested by frame_test.c. */
#include "config.h"

#include "wire/kinds.h"

#include "proto/wire.pb-c.h"

static const struct cw_kind_row rows[] = {
#define X(num, NAME, lower, Msg, least)                                                            \
    {CW_KIND_##NAME, #lower, &cw__##lower##_request__descriptor, &cw__##lower##_reply__descriptor, \
     CW_ROLE_##least},
    CW_KINDS(X)
#undef X
};

const struct cw_kind_row *cw_kind_find(unsigned kind)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((unsigned)rows[i].kind == kind)
            return &rows[i];
    return NULL;
}
