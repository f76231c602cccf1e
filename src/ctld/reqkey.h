#pragma once
/* Request keys: the client's 16 random bytes of a submit -> the id it got, so that a retry gets the
 * same one. Stored in table REQKEY with the job and deleted with it; keys whose batch is not on
 * disk yet are found in memory. Test: recover_test.c. */
#include <stdint.h>

#include "base/error.h"
#include "ctld/turn.h"

struct cw_reqkeys;
struct cw_reqkeys *cw_reqkeys_create(struct cw_store *s, struct cw_turn *t);
void cw_reqkeys_destroy(struct cw_reqkeys *r); /* after the turn; NULL allowed */
/* 1 found, 0 none, negative: the store cannot be read. */
int cw_reqkeys_find(struct cw_reqkeys *r, uint32_t uid, const uint8_t key[16], uint64_t *ret_id,
                    uint64_t *ret_count, struct cw_error *err);
void cw_reqkeys_put(struct cw_reqkeys *r, uint32_t uid, const uint8_t key[16], uint64_t id,
                    uint64_t count);
