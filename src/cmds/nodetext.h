#pragma once
/* A NodeInfo as text and JSON. Test: nodetext_test.c. */
#include <jansson.h>

#include "base/buf.h"
#include "proto/wire.pb-c.h"

const char *cw_nodetext_state(
    const Cw__NodeInfo *n); /* down, drained, draining, idle, mixed, allocated, unknown */
uint32_t cw_nodetext_cores(const Cw__NodeInfo *n);
void cw_nodetext_show(const Cw__NodeInfo *n,
                      struct cw_buf *out); /* a paragraph of key=value lines */
json_t *cw_nodetext_json(const Cw__NodeInfo *n);
