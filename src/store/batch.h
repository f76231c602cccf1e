#pragma once
/* What a batch collected, for the one who commits it. Collecting: store.h. Test: batch_test.c. */
#include "store/store.h"

struct cw_batch_op {
    enum cw_table table;
    bool del;
    size_t klen, vlen;
    const void *key, *val;
};

/* The operations by table and key, one per key; heap array of *ret_n that points into the batch. */
struct cw_batch_op *cw_batch_sort(const struct cw_batch *b, size_t *ret_n);
