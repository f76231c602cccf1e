#pragma once
/* Payloads (script, arguments, environment) by content: each distinct one is stored once, under the
 * BLAKE2b-256 of its packed form, and read back when a task is sent to its node. Bounded caches
 * keep both directions off the disk in the usual case. Test: row_test.c. */
#include "base/error.h"
#include "proto/job.pb-c.h"
#include "store/store.h"

struct cw_payloads;
struct cw_payloads *cw_payloads_create(struct cw_store *s);
void cw_payloads_destroy(struct cw_payloads *p); /* NULL allowed */
/* Puts the row unless it is known to be there, and gives its key. */
int cw_payloads_put(struct cw_payloads *p, struct cw_batch *b, const Cw__Payload *m,
                    uint8_t ret_hash[32], struct cw_error *err);
/* Valid until the next get. -ENOENT, -EBADMSG. */
int cw_payloads_get(struct cw_payloads *p, const uint8_t hash[32], const Cw__Payload **ret,
                    struct cw_error *err);

/* Sweep of rows that no job names (retention.c): between begin and end every hash that is put or
 * kept counts as used; drop deletes one that is not. */
void cw_payloads_sweep_begin(struct cw_payloads *p);
void cw_payloads_sweep_keep(struct cw_payloads *p, const uint8_t hash[32]);
bool cw_payloads_sweep_drop(struct cw_payloads *p, struct cw_batch *b,
                            const uint8_t hash[32]); /* false: used */
void cw_payloads_sweep_end(struct cw_payloads *p);
