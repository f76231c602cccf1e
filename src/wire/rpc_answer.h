#pragma once
/* Answers that are kept for retries of requests that change state: by who asked and the request id,
 * 10 min, at most 65,536 of them and 16 MiB. While the request is in progress the entry points to
 * its call, so a retry joins it instead of running it again. Bytes go before entries: then a retry
 * still learns that it was carried out. Pure memory, time is an argument. Test: rpc_peer_test.c. */
#include <crunwlm/plugin.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/list.h"

#define CW_RPC_ANSWERS_MAX       65536
#define CW_RPC_ANSWERS_BYTES_MAX (16u * 1024u * 1024u)
#define CW_RPC_ANSWER_KEEP_MS    (10 * 60 * 1000)

struct cw_rpc_call;
struct cw_rpc_answer {
    struct cw_list by_age; /* finished ones only */
    uint64_t hash;
    uint8_t id[16];
    uint32_t uid;
    char node[64];
    struct cw_rpc_call *call; /* in progress; NULL: finished */
    int64_t done_ms;
    bool failure;
    bool have_body; /* false: finished, but the bytes had to go */
    uint32_t len;
    void *body; /* packed reply or Failure */
};

struct cw_rpc_answers;
struct cw_rpc_answers *cw_rpc_answers_create(void);
void cw_rpc_answers_destroy(struct cw_rpc_answers *t);
struct cw_rpc_answer *cw_rpc_answers_find(struct cw_rpc_answers *t, const struct cw_identity *who,
                                          const uint8_t id[16]);
struct cw_rpc_answer *cw_rpc_answers_begin(struct cw_rpc_answers *t, const struct cw_identity *who,
                                           const uint8_t id[16], struct cw_rpc_call *call);
/* Ends what begin began. body may be empty. */
void cw_rpc_answers_finish(struct cw_rpc_answers *t, struct cw_rpc_answer *a, bool failure,
                           const void *body, size_t len, int64_t now_ms);
void cw_rpc_answers_forget(struct cw_rpc_answers *t,
                           struct cw_rpc_answer *a); /* it was never carried out */
void cw_rpc_answers_expire(struct cw_rpc_answers *t, int64_t now_ms);
