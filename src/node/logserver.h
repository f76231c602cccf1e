#pragma once
/* The node's own socket, where holders of tickets ask. Requests to steps go on to stepserver.h; LOG
 * is served here: checks the ticket, gets the file from
 * a shepherd, answers from it, keeps readers waiting while the task runs and nothing is new. `eof`
 * is said only when the task has ended and nothing is behind the data. Test: testsuite/t1050. */
#include <stddef.h>

#include "node/crund.h"

int cw_logserver_open(struct cw_node *n, struct cw_logserver **ret, struct cw_error *err);
void cw_logserver_close(struct cw_logserver *s); /* NULL allowed */
void cw_logserver_ended(struct cw_logserver *s,
                        const char *key); /* the task's readers get their eof */
/* An OPENED packet; fd is taken. */
void cw_logserver_opened(struct cw_logserver *s, const void *body, size_t n, int fd);
