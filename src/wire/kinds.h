#pragma once
#include <protobuf-c/protobuf-c.h>

/* One row per request: number, name, request message, reply message, and the least role that may
 * ask. Dispatch, clients, doc/PROTOCOL.md and tests follow from this table. Numbers are never reused.
 * Roles: USER any authenticated user (handlers narrow to own jobs), ADMIN, NODE a node daemon,
 * TICKET carries its own right (served by nodes). */
#define CW_KINDS(X)                                                \
    X(1, PING, ping, Ping, USER)                                   \
    X(2, SUBMIT, submit, Submit, USER)                             \
    X(3, JOBS, jobs, Jobs, USER)                                   \
    X(4, WHY, why, Why, USER)                                      \
    X(5, CANCEL, cancel, Cancel, USER)                             \
    X(6, WAIT, wait, Wait, USER)                                   \
    X(7, NODES, nodes, Nodes, USER)                                \
    X(8, NODE_SET, node_set, NodeSet, ADMIN)                       \
    X(9, TICKET, ticket, Ticket, USER)                             \
    X(10, CTL, ctl, Ctl, USER)                                     \
    X(11, UPDATE, update, Update, USER)                            \
    X(12, EVENTS, events, Events, USER)                            \
    X(13, STEP_CREATE, step_create, StepCreate, USER)              \
    X(14, KEEP, keep, Keep, USER)                                  \
    X(15, RELEASE, release, Release, USER)                         \
    X(16, PRIO, prio, Prio, USER)                                  \
    X(17, CRON, cron, Cron, USER)                                  \
    X(64, LOG, log, Log, TICKET)                                   \
    X(65, STEP_START, step_start, StepStart, TICKET)               \
    X(66, STEP_READ, step_read, StepRead, TICKET)                  \
    X(67, STEP_WRITE, step_write, StepWrite, TICKET)               \
    X(68, STEP_CTL, step_ctl, StepCtl, TICKET)                     \
    X(69, STAT, stat, Stat, TICKET)
enum cw_role { CW_ROLE_NONE = 0, CW_ROLE_USER, CW_ROLE_ADMIN, CW_ROLE_NODE, CW_ROLE_TICKET };
enum cw_kind {
#define X(num, NAME, name, Msg, role) CW_KIND_##NAME = num,
    CW_KINDS(X)
#undef X
};
struct cw_kind_row {
    enum cw_kind kind;
    const char *name;
    const ProtobufCMessageDescriptor *request, *reply;
    enum cw_role role; /* the least that may ask */
};
const struct cw_kind_row *cw_kind_find(unsigned kind); /* NULL: no such request */
